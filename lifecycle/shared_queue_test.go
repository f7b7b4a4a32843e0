package lifecycle_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// lanes stands for a table of places that several processes share: those of a key
// are in order, and the first has its turn.
type lanes struct {
	mu    sync.Mutex
	of    map[lifecycle.Key][]*place
	moved chan struct{} // closed when an object leaves
}

type place struct{ keys []lifecycle.Key }

func (l *lanes) reserve(keys []lifecycle.Key) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{keys}
	for _, k := range keys {
		l.of[k] = append(l.of[k], p)
	}
	return p
}

func (l *lanes) leave(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range p.keys {
		l.of[k] = slices.DeleteFunc(l.of[k], func(o *place) bool { return o == p })
	}
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *lanes) turn(ctx context.Context, p *place) error {
	for {
		l.mu.Lock()
		first := !slices.ContainsFunc(p.keys, func(k lifecycle.Key) bool { return l.of[k][0] != p })
		moved := l.moved
		l.mu.Unlock()
		if first {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sharedQueue is a queue of one of several processes: its own runs the actions and
// returns the tickets, and the shared lanes give the turns.
type sharedQueue struct {
	*queue.Queuer[lifecycle.Key]
	shared *lanes
	mu     *sync.Mutex // both places are taken in one order, else processes might wait for each other
}

func (q sharedQueue) Submit(ctx context.Context, key lifecycle.Key, act *queue.Action) (*queue.Ticket[lifecycle.Key], error) {
	return q.SubmitAll(ctx, []lifecycle.Key{key}, act)
}

func (q sharedQueue) SubmitAll(ctx context.Context, keys []lifecycle.Key, act *queue.Action) (*queue.Ticket[lifecycle.Key], error) {
	q.mu.Lock()
	placed := sync.OnceFunc(q.mu.Unlock)
	defer placed()
	p := q.shared.reserve(keys)
	own := *act
	own.Admit = func(ctx context.Context) error {
		placed()
		return act.Admit(ctx)
	}
	own.Guard = func(ctx context.Context) error {
		if err := q.shared.turn(ctx, p); err != nil {
			return err
		}
		if act.Guard == nil { // work of an operation has none
			return nil
		}
		return act.Guard(ctx)
	}
	own.Settle = func(ctx context.Context, how queue.Outcome, err error) {
		defer q.shared.leave(p)
		if act.Settle != nil {
			act.Settle(ctx, how, err)
		}
	}
	t, err := q.Queuer.SubmitAll(ctx, keys, &own)
	if err != nil {
		q.shared.leave(p)
	}
	return t, err
}

// Config.Queue takes a queue that several processes share. Work of Occupy in one
// process holds up operations of the other, in one order.
func TestQueueOfSeveralProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		shared := &lanes{of: map[lifecycle.Key][]*place{}, moved: make(chan struct{})}
		process := func() *lifecycle.Manager[state, event, size] {
			return workers(store, lifecycle.Config[event]{
				Queue: sharedQueue{queue.Must[lifecycle.Key](nil), shared, new(sync.Mutex)},
			})
		}
		one, other := process(), process()
		wait(t, do(t, one, "a", "create", "user", nothing, nil))
		var mu sync.Mutex
		var order []string
		logging := func(name string, takes time.Duration) lifecycle.Work {
			return lifecycle.Func(func(ctx context.Context) error {
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				select {
				case <-time.After(takes):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return nil
			})
		}
		first := occupy(t, one, "a", "migrate", logging("migrate", time.Hour))
		second := do(t, other, "a", "start", "user", logging("start", time.Minute), nil)
		_, err := one.Do(t.Context(), "a", "start", "user", nothing, nil)
		require.ErrorIs(t, err, fsm.ErrNotAllowed)
		third := occupy(t, one, "a", "migrate", logging("again", time.Minute))
		withdrawn := occupy(t, other, "a", "migrate", logging("never", time.Minute))
		synctest.Wait()
		require.Equal(t, queue.Pending, first.Outcome())
		require.Equal(t, []string{"migrate"}, order)
		withdrawn.Cancel(nil)
		require.Equal(t, state("running"), wait(t, second).State)
		require.NoError(t, first.Err())
		require.NoError(t, third.Wait(t.Context()))
		require.Equal(t, []string{"migrate", "start", "again"}, order)
		require.Equal(t, queue.Canceled, withdrawn.Outcome())
		require.Empty(t, shared.of[lifecycle.Key{Machine: "work-vm", ID: "a"}])
	})
}
