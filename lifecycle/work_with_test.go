package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// stoppedVMs is two VMs that are stopped.
func stoppedVMs(t *testing.T, config lifecycle.Config[event]) *sizedManager {
	m := workers(lifecycle.NewMemoryStore(), config)
	stopped(t, m, "a")
	stopped(t, m, "b")
	return m
}

func states(t *testing.T, m *sizedManager) [2]state {
	return [2]state{get(t, m, "a").State, get(t, m, "b").State}
}

// TestWorkWith: one commit admits two objects and one commit writes their outcome.
// The work waits for the turns of both.
func TestWorkWith(t *testing.T) {
	for _, c := range []struct {
		name string
		work func(context.Context) error
		want [2]state
		then string
	}{
		{"done", func(context.Context) error { return nil }, [2]state{"running", "running"}, "starting -done-> running by worker"},
		{"failed", func(context.Context) error { return errBoom }, [2]state{"stopped", "stopped"}, "starting -fail-> stopped by worker"},
		{"panicked", func(context.Context) error { panic("ouch") }, [2]state{"stopped", "stopped"}, "starting -fail-> stopped by worker"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			m := stoppedVMs(t, lifecycle.Config[event]{})
			busy := occupy(t, m, "b", "migrate", sleeping(time.Second))
			var inside *lifecycle.Task
			ticket := doParts(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
				require.Equal(t, queue.OK, busy.Outcome(), "it waits for the turn of its part")
				inside = lifecycle.TaskOf(ctx)
				return c.work(ctx)
			}), nil, firing(m, "b", "start", user, nil))
			synctest.Wait()
			require.Equal(t, [2]state{"starting", "starting"}, states(t, m))
			rec, err := ticket.Wait(t.Context())
			require.Equal(t, c.name == "done", err == nil, "%v", err)
			require.Equal(t, get(t, m, "a"), rec)
			require.Equal(t, c.want, states(t, m))
			require.EqualValues(t, 2, inside.Operation)
			of := func(id string) []lifecycle.HistoryRow { return rowsOf(t, m, id, 2, 0) }
			for i, row := range of("b") {
				require.Equal(t, of("a")[i].Token, row.Token)
			}
			require.Equal(t, "2: "+c.then, story(t, m, "b", 3)[0])
		})
	}
}

// TestWorkWithRedo: an object of Work.With has no work that a sweep could do again. Do refuses
// a row to a Redo state for it.
func TestWorkWithRedo(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	stopped(t, m, "a")
	running(t, m, "b")
	before := states(t, m)
	_, err := doWith(t.Context(), m, "a", "start", user, lifecycle.Func(fine), nil, firing(m, "b", "reboot", user, nil))
	require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
	require.ErrorContains(t, err, `fire work-vm "b": reboot by user in running: `)
	require.Equal(t, before, states(t, m))
}

// TestWorkWithRefused: what is refused has changed nothing and holds no turn.
func TestWorkWithRefused(t *testing.T) {
	m := stoppedVMs(t, lifecycle.Config[event]{})
	idle := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	mute := lifecycle.Must(workVM, lifecycle.NewMemoryStore(), nil)
	before := get(t, m, "a")
	for _, c := range []struct {
		name string
		part part
		want error
	}{
		{"no row", firing(m, "b", "stop", user, nil), fsm.ErrNotAllowed},
		{"no object", firing(m, "c", "start", user, nil), lifecycle.ErrNotFound},
		{"object of the operation", firing(m, "a", "start", user, nil), lifecycle.ErrInvalid},
		{"conflict", firing(m, "b", "start", user, &lifecycle.Change[size]{Expect: "another"}), lifecycle.ErrConflict},
		{"another store", firing(idle, "b", "start", user, nil), lifecycle.ErrInvalid},
		{"no worker", firing(mute, "b", "start", user, nil), lifecycle.ErrMisconfigured},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := doWith(t.Context(), m, "a", "start", user, nothing, nil, c.part)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, [2]state{"stopped", "stopped"}, states(t, m))
		})
	}
	require.Equal(t, before, get(t, m, "a"))
	wait(t, do(t, m, "b", "start", user, nothing, nil))
}

