package lifecycle_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// destroy is the chain that takes a running VM away.
func destroy(stop, drop lifecycle.Work) []lifecycle.Step[event] {
	return []lifecycle.Step[event]{{Event: "stop", Work: stop}, {Event: "delete", Work: drop}}
}

// calls are handlers that note what they are called with.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, line)
}

func (c *calls) handler(name string) lifecycle.Handler {
	return func(_ context.Context, args []byte) error {
		c.note(name + " " + string(args))
		return nil
	}
}

// TestSteps: every step is an operation of its own; together they keep the
// object's place.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		var log calls
		work := func(name string) lifecycle.Work {
			return lifecycle.Func(func(ctx context.Context) error {
				time.Sleep(time.Second)
				log.note(name)
				return nil
			})
		}
		change := resize(5)
		change.Reason = "not needed any more"
		h := must(m.DoSteps(t.Context(), "a", user, destroy(work("stop"), work("delete")), change))(t)
		require.EqualValues(t, 3, h.Operation())
		require.Equal(t, state("stopping"), h.Admitted().State)
		require.Equal(t, size{N: 5}, h.Admitted().Payload)
		rec, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, state("none"), rec.State)
		require.Equal(t, []string{"stop", "delete"}, log.list)
		require.Equal(t, []string{
			"3: running -stop-> stopping by user", "3: stopping -done-> stopped by worker",
			"4: stopped -delete-> deleting by user", "4: deleting -done-> none by worker",
		}, story(t, m, "a", 4))
	})
}

// TestStepsAreKept: what the caller, or a handler, does with the steps and their
// arguments changes nothing.
func TestStepsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
			"stop": func(ctx context.Context, args []byte) error {
				time.Sleep(time.Second)
				log.note("stop " + string(args))
				args[0] = 'X'
				require.Equal(t, "x", string(must(store.Get(ctx, lifecycle.TaskOf(ctx).Key))(t).Args))
				return nil
			},
			"delete": log.handler("delete"),
		}})
		running(t, m, "a")
		args := []byte("x")
		steps := destroy(lifecycle.Named("stop", args), lifecycle.Named("delete", []byte("y")))
		h := must(m.DoSteps(t.Context(), "a", user, steps, nil))(t)
		args[0] = 'A'
		steps[0], steps[1] = lifecycle.Step[event]{}, lifecycle.Step[event]{}
		require.Equal(t, "x", string(must(store.Get(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "a"}))(t).Args))
		_, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"stop x", "delete y"}, log.list)

		running(t, m, "b")
		args = []byte("x")
		must(m.Do(t.Context(), "b", "stop", user, lifecycle.Named("stop", args), nil))(t)
		synctest.Wait()
		require.Equal(t, "x", string(must(store.Get(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "b"}))(t).Args))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []byte("x"), args)
	})
}

// TestStepsAnew: a chain may remove the object and make it again.
func TestStepsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		h := must(m.DoSteps(t.Context(), "a", user, []lifecycle.Step[event]{
			{Event: "delete", Work: lifecycle.Func(fine)}, {Event: "create", Work: lifecycle.Func(fine)},
		}, nil))(t)
		rec, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, state("stopped"), rec.State)
		require.Equal(t, size{}, rec.Payload)
		require.EqualValues(t, 3, rec.Operation)
	})
}

