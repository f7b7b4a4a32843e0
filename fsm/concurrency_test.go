package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
)

// gathering is a payload whose guard waits until all callers are in it. All of them
// have then loaded the same status before the first one compares.
type gathering struct{ all *sync.WaitGroup }

var gather = fsm.When("gather", func(_ context.Context, _, g *gathering) error {
	g.all.Done()
	g.all.Wait()
	return nil
})

func gatherings(t *testing.T) *fsm.Machine[string, string, gathering] {
	m, err := fsm.New[gathering](spec{
		Name: "race", Initial: "start", Actors: []fsm.Actor{user},
		States: []fsm.State[string]{{Name: "start"}, {Name: "way", Kind: fsm.Transitional, Manual: "user"}, {Name: "end"}},
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

func TestEveryMoveHasExactlyOneWinner(t *testing.T) {
	plain := gatherings(t)
	observed := plain.Observe(fsm.Observer{Moved: func(context.Context, fsm.Moved) {}})
	for kind, m := range map[string]*fsm.Machine[string, string, gathering]{"plain": plain, "observed": observed} {
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
			{"ignore", status("way", "end"), false, status("way", "end"), crowd}, // no call moves the object
		} {
			t.Run(fmt.Sprintf("%s, %s in %v, forced %v", kind, c.event, c.at, c.force), func(t *testing.T) {
				for range 20 {
					in := instanceAt(t, m, c.at)
					g := &gathering{new(sync.WaitGroup)}
					g.all.Add(crowd)
					fire := in.Fire
					if c.force {
						fire = in.FireForced
					}
					errs := make([]error, crowd)
					var wg sync.WaitGroup
					for i := range errs {
						wg.Go(func() { _, errs[i] = fire(t.Context(), c.event, user, g) })
					}
					wg.Wait()
					winners := 0
					for _, err := range errs {
						if err == nil {
							winners++
						} else {
							require.Equal(t, fsm.ErrConflict, sentinel(t, err))
						}
					}
					require.Equal(t, c.winners, winners)
					require.Equal(t, c.want, in.Status())
				}
			})
		}
	}
}

// crowded is a table with guards that let other goroutines run.
func crowded() fsm.Spec[string, string] {
	pause := fsm.When("pause", func(context.Context, *none, *none) error {
		runtime.Gosched()
		return nil
	})
	return spec{
		Name: "crowded", Initial: "a", Actors: []fsm.Actor{user, worker},
		States: []fsm.State[string]{{Name: "a"}, {Name: "b", Kind: fsm.Transitional, Manual: "user"}, {Name: "c"}},
		Rows: fsm.Rows(
			fsm.Move("a", "next", "b"),
			fsm.Move("b", "next", "c").By(user).If(pause),
			fsm.Move("c", "next", "a").If(pause),
			fsm.Return("b", "undo"),
			fsm.Move("c", "undo", "b"),
			fsm.Move("a", "self", "a").AlsoFrom("b", "c"),
			fsm.Move("a", "slow", "a").AlsoFrom("b", "c").If(pause),
			fsm.Ignore("b", "wait"),
		),
	}
}

// The moves that observers receive are one path of the object. There are as many
// moves as calls without an error.
func TestObservedMovesAreOnePath(t *testing.T) {
	var mu sync.Mutex
	var history []fsm.Moved
	m := mustNew(t, crowded()).Observe(fsm.Observer{Moved: func(_ context.Context, mv fsm.Moved) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, mv)
	}})
	in := m.Instance()
	var won atomic.Int64
	var all errgroup.Group
	for g := range crowd {
		all.Go(func() error {
			for i := range 400 {
				e := []string{"next", "self", "slow", "undo", "wait"}[(i*7+g)%5]
				_, err := in.Fire(t.Context(), e, user, nil)
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, fsm.ErrConflict) && !errors.Is(err, fsm.ErrNotAllowed) {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	require.EqualValues(t, won.Load(), len(history))
	require.Positive(t, won.Load())

	// A path enters every state as often as it leaves it, except at its two ends.
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

// call is one Fire and its result.
type call struct {
	event      string
	actor      fsm.Actor
	step       fsm.Step[string]
	err        error
	begin, end int64
	client     int
}

// record fires one instance from several goroutines and returns the calls with the
// times of a logical clock.
func record(t *testing.T, clients, calls int, pick func(client, i int) call) []call {
	m := mustNew(t, crowded())
	in := m.Instance()
	var clock atomic.Int64
	logs := make([][]call, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range calls {
				x := pick(c, i)
				x.client, x.begin = c, clock.Add(1)
				x.step, x.err = in.Fire(t.Context(), x.event, x.actor, nil)
				x.end = clock.Add(1)
				logs[c] = append(logs[c], x)
			}
		})
	}
	wg.Wait()
	var all []call
	for _, l := range logs {
		all = append(all, l...)
	}
	return all
}

// Whether a conflict occurs here is chance. TestEveryMoveHasExactlyOneWinner states
// that it occurs if it must.
func TestConflictOnlyIfAnotherCallMoved(t *testing.T) {
	calls := record(t, 4, 400, func(client, i int) call {
		return call{event: []string{"slow", "next", "self"}[(client+i)%3], actor: user}
	})
	for _, c := range calls {
		if !errors.Is(c.err, fsm.ErrConflict) {
			continue
		}
		another := false
		for _, w := range calls {
			if w.err == nil && !w.step.Ignored && w.client != c.client && w.begin < c.end && c.begin < w.end {
				another = true
				break
			}
		}
		require.True(t, another, "a conflict without another move: %+v", c)
	}
}

// The calls of a short concurrent history have an order in which each has the result
// of the reference.
func TestInstanceIsLinearizable(t *testing.T) {
	r := reference[string, string]{spec: crowded(), guard: func(string) error { return nil }}
	model := porcupine.Model{
		Init: func() any { return status("a", "a") },
		Step: func(state, input, output any) (bool, any) {
			at, c := state.(fsm.Status[string]), output.(call)
			if errors.Is(c.err, fsm.ErrConflict) {
				return true, state // see TestConflictOnlyIfAnotherCallMoved
			}
			want := r.next(at, c.event, c.actor, false)
			if want.Err != nil || c.err != nil {
				return want.Err != nil && errors.Is(c.err, want.Err), state
			}
			return c.step == want.Step, want.Status
		},
	}
	for round := range 60 {
		calls := record(t, 4, 10, func(client, i int) call {
			k := round*31 + client*7 + i*3
			return call{
				event: []string{"next", "slow", "undo", "self", "wait", "next"}[k%6],
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

// The race detector checks that goroutines can share a machine and its table.
func TestMachineIsSafeForConcurrentUse(t *testing.T) {
	m := newDisks(t)
	table := doorTable()
	var all errgroup.Group
	for range crowd {
		all.Go(func() error {
			in := m.Observe(fsm.Observer{Moved: func(context.Context, fsm.Moved) {}}).Instance()
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
			_, err := fsm.Bind[person, phase, signal](table, doorGuards(new([]string))...)
			return err
		})
	}
	require.NoError(t, all.Wait())
}