// TestWorkWithTakenAway: an object that another writer has moved stays where it is.
// If the operation itself was taken away, its other objects do not wait for their
// deadlines.
func TestWorkWithTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		id    string
		owned bool
		want  [2]state
	}{
		"operation":             {id: "a", want: [2]state{"stopped", "stopped"}},
		"operation of an owner": {id: "a", owned: true, want: [2]state{"stopped", "stopped"}},
		"part":                  {id: "b", want: [2]state{"running", "stopped"}},
	} {
		inBubble(t, name, func(t *testing.T) {
			store, config := lifecycle.NewMemoryStore(), lifecycle.Config[event]{}
			if c.owned {
				config.Owner = join(t, store, "p", time.Hour)
			}
			m := workers(store, config)
			stopped(t, m, "a")
			stopped(t, m, "b")
			end := make(chan struct{})
			ticket := doParts(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
				select {
				case <-end:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}), nil, firing(m, "b", "start", user, nil))
			synctest.Wait() // the work has begun
			override(t, m, c.id, "stopped", "ann", "it hangs", nil)
			synctest.Wait()
			close(end)
			_, err := ticket.Wait(t.Context())
			require.Equal(t, c.id == "a", err != nil)
			require.Equal(t, c.want, states(t, m))
		})
	}
}

// TestWorkWithTakenAwayElsewhere: another process takes the operation away, and the work
// succeeds before this process learns of that. The operation is lost, and its part gets
// the success.
func TestWorkWithTakenAwayElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		stopped(t, m, "b")
		ticket := doParts(t, m, "a", "start", user, sleeping(time.Second), nil, firing(m, "b", "start", user, nil))
		synctest.Wait() // the work has begun
		override(t, workers(store, lifecycle.Config[event]{}), "a", "stopped", "ann", "it hangs", nil)
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
		require.Equal(t, [2]state{"stopped", "running"}, states(t, m))
	})
}

// TestWorkWithOwner: a part belongs to the process as the object does.
func TestWorkWithOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		alpha := join(t, store, "alpha", time.Minute)
		m := workers(store, lifecycle.Config[event]{Owner: alpha})
		stopped(t, m, "a")
		stopped(t, m, "b")
		end := make(chan struct{})
		ticket := doParts(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error {
			<-end
			return nil
		}), nil, firing(m, "b", "start", user, nil))
		b := get(t, m, "b")
		require.Equal(t, "alpha", b.Owner)
		require.Equal(t, alpha.Epoch(), b.Epoch)

		beta := join(t, store, "beta", time.Hour)
		heir := workers(store, lifecycle.Config[event]{Owner: beta})
		join(t, store, "alpha", time.Hour) // a new life
		require.Len(t, sweep(t, heir), 2)
		require.Equal(t, [2]state{"stopped", "stopped"}, states(t, m))
		close(end)
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
	})
}

// TestWorkWithOverride: a part that an override puts into a state at rest has no work. It
// has the deadline of that state, and the sweep acts on it.
func TestWorkWithOverride(t *testing.T) {
	machine := fsm.Must[size](fsm.Spec[state, event]{
		Name: "file", Initial: "kept", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{{Name: "kept"}, {Name: "moving", Kind: fsm.Transitional}, {Name: "bin"}, {Name: "gone", Kind: fsm.Absent}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("kept", "move", "moving").By(user),
			fsm.Move[state, event]("moving", "done", "kept").By("worker"),
			fsm.Return[state, event]("moving", "late").After(time.Minute),
			fsm.Move[state, event]("kept", "delete", "bin").By(user),
			fsm.Move[state, event]("bin", "late", "gone").After(time.Hour),
		),
	})
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := lifecycle.Must(machine, store, &lifecycle.Config[event]{
			Owner: join(t, store, "p", 24*time.Hour), WorkerActor: "worker", Done: []event{"done"},
		})
		add(t, m, "a", user, size{})
		add(t, m, "b", user, size{})
		var tx lifecycle.Tx
		m.In(&tx).Override("b", "bin", user, "nothing uses it", nil)
		wait(t, do(t, m, "a", "move", user, lifecycle.Work{Run: fine, With: &tx}, nil))
		b := storedAt(t, store, lifecycle.Key{Machine: "file", ID: "b"})
		require.Empty(t, b.Owner)
		require.Empty(t, b.WorkOptions)
		require.Equal(t, time.Hour, time.Until(b.Deadline))
		require.Empty(t, sweep(t, m))
		time.Sleep(time.Hour + 1)
		require.Len(t, sweep(t, m), 1)
		absent(t, m, "b")
	})
}