// TestStepsEnd: the ways in which a chain ends before its end. What was done
// stays done, and no step is left in the record.
func TestStepsEnd(t *testing.T) {
	cases := map[string]struct {
		first, second lifecycle.Handler
		meanwhile     func(t *testing.T, m *sizedManager, h *lifecycle.Handle[state, size], q *queue.Queuer[lifecycle.Key]) // between the steps
		want          lifecycle.Outcome
		operation     lifecycle.OpID
		is            error
		to            state
	}{
		"the first fails": {
			first: func(context.Context, []byte) error { return errBoom },
			want:  lifecycle.Failed, operation: 3, is: errBoom, to: "running",
		},
		"the second fails": {
			second: func(context.Context, []byte) error { return errBoom },
			want:   lifecycle.Failed, operation: 4, is: errBoom, to: "failed",
		},
		"the second panics": {
			second: func(context.Context, []byte) error { panic(errBoom) },
			want:   lifecycle.Panicked, operation: 4, is: errBoom, to: "failed",
		},
		"moved in between": {
			meanwhile: func(t *testing.T, m *sizedManager, _ *lifecycle.Handle[state, size], _ *queue.Queuer[lifecycle.Key]) {
				must(m.Fire(t.Context(), "a", "start", user, nil))(t)
			},
			want: lifecycle.Failed, operation: 3, is: lifecycle.ErrConflict, to: "starting",
		},
		"canceled in between": {
			meanwhile: func(_ *testing.T, _ *sizedManager, h *lifecycle.Handle[state, size], _ *queue.Queuer[lifecycle.Key]) {
				h.Cancel(errBoom)
			},
			want: lifecycle.Canceled, operation: 3, is: errBoom, to: "stopped",
		},
		"the process ends in between": {
			meanwhile: func(_ *testing.T, _ *sizedManager, _ *lifecycle.Handle[state, size], q *queue.Queuer[lifecycle.Key]) {
				q.Abort(nil)
			},
			want: lifecycle.Canceled, operation: 3, is: queue.ErrAborted, to: "stopped",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log calls
				store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
				q := new(queue.Queuer[lifecycle.Key])
				owner := must(lifecycle.Join(t.Context(), store.MemoryStore, "p", 0))(t)
				defer func() { require.NoError(t, owner.Leave(t.Context())) }()
				config := lifecycle.Config[event]{Queue: q, Owner: owner, Handlers: map[string]lifecycle.Handler{
					"stop": log.handler("stop"), "delete": log.handler("delete"),
				}}
				if c.first != nil {
					config.Handlers["stop"] = c.first
				}
				if c.second != nil {
					config.Handlers["delete"] = c.second
				}
				m := workers(store, config)
				other := workers(store.MemoryStore, lifecycle.Config[event]{})
				running(t, m, "a")
				store.reset()
				ready := make(chan *lifecycle.Handle[state, size], 1)
				store.onCommit = func(n int, commit *lifecycle.Commit, write func() error) error {
					err := write()
					if n == 2 && c.meanwhile != nil { // the outcome of the first step
						c.meanwhile(t, other, <-ready, q)
					}
					return err
				}
				h := must(m.DoSteps(t.Context(), "a", user, destroy(lifecycle.Named("stop", nil), lifecycle.Named("delete", nil)), nil))(t)
				ready <- h
				_, err := h.Wait(t.Context())
				e := outcomeError(t, err)
				require.Equal(t, c.want, e.Outcome, "%v", err)
				require.Equal(t, c.operation, e.Operation)
				require.ErrorIs(t, err, c.is)
				stored := must(store.MemoryStore.Get(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "a"}))(t)
				require.Equal(t, string(c.to), stored.State)
				require.Empty(t, stored.Steps, "a step is left over")
				require.Empty(t, stored.Work)
				require.Empty(t, stored.Owner)
			})
		})
	}
}

// TestStepsRefused: the next step's event is refused by the table where the
// object is.
func TestStepsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
			"ok": func(context.Context, []byte) error { return nil },
		}})
		running(t, m, "a")
		h := must(m.DoSteps(t.Context(), "a", user, []lifecycle.Step[event]{
			{Event: "stop", Work: lifecycle.Named("ok", nil)}, {Event: "reboot", Work: lifecycle.Named("ok", nil)},
		}, nil))(t)
		rec, err := h.Wait(t.Context())
		e := outcomeError(t, err)
		require.Equal(t, lifecycle.Failed, e.Outcome)
		require.ErrorIs(t, err, fsm.ErrNotAllowed)
		require.Equal(t, state("stopped"), rec.State)
		stored := must(store.Get(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "a"}))(t)
		require.Empty(t, stored.Steps)
	})
}

