package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// A machine for benchmarks: at rest, at work, and back.
var benchVM = fsm.Must[size](fsm.Spec[state, event]{
	Name: "bench-vm", Initial: "idle", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[state]{
		{Name: "idle"},
		{Name: "busy", Kind: fsm.Transitional},
		{Name: "broken", Kind: fsm.Failed},
		{Name: "gone", Kind: fsm.Absent},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("idle", "go", "busy").By("user"),
		fsm.Move[state, event]("busy", "done", "idle").By("worker"),
		fsm.Move[state, event]("busy", "late", "broken").After(1),
		fsm.Move[state, event]("broken", "go", "busy").By("user"),
		fsm.Move[state, event]("idle", "delete", "gone").AlsoFrom("broken").By("user"),
	),
})

// handStore is what one would write by hand: structs in a map under one mutex,
// and a compare-and-set of the revision that says when it was.
type handStore struct {
	mu      sync.Mutex
	records map[string]handRecord
}

type handRecord struct {
	state, origin state
	revision      uint64
	changedAt     time.Time
	changedBy     fsm.Actor
	payload       size
}

var errHand = errors.New("conflict")

func (s *handStore) swap(id string, seen uint64, from, to state, actor fsm.Actor) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	if r.revision != seen || r.state != from {
		return 0, errHand
	}
	r.origin, r.state, r.revision, r.changedAt, r.changedBy = r.state, to, seen+1, time.Now(), actor
	s.records[id] = r
	return r.revision, nil
}

func (s *handStore) get(id string) handRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[id]
}

func benchIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("vm-%07d", i)
	}
	return ids
}

func must0(err error) {
	if err != nil {
		panic(err)
	}
}

// worlds are n objects at rest, by hand and in a manager.
func worlds(n int, store *lifecycle.MemoryStore) (hand, fire, do, parts func(int), m *lifecycle.Manager[state, event, size]) {
	ctx := context.Background()
	ids := benchIDs(n)
	m = lifecycle.New(benchVM, store, &lifecycle.Config[event]{Worker: "worker", Done: []event{"done"}})
	h := &handStore{records: make(map[string]handRecord, n)}
	for _, id := range ids {
		_, err := m.Add(ctx, id, "user", size{N: 1})
		must0(err)
		h.records[id] = handRecord{state: "idle", revision: 1, payload: size{N: 1}}
	}
	next := func(i *int) string { *i = (*i + 7919) % n; return ids[*i] }
	at := [4]int{}
	hand = func(steps int) {
		for range (steps + 1) / 2 {
			id := next(&at[0])
			seen, err := h.swap(id, h.get(id).revision, "idle", "busy", "user")
			must0(err)
			_, err = h.swap(id, seen, "busy", "idle", "worker")
			must0(err)
		}
	}
	twice := func(id string) {
		_, err := m.Fire(ctx, id, "go", "user", nil)
		must0(err)
		_, err = m.Fire(ctx, id, "done", "worker", nil)
		must0(err)
	}
	fire = func(steps int) {
		for range (steps + 1) / 2 {
			twice(next(&at[1]))
		}
	}
	work := lifecycle.Func(func(context.Context) error { return nil })
	do = func(steps int) {
		for range steps {
			op, err := m.Do(ctx, next(&at[2]), "go", "user", work, nil)
			must0(err)
			_, err = op.Wait(ctx)
			must0(err)
		}
	}
	q := queue.Must[lifecycle.Key](nil)
	act := &queue.Action{Run: func(context.Context) error { return nil }}
	parts = func(steps int) {
		for range steps {
			id := next(&at[3])
			twice(id)
			t, err := q.Submit(ctx, lifecycle.Key{Machine: "bench-vm", ID: id}, act)
			must0(err)
			must0(t.Wait(ctx))
		}
	}
	return hand, fire, do, parts, m
}

