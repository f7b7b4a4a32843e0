package fsm_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// gathering is a payload whose guard waits until everybody is in it, so that
// all of them have read the same status when the first one compares.
type gathering struct{ all *sync.WaitGroup }

var gather = fsm.When("gather", func(_ context.Context, _, g *gathering) error {
	g.all.Done()
	g.all.Wait()
	return nil
})

func gatherings(t *testing.T) *fsm.Machine[string, string, gathering] {
	m, err := fsm.New[gathering](spec{
		Name: "race", Initial: "start", Actors: []fsm.Actor{user},
		States: []fsm.State[string]{{Name: "start"}, {Name: "way", Kind: fsm.Transitional, Manual: "us"}, {Name: "end"}},
		Rows: fsm.Rows(
			fsm.Move("start", "move", "end").If(gather),
			fsm.Move("start", "self", "start").If(gather),
			fsm.Move("start", "force", "start").If(gather).OnlyForced(),
			fsm.Move("end", "back", "way"),
			fsm.Move("way", "self", "way").If(gather),
			fsm.Return("way", "return").If(gather),
			fsm.Ignore("way", "ignore").If(gather),
		),
	})
	require.NoError(t, err)
	return m
}

const crowd = 8

// together calls f from many goroutines and counts who won. Everybody else must
// have been told of a conflict.
func together(t *testing.T, f func() error) (winners int) {
	errs := make([]error, crowd)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	for _, err := range errs {
		if err == nil {
			winners++
		} else {
			require.Equal(t, fsm.ErrConflict, sentinel(t, err))
		}
	}
	return winners
}

func TestEveryMoveHasExactlyOneWinner(t *testing.T) {
	plain := gatherings(t)
	for _, m := range []*fsm.Machine[string, string, gathering]{plain, plain.Observe(fsm.Observer{Moved: func(fsm.Moved) {}})} {
		for _, c := range []struct {
			event   string
			at      fsm.Status[string]
			force   bool
			want    fsm.Status[string]
			winners int
		}{
			{"move", m.At("start"), false, m.At("end"), 1},
			{"self", m.At("start"), false, m.At("start"), 1},
			{"self", m.At("start"), true, m.At("start"), 1},
			{"force", m.At("start"), true, m.At("start"), 1},
			{"self", status("way", "end"), false, status("way", "end"), 1},
			{"return", status("way", "end"), false, m.At("end"), 1},
			{"ignore", status("way", "end"), false, status("way", "end"), crowd}, // nobody moves
		} {
			for range 20 {
				in := sure(m.InstanceAt(c.at))
				g := &gathering{new(sync.WaitGroup)}
				g.all.Add(crowd)
				fire := in.Fire
				if c.force {
					fire = in.FireForced
				}
				winners := together(t, func() error { return second(fire(t.Context(), c.event, user, g)) })
				require.Equal(t, c.winners, winners, c.event)
				require.Equal(t, c.want, in.Status())
			}
		}
	}
}

func TestEveryDecidedStepHasExactlyOneWinner(t *testing.T) {
	m := newDisks(t)
	for _, event := range []string{"resize", "delete", "lost"} {
		for range 20 {
			in := sure(m.InstanceAt(m.At("CREATED")))
			var decided sync.WaitGroup
			decided.Add(crowd)
			winners := together(t, func() error {
				move, err := in.Next(t.Context(), event, user, &disk{free: 1})
				decided.Done()
				decided.Wait()
				return errors.Join(err, second(in.CompareAndSwap(move)))
			})
			require.Equal(t, 1, winners, event)
		}
	}
}

// crowded is a table without guards, for the short way through Fire, and with
// one that lets others in, for the long one.
func crowded() fsm.Spec[string, string] {
	pause := fsm.When("pause", func(context.Context, *none, *none) error {
		runtime.Gosched()
		return nil
	})
	return spec{
		Name: "crowded", Initial: "a", Actors: []fsm.Actor{user, worker},
		States: []fsm.State[string]{{Name: "a"}, {Name: "b", Kind: fsm.Transitional, Manual: "us"}, {Name: "c"}},
		Rows: fsm.Rows(
			fsm.Move("a", "next", "b"),
			fsm.Move("b", "next", "c").By(user).If(pause),
			fsm.Move("c", "next", "a").If(pause),
			fsm.Return("b", "undo"),
			fsm.Move("c", "undo", "b"),
			fsm.Move("a", "self", "a").AlsoFrom("b", "c"),
			fsm.Move("a", "slow", "a").AlsoFrom("b", "c").If(pause),
			fsm.Ignore("b", "nod"),
		),
	}
}