// TestWorkWithOfAnotherProcess: a change that continues the operation of another
// process does not take the operation away from it.
func TestWorkWithOfAnotherProcess(t *testing.T) {
	machine := fsm.Must[size](fsm.Spec[state, event]{
		Name: "machine", Initial: "stopped", Actors: []fsm.Actor{"user", "worker"},
		States: []fsm.State[state]{{Name: "stopped"}, {Name: "running"}, {Name: "starting", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("stopped", "start", "starting").By("user"),
			fsm.Move[state, event]("starting", "attach", "starting").By("user"),
			fsm.Move[state, event]("starting", "done", "running").By("worker"),
			fsm.Return[state, event]("starting", "late").After(time.Minute),
			fsm.Move[state, event]("running", "stop", "stopped").By("user"),
		),
	})
	for name, owned := range map[string]bool{"with owners": true, "without owners": false} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			process := func(name string) *sizedManager {
				config := &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}}
				if owned {
					config.Owner = join(t, store, name, time.Minute)
				}
				return lifecycle.Must(machine, store, config)
			}
			alpha, beta := process("alpha"), process("beta")
			add(t, alpha, "a", user, size{})
			add(t, alpha, "b", user, size{})
			end := make(chan struct{})
			long := do(t, beta, "b", "start", user, lifecycle.Func(func(context.Context) error { <-end; return nil }), nil)
			synctest.Wait() // the turn begins with a commit
			got := doParts(t, alpha, "a", "start", user, lifecycle.Func(fine), nil,
				firing(alpha, "b", "attach", user, nil))
			wait(t, got)
			require.Equal(t, [2]state{"running", "starting"}, states(t, alpha))
			close(end)
			wait(t, long)
			require.Equal(t, [2]state{"running", "running"}, states(t, alpha))
		})
	}
}

// TestWorkWithConditions: a condition that no object can meet is a bad request.
func TestWorkWithConditions(t *testing.T) {
	m := stoppedVMs(t, lifecycle.Config[event]{})
	work := lifecycle.Func(fine)
	work.With = needing(lifecycle.Precondition{Key: lifecycle.Key{Machine: "work-vm", ID: "b"}})
	_, err := m.Do(t.Context(), "a", "start", user, work, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// TestWorkWithHeartbeats: a heartbeat of the work extends the deadlines of all its
// objects, except of one that another writer has moved.
func TestWorkWithHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stoppedVMs(t, lifecycle.Config[event]{})
		ticket := doParts(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			for range 3 {
				time.Sleep(40 * time.Second)
				require.NoError(t, lifecycle.TaskOf(ctx).Heartbeat(ctx))
			}
			return nil
		}), nil, firing(m, "b", "start", user, nil))
		time.Sleep(90 * time.Second)
		require.Empty(t, sweep(t, m))
		require.Equal(t, [2]state{"starting", "starting"}, states(t, m))
		override(t, m, "b", "stopped", "ann", "it hangs", nil)
		wait(t, ticket)
		require.Equal(t, [2]state{"running", "stopped"}, states(t, m))
	})
}

