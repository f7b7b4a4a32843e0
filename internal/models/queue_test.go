package models

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/queue"
)

// submitted is an action in a trial.
type submitted struct {
	mu     sync.Mutex
	status TaskStatus
	result chan error // of its attempt
	ended  func() bool
	cancel func()
}

// begins reports whether an attempt is one of those that failed in the past.
func (s *submitted) begins(failed uint8) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Runs = true
	return s.status.Failed < failed
}

func (s *submitted) ends(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Runs = false
	if err != nil {
		s.status.Failed++
	}
	return err
}

func (s *submitted) look() TaskStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Ended = s.ended()
	return status
}

// submitting is how an action comes into a queue: the right way, or a faulty one.
type submitting func(q *queue.Queuer[string], keys []string, act *queue.Action) (ended func() bool, cancel func(), err error)

// asShipped is the right way.
func asShipped(q *queue.Queuer[string], keys []string, act *queue.Action) (func() bool, func(), error) {
	ticket, err := q.SubmitAll(context.Background(), keys, act)
	if err != nil {
		return nil, nil, err
	}
	return func() bool { return ticket.Outcome() != queue.Pending }, func() { ticket.Cancel(nil) }, nil
}

// The back-offs of a trial: one that is over when it begins, one that ends in it,
// one that does not.
const (
	past   = time.Nanosecond
	now    = time.Hour
	future = 1000 * time.Hour
)

// tryQueue runs a trial on a queue, in a bubble with a clock of its own.
func tryQueue(t *testing.T, keys [][]string, attempts int, submit submitting) func(QueueTrial) (QueueResult, error) {
	return func(trial QueueTrial) (r QueueResult, err error) {
		synctest.Test(t, func(*testing.T) {
			q := queue.Must[string](nil)
			var all [maxTasks]*submitted
			enter := func(p QueueTask) error {
				s := &submitted{result: make(chan error)}
				all[p.Task] = s
				act := &queue.Action{Retry: queue.Retry{Attempts: attempts}}
				var pauses []time.Duration
				for i := range attempts {
					pause := future
					switch {
					case i+1 < int(p.Failed) || i+1 == int(p.Failed) && !p.Pauses:
						pause = past
					case i+1 == int(p.Failed) && trial.Task == p.Task && trial.Does == QueueWake:
						pause = now
					}
					pauses = append(pauses, pause)
				}
				act.Retry.Backoff = func(attempts int, _ error) time.Duration { return pauses[attempts-1] }
				act.Run = func(ctx context.Context) error {
					if s.begins(p.Failed) { // as it did before
						return s.ends(errors.New("again"))
					}
					select {
					case err := <-s.result:
						return s.ends(err)
					case <-ctx.Done():
						return errors.Join(s.ends(nil), ctx.Err())
					}
				}
				var err error
				s.ended, s.cancel, err = submit(q, keys[p.Task], act)
				synctest.Wait()
				return err
			}
			look := func() (list [maxTasks]TaskStatus) {
				synctest.Wait()
				for i, s := range all {
					if s != nil {
						list[i] = s.look()
					}
				}
				return list
			}
			for _, p := range trial.Present {
				err = errors.Join(err, enter(p))
			}
			time.Sleep(now / 2)
			r.Before = look()
			switch s := all[trial.Task]; trial.Does {
			case QueueSubmit:
				err = errors.Join(err, enter(QueueTask{Task: trial.Task}))
			case QueueOK:
				s.result <- nil
			case QueueFail:
				s.result <- errors.New("failed")
			case QueueWake:
				time.Sleep(now)
			case QueueCancel:
				s.cancel()
			}
			r.After = look()
			q.Abort(nil)
			err = errors.Join(err, q.Terminate(context.Background()))
			time.Sleep(2 * future) // actions that pause outside the queue end too
		})
		return r, err
	}
}

// tasks stand in three lanes, of one or two keys each.
var tasks = [][]string{{"disk"}, {"disk", "vm"}, {"vm"}, {"disk"}, {"net", "vm"}}

// TestVerifyQueue explores what the shipped queue does with them, to the end.
func TestVerifyQueue(t *testing.T) {
	t.Parallel()
	m := Queue{Keys: tasks[:4], Attempts: 2, Cancels: 1}
	if long {
		m = Queue{Keys: tasks, Attempts: 3, Cancels: 2}
	}
	m.Try = tryQueue(t, m.Keys, int(m.Attempts), asShipped)
	v, err := m.Model().Explore(t.Context(), nil)
	require.NoError(t, err)
	t.Log(v)
	require.NoError(t, v.Err())
	require.Greater(t, v.States, 500)
}

// atTheEnd retries by submitting again.
func atTheEnd(q *queue.Queuer[string], keys []string, act *queue.Action) (func() bool, func(), error) {
	once := *act
	once.Retry = queue.Retry{}
	var over atomic.Bool
	settled := 0 // one attempt follows another
	once.Settle = func(_ context.Context, o queue.Outcome, _ error) {
		if settled++; o != queue.Failed || settled == act.Retry.Attempts {
			over.Store(true)
			return
		}
		go func() {
			time.Sleep(act.Retry.Backoff(settled, nil))
			if _, err := q.SubmitAll(context.Background(), keys, &once); err != nil {
				over.Store(true)
			}
		}()
	}
	_, cancel, err := asShipped(q, keys, &once)
	return over.Load, cancel, err
}

// oneLane forgets all keys but the first.
func oneLane(q *queue.Queuer[string], keys []string, act *queue.Action) (func() bool, func(), error) {
	return asShipped(q, keys[:1], act)
}

// oneKey takes all keys for one.
func oneKey(q *queue.Queuer[string], _ []string, act *queue.Action) (func() bool, func(), error) {
	return asShipped(q, []string{"all"}, act)
}

// forEver tries an action once more than it may be.
func forEver(q *queue.Queuer[string], keys []string, act *queue.Action) (func() bool, func(), error) {
	act.Retry.Attempts++
	return asShipped(q, keys, act)
}

// TestFaultyQueues: what is wrong with a queue is found.
func TestFaultyQueues(t *testing.T) {
	for name, test := range map[string]struct {
		submit   submitting
		property string
		steps    int
	}{
		"at the end": {atTheEnd, "one at a time, in order", 3},
		"one lane":   {oneLane, "one at a time, in order", 2},
		"one key":    {oneKey, "every wait has a cause", 2},
		"for ever":   {forEver, "no attempt too many", 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := Queue{Keys: tasks, Attempts: 2, Try: tryQueue(t, tasks, 2, test.submit)}
			v, err := m.Model().Explore(t.Context(), nil)
			require.NoError(t, err)
			t.Log(v)
			require.Equal(t, explore.Violated, v.Outcome)
			require.Equal(t, test.property, v.Property)
			require.Len(t, v.Trace.Steps, test.steps)
		})
	}
}