// The moves that observers were told of are one unbroken way of the object, and
// as many as there were callers who won.
func TestObserversHistoryIsOneWay(t *testing.T) {
	var mu sync.Mutex
	var history []fsm.Moved
	m := mustNew(t, crowded()).Observe(fsm.Observer{Moved: func(mv fsm.Moved) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, mv)
	}})
	in := m.Instance()
	var won atomic.Int64
	var wg sync.WaitGroup
	for g := range crowd {
		wg.Go(func() {
			for i := range 400 {
				e := []string{"next", "self", "slow", "undo", "nod"}[(i*7+g)%5]
				_, err := in.Fire(t.Context(), e, user, nil)
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, fsm.ErrConflict) && !errors.Is(err, fsm.ErrNotAllowed) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, won.Load(), len(history))
	require.Positive(t, won.Load())

	// A way enters every state as often as it leaves it, but for its two ends.
	balance := map[fsm.Status[string]]int{m.Start(): 1}
	balance[in.Status()]--
	for _, mv := range history {
		before := status(mv.From, mv.Origin)
		step, err := m.Next(t.Context(), before, mv.Event, mv.Actor, nil)
		require.NoError(t, err, "a move that the table does not have")
		require.Equal(t, mv.To, step.State)
		balance[before]--
		balance[step.Status]++
	}
	for at, n := range balance {
		require.Zero(t, n, "%v", at)
	}
}

// told is one call and what came of it.
type told struct {
	event      string
	actor      fsm.Actor
	effect     bool // Next and CompareAndSwap instead of Fire
	step       fsm.Step[string]
	err        error
	begin, end int64
	client     int
}

// record drives one instance from several goroutines and gives their calls with
// the times of a logical clock.
func record(t *testing.T, clients, calls int, pick func(client, call int) told) []told {
	m := mustNew(t, crowded())
	in := m.Instance()
	var clock atomic.Int64
	logs := make([][]told, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range calls {
				x := pick(c, i)
				x.client, x.begin = c, clock.Add(1)
				if x.effect {
					var move fsm.Pending[string]
					if move, x.err = in.Next(t.Context(), x.event, x.actor, nil); x.err == nil {
						runtime.Gosched()
						x.step, x.err = in.CompareAndSwap(move)
					}
				} else {
					x.step, x.err = in.Fire(t.Context(), x.event, x.actor, nil)
				}
				x.end = clock.Add(1)
				logs[c] = append(logs[c], x)
			}
		})
	}
	wg.Wait()
	var all []told
	for _, l := range logs {
		all = append(all, l...)
	}
	return all
}

func TestConflictOnlyWhereSomebodyMoved(t *testing.T) {
	calls := record(t, 4, 400, func(client, call int) told {
		return told{event: []string{"slow", "next", "self"}[(client+call)%3], actor: user, effect: call%4 == 0}
	})
	// Whether there is a conflict at all is luck: TestEveryMoveHasExactlyOneWinner makes one for sure.
	for _, c := range calls {
		if !errors.Is(c.err, fsm.ErrConflict) {
			continue
		}
		somebody := false
		for _, w := range calls {
			if w.err == nil && !w.step.Ignored && w.client != c.client && w.begin < c.end && c.begin < w.end {
				somebody = true
				break
			}
		}
		require.True(t, somebody, "a conflict with nobody: %+v", c)
	}
}

// A small history of concurrent calls can be put in an order in which each
// comes to what the naive reading of the spec says.
func TestInstanceIsLinearizable(t *testing.T) {
	s := crowded()
	n := naive[string, string]{spec: s, agrees: func(string) error { return nil }}
	model := porcupine.Model{
		Init: func() any { return status("a", "a") },
		Step: func(state, input, output any) (bool, any) {
			at, call := state.(fsm.Status[string]), output.(told)
			if errors.Is(call.err, fsm.ErrConflict) {
				return true, state // see TestConflictOnlyWhereSomebodyMoved
			}
			want := n.next(at, call.event, call.actor, false)
			if want.Err != nil || call.err != nil {
				return want.Err != nil && errors.Is(call.err, want.Err), state
			}
			ok := call.step.Status == want.Status && call.step.Row == want.Row && call.step.Ignored == want.Ignored
			return ok, want.Status
		},
	}
	for round := range 60 {
		calls := record(t, 4, 10, func(client, call int) told {
			k := round*31 + client*7 + call*3
			return told{
				event: []string{"next", "slow", "undo", "self", "nod", "next"}[k%6], effect: k%5 == 0,
				actor: []fsm.Actor{user, user, worker}[k/2%3],
			}
		})
		var history []porcupine.Operation
		for _, c := range calls {
			history = append(history, porcupine.Operation{ClientId: c.client, Input: c.event, Output: c, Call: c.begin, Return: c.end})
		}
		require.True(t, porcupine.CheckOperations(model, history), "%+v", calls)
	}
}

// A machine and its table are shared by everybody; only the race detector can
// say no here.
func TestMachineIsSafeForConcurrentUse(t *testing.T) {
	m := newDisks(t)
	table := doorTable()
	var wg sync.WaitGroup
	for range crowd {
		wg.Go(func() {
			in := m.Observe(fsm.Observer{Moved: func(fsm.Moved) {}}).Instance()
			for _, e := range []string{"create", "create", "explode"} {
				_, err := in.Fire(t.Context(), e, user, nil)
				if err != nil {
					_ = err.Error()
				}
			}
			at := m.At("CREATED")
			_, _ = m.Next(t.Context(), at, "resize", user, nil)
			_, _ = m.NextTo(t.Context(), at, "DELETING", user, nil)
			for range m.Permitted(at, user) {
			}
			for range m.Table().Edges() {
			}
			for range table.Edges() {
			}
			_ = table.Problems()
			_, _ = m.ParseStatus("DELETING", "CREATED")
			var asked []string
			_, err := fsm.Bind[person, phase, signal](table, doorGuards(&asked)...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