// TestStepsLost: the operation of the first step is taken away; the second is not
// begun.
func TestStepsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{})
		running(t, m, "a")
		h := must(m.DoSteps(t.Context(), "a", user, destroy(lifecycle.Func(func(context.Context) error {
			time.Sleep(2 * time.Minute)
			return nil
		}), lifecycle.Func(func(context.Context) error { t.Error("it ran"); return nil })), nil))(t)
		time.Sleep(time.Minute + 1)
		require.Len(t, must(workers(store, lifecycle.Config[event]{}).Sweep(t.Context()))(t), 1)
		_, err := h.Wait(t.Context())
		e := outcomeError(t, err)
		require.Equal(t, lifecycle.Lost, e.Outcome)
		require.EqualValues(t, 3, e.Operation)
		require.Equal(t, 1, strings.Count(err.Error(), "operation 3 of"), "%v", err)
		require.Equal(t, state("running"), must(m.Get(t.Context(), "a"))(t).State)
	})
}

// TestStepsInvalid: nothing is begun where a later step is wrong.
func TestStepsInvalid(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	running(t, m, "a")
	for name, steps := range map[string][]lifecycle.Step[event]{
		"none":               nil,
		"a step without one": destroy(lifecycle.Func(fine), lifecycle.Work{}),
		"unknown handler":    destroy(lifecycle.Func(fine), lifecycle.Named("nobody", nil)),
	} {
		_, err := m.DoSteps(t.Context(), "a", user, steps, nil)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, name)
		require.Equal(t, state("running"), must(m.Get(t.Context(), "a"))(t).State)
	}
}

// TestStepsUnknownEvent: also of a later step.
func TestStepsUnknownEvent(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	running(t, m, "a")
	steps := destroy(lifecycle.Func(fine), lifecycle.Func(fine))
	steps[1].Event = "fly"
	_, err := m.DoSteps(t.Context(), "a", user, steps, nil)
	require.ErrorIs(t, err, fsm.ErrUnknownEvent)
	require.Equal(t, state("running"), must(m.Get(t.Context(), "a"))(t).State)
}

// TestStepsRedone: the process dies in the work of the first step, which is done
// again elsewhere, and the chain goes on from there.
func TestStepsRedone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := lifecycle.NewMemoryStore()
		first := must(lifecycle.Join(t.Context(), store, "first", time.Second))(t)
		m := workers(store, lifecycle.Config[event]{Owner: first, Handlers: map[string]lifecycle.Handler{
			"reboot": func(ctx context.Context, _ []byte) error { return told(ctx) }, "stop": log.handler("first stop"),
		}})
		running(t, m, "a")
		h := must(m.DoSteps(t.Context(), "a", user, []lifecycle.Step[event]{
			{Event: "reboot", Work: lifecycle.Named("reboot", []byte("x"))}, {Event: "stop", Work: lifecycle.Named("stop", []byte("y"))},
		}, nil))(t)
		time.Sleep(time.Second + 1)
		second := must(lifecycle.Join(t.Context(), store, "second", time.Hour))(t)
		n := workers(store, lifecycle.Config[event]{Owner: second, Handlers: map[string]lifecycle.Handler{
			"reboot": log.handler("second reboot"), "stop": log.handler("second stop"),
		}})
		require.Equal(t, lifecycle.Redone, must(n.Sweep(t.Context()))(t)[0].Remedy)
		synctest.Wait()
		require.Equal(t, []string{"second reboot x", "second stop y"}, log.list)
		require.Equal(t, []string{
			"3: running -reboot-> rebooting by user", "4: rebooting -late-> rebooting by sweeper", "4: rebooting -done-> running by worker",
			"5: running -stop-> stopping by user", "5: stopping -done-> stopped by worker",
		}, story(t, m, "a", 4))
		require.ErrorIs(t, first.Beat(t.Context()), lifecycle.ErrStale)
		_, err := h.Wait(t.Context())
		require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
	})
}