// idleBytes is what an object at rest keeps in memory.
func idleBytes(store *lifecycle.MemoryStore) float64 {
	const n = 100_000
	ids := benchIDs(n)
	m := lifecycle.New(benchVM, store, nil)
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	for _, id := range ids {
		_, err := m.Add(context.Background(), id, "user", size{N: 1})
		must0(err)
	}
	grown := float64(int64(heap())-int64(before)) / n
	runtime.KeepAlive(store)
	runtime.KeepAlive(ids)
	return grown
}

// sweeps is a manager of so many objects, a thousand of which are at work, and a
// sweep that finds ten of them late, after a process has died.
func sweeps(n int) func(int) {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	m := lifecycle.New(benchSweep, store, nil)
	_, err := lifecycle.Join(ctx, store, "crashed", 1)
	must0(err)
	ids := benchIDs(n)
	for i, id := range ids {
		_, err := m.Add(ctx, id, "user", size{})
		must0(err)
		if i < 1000 {
			_, err = m.Fire(ctx, id, "go", "user", nil)
			must0(err)
		}
	}
	return func(steps int) {
		for range steps {
			for i := range 10 {
				_, err := m.Fire(ctx, ids[n-1-i], "hurry", "user", nil)
				must0(err)
			}
			found, err := m.Sweep(ctx)
			must0(err)
			if len(found) != 10 {
				panic(fmt.Sprint("found ", len(found)))
			}
		}
	}
}

var benchSweep = fsm.Must[size](fsm.Spec[state, event]{
	Name: "bench-sweep", Initial: "idle", Actors: []fsm.Actor{"user"},
	States: []fsm.State[state]{
		{Name: "idle"},
		{Name: "busy", Kind: fsm.Transitional},
		{Name: "hurried", Kind: fsm.Transitional},
		{Name: "gone", Kind: fsm.Absent},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("idle", "go", "busy").By("user"),
		fsm.Move[state, event]("busy", "done", "idle").By("user"),
		fsm.Return[state, event]("busy", "late").After(24*time.Hour),
		fsm.Move[state, event]("idle", "hurry", "hurried").By("user"),
		fsm.Return[state, event]("hurried", "late").After(1),
		fsm.Move[state, event]("idle", "delete", "gone").By("user"),
	),
})

func BenchmarkRatios(*testing.B) {
	bare := idleBytes(&lifecycle.MemoryStore{NoHistory: true}) // first: the heap of the others would come and go meanwhile
	hand, fire, do, parts, _ := worlds(1000, lifecycle.NewMemoryStore())
	bigHand, bigFire, _, _, big := worlds(1_000_000, lifecycle.NewMemoryStore())
	bareHand, bareFire, _, _, _ := worlds(1000, &lifecycle.MemoryStore{NoHistory: true})
	figures := ratio.Measure([]ratio.Pair{
		{Name: "lifecycle/Fire", Goal: 4, Base: hand, Subject: fire},
		{Name: "lifecycle/Do", Goal: 1.7, Base: parts, Subject: do},
		{Name: "lifecycle/Fire-of-1000000", Goal: 6, Base: bigHand, Subject: bigFire},
		{Name: "lifecycle/Fire-without-history", Goal: 4, Base: bareHand, Subject: bareFire},
	}, nil)
	figure := func(name string, value, goal float64) {
		figures = append(figures, ratio.Figure{Name: "lifecycle/" + name, Value: value, Goal: goal})
	}
	figure("Fire-growth-1000-to-1000000", figures[2].Value/figures[0].Value, 1.5)
	runtime.KeepAlive(big)
	few, many := sweeps(2000), sweeps(1_000_000)
	figures = append(figures, ratio.Measure([]ratio.Pair{
		{Name: "lifecycle/sweep-of-2000-to-1000000", Goal: 1.5, Base: few, Subject: many},
	}, &ratio.Config{Rounds: 51, Slice: 5 * time.Millisecond})...)
	figure("bytes-of-an-idle-object-without-history", bare, 512)
	must0(ratio.Print(os.Stdout, figures))
	must0(ratio.PrintMachine(os.Stdout))
}