// TestAlso: work takes the turns of other objects, which need not change.
func TestAlso(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stoppedVMs(t, lifecycle.Config[event]{})
		var order []string
		work := func(name string, also ...lifecycle.Key) lifecycle.Work {
			w := lifecycle.Func(func(context.Context) error {
				time.Sleep(time.Second)
				order = append(order, name)
				return nil
			})
			w.Also = also
			return w
		}
		b := lifecycle.Key{Machine: "work-vm", ID: "b"}
		first := occupy(t, m, "b", "first", work("first"))
		do(t, m, "a", "start", user, work("second", b, b), nil)
		require.NoError(t, first.Wait(t.Context()))
		last := occupy(t, m, "b", "third", work("third"))
		require.NoError(t, last.Wait(t.Context()))
		require.Equal(t, []string{"first", "second", "third"}, order)
	})
}

// TestDoWithoutObject: a table whose objects are added has no event that makes
// them, and another one has events that make none. It is the object that is missing.
func TestDoWithoutObject(t *testing.T) {
	vms := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	_, err := vms.Do(t.Context(), "a", "stop", user, lifecycle.Func(fine), nil)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	require.EqualError(t, err, `lifecycle: do work-vm "a": stop by user: not found`)
	_, err = vms.Do(t.Context(), "a", "create", "worker", lifecycle.Func(fine), nil)
	require.ErrorIs(t, err, fsm.ErrWrongActor)
	m := lifecycle.Must(lease, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{WorkerActor: agent, Done: []event{"start"}})
	_, err = m.Do(t.Context(), "l", "end", user, nothing, nil)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	require.Equal(t, 404, lifecycle.HTTPStatus(err))
}

// TestHeartbeatFromOutside: what waits for its turn gets its deadline prolonged.
func TestHeartbeatFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stoppedVMs(t, lifecycle.Config[event]{})
		occupy(t, m, "a", "migrate", sleeping(90*time.Second))
		ticket := do(t, m, "a", "start", user, nothing, nil)
		time.Sleep(40 * time.Second)
		require.NoError(t, m.Heartbeat(t.Context(), "a"))
		time.Sleep(40 * time.Second)
		require.Empty(t, sweep(t, m))
		require.Equal(t, state("running"), wait(t, ticket).State)
		require.ErrorIs(t, m.Heartbeat(t.Context(), "a"), lifecycle.ErrStale)
		require.ErrorIs(t, m.Heartbeat(t.Context(), "missing"), lifecycle.ErrStale)
	})
}

// TestWorkWithPartRefuses: what is wrong with a part alone does not keep the
// outcome of the operation from being written, nor the other way round.
func TestWorkWithPartRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*lifecycle.StoredRecord){
		"foreign":         func(r *lifecycle.StoredRecord) { r.State, r.Origin, r.Operation = "melting", "melting", 9 },
		"foreign within":  func(r *lifecycle.StoredRecord) { r.State = "melting" },
		"foreign payload": func(r *lifecycle.StoredRecord) { r.Payload = []byte(`"text"`) },
	} {
		for id, other := range map[string]string{"a": "b", "b": "a"} {
			inBubble(t, name+" "+id, func(t *testing.T) {
				store := lifecycle.NewMemoryStore()
				m := workers(store, lifecycle.Config[event]{})
				stopped(t, m, "a")
				stopped(t, m, "b")
				ticket := doParts(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error {
					r := stored(t, store, id)
					to := r
					spoil(&to)
					to.Sequence++
					return store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{Expect: r.Revision, From: r.State, To: to}}})
				}), nil, firing(m, "b", "start", user, nil))
				_, err := ticket.Wait(t.Context())
				switch {
				case id == "b":
					require.NoError(t, err)
				case name == "foreign":
					require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
				default:
					require.ErrorIs(t, outcomeError(t, err).Unwritten, lifecycle.ErrForeign)
				}
				require.Equal(t, state("running"), get(t, m, other).State)
			})
		}
	}
	inBubble(t, "without an event", func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{})
		mute := lifecycle.Must(workVM, store, &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}})
		stopped(t, m, "a")
		running(t, m, "b")
		ticket := doParts(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error { return errBoom }), nil, firing(mute, "b", "inspect", user, nil))
		require.NoError(t, outcomeOf(t, ticket).Unwritten)
		require.Equal(t, [2]state{"stopped", "inspecting"}, states(t, m))
	})
}