// TestStepsContinued: the process dies at rest between two steps, and another one
// goes on with the next.
func TestStepsContinued(t *testing.T) {
	for name, handlers := range map[string]bool{"by a process that can": true, "not by one that cannot": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log calls
				store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
				first := must(lifecycle.Join(t.Context(), store.MemoryStore, "first", 0))(t)
				m := workers(store, lifecycle.Config[event]{Owner: first, Handlers: map[string]lifecycle.Handler{
					"stop": log.handler("first stop"), "delete": log.handler("first delete"),
				}})
				running(t, m, "a")
				store.reset()
				store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
					if n > 2 { // after the outcome of the first step nobody hears of it any more
						return errBoom
					}
					return write()
				}
				h := must(m.DoSteps(t.Context(), "a", user, destroy(lifecycle.Named("stop", []byte("x")), lifecycle.Named("delete", []byte("y"))), nil))(t)
				_, err := h.Wait(t.Context())
				require.ErrorIs(t, err, errBoom)
				key := lifecycle.Key{Machine: "work-vm", ID: "a"}
				stored := must(store.MemoryStore.Get(t.Context(), key))(t)
				require.Equal(t, "stopped", stored.State)
				require.NotEmpty(t, stored.Steps)
				require.Equal(t, "first", stored.Owner)

				second := must(lifecycle.Join(t.Context(), store.MemoryStore, "second", time.Hour))(t)
				defer func() { require.NoError(t, second.Leave(t.Context())) }()
				config := lifecycle.Config[event]{Owner: second}
				if handlers {
					config.Handlers = map[string]lifecycle.Handler{"delete": log.handler("second delete")}
				}
				n := workers(store.MemoryStore, config)
				require.Empty(t, must(n.Sweep(t.Context()))(t), "its owner lives")
				time.Sleep(lifecycle.DefaultTTL + 1)
				cases := must(n.Sweep(t.Context()))(t)
				require.Len(t, cases, 1)
				require.True(t, cases[0].OwnerDead)
				require.Equal(t, "delete", cases[0].Event)
				require.Equal(t, user, cases[0].Actor)
				synctest.Wait()
				if !handlers {
					require.Equal(t, lifecycle.LeftToOthers, cases[0].Remedy)
					require.Equal(t, stored, must(store.MemoryStore.Get(t.Context(), key))(t))
					return
				}
				require.Equal(t, lifecycle.Continued, cases[0].Remedy)
				require.Equal(t, "deleting", cases[0].To)
				require.Equal(t, []string{"first stop x", "second delete y"}, log.list)
				_, err = n.Get(t.Context(), "a")
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
			})
		})
	}
}

// TestStepsContinuedLater: a sweeper that cannot take the next step now, because
// its queue is full or its store fails, leaves it for later.
func TestStepsContinuedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		owner := must(lifecycle.Join(t.Context(), store.MemoryStore, "p", time.Hour))(t)
		defer func() { require.NoError(t, owner.Leave(t.Context())) }()
		q := queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1})
		m := workers(store, lifecycle.Config[event]{Owner: owner, Queue: q, Handlers: map[string]lifecycle.Handler{"delete": log.handler("delete")}})
		running(t, m, "a")
		key := lifecycle.Key{Machine: "work-vm", ID: "a"}
		before := must(store.Get(t.Context(), key))(t)
		rec := before
		rec.State, rec.Origin, rec.Sequence = "stopped", "stopped", before.Sequence+1
		rec.Owner, rec.Epoch, rec.Work = "gone", 1, "stop"
		rec.Steps = []byte(`[{"event":"delete","actor":"user","work":"delete"}]`)
		require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{
			Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{Expect: before.Revision, From: before.State, To: rec}},
		}))
		gone := must(lifecycle.Join(t.Context(), store.MemoryStore, "gone", 1))(t)
		require.EqualValues(t, 1, gone.Epoch())
		time.Sleep(time.Second)

		end := make(chan struct{})
		must(q.Submit(t.Context(), key, &queue.Action{Run: func(context.Context) error { <-end; return nil }}))(t)
		cases := must(m.Sweep(t.Context()))(t)
		require.Len(t, cases, 1)
		require.Equal(t, lifecycle.Unmoved, cases[0].Remedy)
		require.ErrorIs(t, cases[0].Err, queue.ErrFull)
		close(end)
		synctest.Wait()
		store.onCommit = func(int, *lifecycle.Commit, func() error) error { return errBoom }
		cases = must(m.Sweep(t.Context()))(t)
		require.ErrorIs(t, cases[0].Err, errBoom)
		store.reset()
		cases = must(m.Sweep(t.Context()))(t)
		require.Equal(t, lifecycle.Continued, cases[0].Remedy)
		synctest.Wait()
		require.Equal(t, []string{"delete "}, log.list)
	})
}
