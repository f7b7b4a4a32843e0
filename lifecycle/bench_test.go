package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lifecycle"
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
// and a compare-and-set of the revision.
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

// fleet is n objects at rest, by hand and in a manager. The functions move objects
// so many times.
func fleet(n int) (hand, fire func(int)) {
	ctx := context.Background()
	ids := benchIDs(n)
	m := lifecycle.Must(benchVM, lifecycle.NewMemoryStore(), nil)
	h := &handStore{records: make(map[string]handRecord, n)}
	for _, id := range ids {
		_, err := m.Add(ctx, id, initial(m), "user", size{N: 1}, nil)
		must0(err)
		h.records[id] = handRecord{state: "idle", revision: 1, payload: size{N: 1}}
	}
	next := func(i *int) string { *i = (*i + 7919) % n; return ids[*i] }
	at := [2]int{}
	hand = func(steps int) {
		for range (steps + 1) / 2 {
			id := next(&at[0])
			seen, err := h.swap(id, h.get(id).revision, "idle", "busy", "user")
			must0(err)
			_, err = h.swap(id, seen, "busy", "idle", "worker")
			must0(err)
		}
	}
	fire = func(steps int) {
		for range (steps + 1) / 2 {
			id := next(&at[1])
			_, err := m.Fire(ctx, id, "go", "user", nil)
			must0(err)
			_, err = m.Fire(ctx, id, "done", "worker", nil)
			must0(err)
		}
	}
	return hand, fire
}

// idleSweep is a sweep that finds nothing, in a store with so many objects that an
// owner which is alive works on.
func idleSweep(busy int) func(int) {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	owner, err := lifecycle.Join(ctx, store, "worker", time.Hour)
	must0(err)
	m := lifecycle.Must(benchSweep, store, &lifecycle.Config[event]{Owner: owner})
	for _, id := range benchIDs(busy) {
		must0(store.Commit(ctx, &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
			Expect: "floor-0", To: lifecycle.StoredRecord{
				Key: lifecycle.Key{Machine: "bench-sweep", ID: id}, State: "busy", Origin: "idle",
				Sequence: 1, Operation: 1, Owner: owner.Name(), Epoch: owner.Epoch(),
			},
			Timeout: time.Hour,
		}}}))
	}
	return func(steps int) {
		for range steps {
			found, err := m.Sweep(ctx)
			must0(err)
			if len(found) != 0 {
				panic(fmt.Sprint("found ", len(found)))
			}
		}
	}
}

var benchSweep = fsm.Must[size](fsm.Spec[state, event]{
	Name: "bench-sweep", Initial: "idle", Actors: []fsm.Actor{"user"},
	States: []fsm.State[state]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional}},
	Rows: fsm.Rows(
		fsm.Move[state, event]("idle", "go", "busy").By("user"),
		fsm.Move[state, event]("busy", "done", "idle").By("user"),
		fsm.Return[state, event]("busy", "late").After(time.Hour),
	),
})

func BenchmarkRatios(*testing.B) {
	hand, fire := fleet(1000)
	figures := ratio.Measure([]ratio.Pair{{Name: "lifecycle/Fire", Goal: 10, Base: hand, Subject: fire}}, nil)
	hand, fire = fleet(1_000_000) // after the first pair, whose heap is small
	figures = append(figures, ratio.Measure([]ratio.Pair{
		{Name: "lifecycle/Fire-of-1000000", Goal: 15, Base: hand, Subject: fire},
	}, nil)...)
	figures = append(figures, ratio.Figure{
		Name: "lifecycle/Fire-growth-1000-to-1000000", Value: figures[1].Value / figures[0].Value, Goal: 1.5,
	})
	sweep := idleSweep(49_000)
	start := time.Now()
	const sweeps = 10
	sweep(sweeps)
	figures = append(figures, ratio.Figure{
		Name: "lifecycle/milliseconds-of-an-idle-sweep-of-49000-busy", Value: float64(time.Since(start).Microseconds()) / 1000 / sweeps, Goal: 50,
	})
	ratio.Print(os.Stdout, figures)
	ratio.PrintMachine(os.Stdout)
}
