package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// keptOperation is all that somebody may keep of an operation.
type keptOperation struct {
	handle *lifecycle.Handle[state, size]
	ctx    context.Context // of the work
	child  context.Context // made from it
	task   *lifecycle.Task
}

// says is what it says to whoever asks, as text.
func (k *keptOperation) says(t *testing.T) string {
	rec, err := k.handle.Wait(t.Context())
	<-k.handle.Done()
	task := lifecycle.TaskOf(k.ctx)
	stale := errors.Is(k.task.Heartbeat(t.Context()), lifecycle.ErrStale)
	return fmt.Sprintf("%+v\n%+v %v\n%d\n%v %v\n%v %v %t\n%+v %d %s %t", k.handle.Admitted(), rec, err, k.handle.Operation(),
		k.ctx.Err(), context.Cause(k.ctx), k.child.Err(), context.Cause(k.child), task == k.task && lifecycle.TaskOf(k.child) == task,
		task.Key, task.Operation, task.Owner, stale)
}

// someWork keeps what it sees of its operation, and ends in one of many ways.
func someWork(n int, k *keptOperation) lifecycle.Work {
	w := lifecycle.Func(func(ctx context.Context) error {
		k.ctx, k.task = ctx, lifecycle.TaskOf(ctx)
		var stop context.CancelFunc
		k.child, stop = context.WithCancel(ctx)
		_ = stop // it is to end with its parent
		switch n % 5 {
		case 0:
			lifecycle.EditOutcome(ctx, func(p *size) error { p.N = n; return nil })
		case 1:
			return fmt.Errorf("failure %d", n)
		case 2:
			panic(fmt.Sprint("panic ", n))
		case 3:
			return told(ctx)
		}
		return nil
	})
	if n%5 == 3 {
		w.Timeout = time.Nanosecond
	}
	return w
}

// TestKeptOperationsStayAsTheyWere: handles, tasks and contexts of operations that
// are over say the same for ever, however many operations come after them.
func TestKeptOperationsStayAsTheyWere(t *testing.T) {
	const crowd, each, further = 4, 50, 1000
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	var all [crowd][each]keptOperation
	var said [crowd][each]string
	perform := func(who, n int, k *keptOperation) {
		id := fmt.Sprintf("%d-%d", who, n%7)
		var change *lifecycle.Change[size]
		if n%3 == 0 {
			change = &lifecycle.Change[size]{Reason: fmt.Sprint("reason ", n)}
		}
		rec, _ := m.Get(t.Context(), id)
		e := map[state]event{"": "create", "stopped": "start", "running": "stop", "failed": "delete"}[rec.State]
		h, err := m.Do(t.Context(), id, e, user, someWork(n, k), change)
		if err != nil {
			t.Error(err)
			return
		}
		k.handle = h
		_, _ = h.Wait(t.Context())
	}
	for who := range crowd {
		for n := range each {
			perform(who, n, &all[who][n])
			said[who][n] = all[who][n].says(t)
		}
	}
	var group sync.WaitGroup
	for who := range crowd {
		group.Go(func() {
			for n := range further {
				var k keptOperation
				perform(who, each+n, &k)
				old := &all[who][n%each]
				// What is said with an old handle, task or context is said to nobody.
				old.handle.Cancel(errors.New("too late"))
				lifecycle.EditOutcome(old.ctx, func(p *size) error { p.N = -1; return nil })
				if now := old.says(t); now != said[who][n%each] {
					t.Errorf("operation %d of %d has said\n%s\nand says now\n%s", n%each, who, said[who][n%each], now)
					return
				}
				if rec, _ := m.Get(t.Context(), k.task.ID); rec.Payload.N < 0 {
					t.Errorf("edited by an operation that was over: %+v", rec)
				}
			}
		})
	}
	// Waiters of their own for every one of them, all the while.
	for who := range crowd {
		group.Go(func() {
			for n := range 10 * each {
				if now := all[who][n%each].says(t); now != said[who][n%each] {
					t.Errorf("operation %d of %d has said\n%s\nand says now\n%s", n%each, who, said[who][n%each], now)
					return
				}
			}
		})
	}
	group.Wait()
}

// TestAbandonedWorkKeepsItsOperation: the queue gave it up, many others come after
// it, and then it ends: for nobody but itself.
func TestAbandonedWorkKeepsItsOperation(t *testing.T) {
	q := new(queue.Queuer[lifecycle.Key])
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
	const crowd = 8
	end, begun := make(chan struct{}), make(chan context.Context)
	var stuck sync.WaitGroup
	stuck.Add(crowd)
	work := lifecycle.Func(func(ctx context.Context) error {
		defer stuck.Done()
		begun <- ctx
		<-end
		lifecycle.EditOutcome(ctx, func(p *size) error { p.N = -1; return nil })
		return nil
	})
	var kept []keptOperation
	var said []string
	for n := range crowd {
		id := fmt.Sprint("stuck-", n)
		stopped(t, m, id)
		op, err := m.Do(t.Context(), id, "start", user, work, nil)
		require.NoError(t, err)
		k := keptOperation{handle: op}
		k.ctx = <-begun
		k.child, k.task = k.ctx, lifecycle.TaskOf(k.ctx)
		require.True(t, q.Abandon(lifecycle.Key{Machine: "work-vm", ID: id}))
		_, err = k.handle.Wait(t.Context())
		require.ErrorIs(t, err, queue.ErrAbandoned)
		kept, said = append(kept, k), append(said, k.says(t))
	}
	others := func(from, to int) {
		for n := from; n < to; n++ {
			id := fmt.Sprint(n)
			h, err := m.Do(t.Context(), id, "create", user, lifecycle.Func(fine), nil)
			require.NoError(t, err)
			if n == (from+to)/2 && from == 0 {
				close(end)
			}
			rec, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, "stopped "+id, string(rec.State)+" "+rec.ID)
			require.Zero(t, rec.Payload.N)
		}
	}
	others(0, 500) // the stuck ones end meanwhile
	stuck.Wait()
	others(500, 1000)
	for n := range kept {
		require.Equal(t, said[n], kept[n].says(t))
		rec2, err := m.Get(t.Context(), kept[n].task.ID)
		require.NoError(t, err)
		require.Equal(t, state("stopped"), rec2.State)
	}
}

// TestWaitedForBeforeItIsSettled: the store hangs in the outcome, and an operator
// gives the object's place away. Who waits is not told that all is well, and reads
// nothing that is still being written; once the store answers, the word is its.
func TestWaitedForBeforeItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answer := new(queue.Queuer[lifecycle.Key]), make(chan struct{})
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n == 2 {
				<-answer
			}
			return write()
		}
		m := workers(store, lifecycle.Config[event]{Queue: q})
		h, err := m.Do(t.Context(), "a", "create", user, lifecycle.Func(fine), nil)
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, q.Abandon(lifecycle.Key{Machine: "work-vm", ID: "a"}))
		rec, err := h.Wait(t.Context())
		unwritten, ok := errors.AsType[*lifecycle.OutcomeError](err)
		require.True(t, ok, "%v", err)
		require.Error(t, unwritten.Unwritten)
		require.Equal(t, state("creating"), rec.State)
		close(answer)
		synctest.Wait()
		rec2, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, state("stopped"), rec2.State)
	})
}
