package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestSweepNothing: a sweep leaves objects alone that are neither overdue nor
// orphaned.
func TestSweepNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		o := join(t, store, "p", time.Hour)
		m := workers(store, lifecycle.Config[event]{Owner: o})
		running(t, m, "rests")
		running(t, m, "owned")
		do(t, m, "owned", "stop", user, lifecycle.Func(fine), nil)
		synctest.Wait()
		running(t, m, "unowned")
		fire(t, m, "unowned", "stop", user, nil)
		time.Sleep(time.Minute) // to the very deadline
		before := all(t, store, "work-vm", "rests", "owned", "unowned")
		require.Empty(t, sweep(t, m))
		require.Empty(t, sweep(t, m))
		require.Equal(t, before, all(t, store, "work-vm", "rests", "owned", "unowned"))
		time.Sleep(time.Nanosecond)
		require.Len(t, sweep(t, m), 1)
		require.NoError(t, o.Leave(t.Context()))
	})
}

// TestSweepCases: what the sweep does about each kind of stuck object, and the text of
// its result.
func TestSweepCases(t *testing.T) {
	again := map[string]lifecycle.Handler{"reboot": func(context.Context, []byte) error { return nil }}
	cases := []struct {
		name     string
		event    event // of a running VM, by named work if there is a handler
		handler  string
		sweeper  lifecycle.Config[event]
		dead     bool // its owner, instead of being late
		remedy   lifecycle.Resolution
		text     string
		state    state // in the end
		errIs    error
		overtake bool
	}{
		{
			name: "late", event: "stop", remedy: lifecycle.Moved, state: "running",
			text: `work-vm "a" in stopping, operation 3: moved to running by late, because deadline 2000-01-01T00:01:00Z has passed`,
		},
		{
			name: "orphaned", event: "stop", dead: true, remedy: lifecycle.Moved, state: "running",
			text: `work-vm "a" in stopping, operation 3: moved to running by late, because owner "p" of epoch 1 is dead`,
		},
		{
			name: "done again", event: "reboot", handler: "reboot", sweeper: lifecycle.Config[event]{Handlers: again},
			remedy: lifecycle.Redone, state: "running",
			text: `work-vm "a" in rebooting, operation 3: redone to rebooting by late, because deadline 2000-01-01T00:01:00Z has passed`,
		},
		{
			name: "done again for the dead", event: "reboot", handler: "reboot", dead: true, sweeper: lifecycle.Config[event]{Handlers: again},
			remedy: lifecycle.Redone, state: "running",
			text: `work-vm "a" in rebooting, operation 3: redone to rebooting by late, because owner "p" of epoch 1 is dead`,
		},
		{
			name: "not done here", event: "reboot", handler: "reboot", remedy: lifecycle.NoHandler, state: "rebooting",
			text: `work-vm "a" in rebooting, operation 3: no handler, because deadline 2000-01-01T00:01:00Z has passed`,
		},
		{
			name: "begun anew, without work", event: "reboot", remedy: lifecycle.Moved, state: "rebooting",
			text: `work-vm "a" in rebooting, operation 3: moved to rebooting by late, because deadline 2000-01-01T00:01:00Z has passed`,
		},
		{
			name: "needs an operator", event: "inspect", remedy: lifecycle.NeedsOperator, state: "inspecting",
			text: `work-vm "a" in inspecting, operation 3: needs an operator, because the operation has neither an owner nor a deadline: an engineer looks at it`,
		},
		{
			name: "needs an operator, owner dead", event: "inspect", dead: true, remedy: lifecycle.NeedsOperator, state: "inspecting",
			text: `work-vm "a" in inspecting, operation 3: needs an operator, because owner "p" of epoch 1 is dead: an engineer looks at it`,
		},
		{
			name: "observed", event: "stop", remedy: lifecycle.Moved, state: "stopped",
			sweeper: lifecycle.Config[event]{Observe: func(_ context.Context, r lifecycle.StoredRecord) (event, fsm.Actor, error) {
				if r.State != "stopping" || r.ID != "a" || r.Operation != 3 {
					return "", "", fmt.Errorf("called with %v", r.Key)
				}
				return "done", "worker", nil
			}},
			text: `work-vm "a" in stopping, operation 3: moved to stopped by done, because deadline 2000-01-01T00:01:00Z has passed`,
		},
		{
			name: "observed nothing", event: "stop", remedy: lifecycle.Moved, state: "running",
			sweeper: lifecycle.Config[event]{Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				return "done", "", nil // the event means nothing
			}},
			text: `work-vm "a" in stopping, operation 3: moved to running by late, because deadline 2000-01-01T00:01:00Z has passed`,
		},
		{
			name: "observer fails", event: "stop", remedy: lifecycle.NotMoved, state: "stopping", errIs: errBoom,
			sweeper: lifecycle.Config[event]{Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				return "", "", errBoom
			}},
			text: `work-vm "a" in stopping, operation 3: not moved, because deadline 2000-01-01T00:01:00Z has passed: boom`,
		},
		{
			name: "observer is wrong", event: "stop", remedy: lifecycle.NotMoved, state: "stopping", errIs: fsm.ErrNotAllowed,
			sweeper: lifecycle.Config[event]{Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				return "start", "user", nil
			}},
		},
		{
			name: "observer returns an unknown event", event: "stop", remedy: lifecycle.NotMoved, state: "stopping", errIs: fsm.ErrUnknownEvent,
			sweeper: lifecycle.Config[event]{Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				return "fly", "user", nil
			}},
			text: `work-vm "a" in stopping, operation 3: not moved, because deadline 2000-01-01T00:01:00Z has passed: lifecycle: sweep work-vm "a": fly by user in stopping: unknown event`,
		},
		{
			name: "overtaken", event: "stop", overtake: true, remedy: lifecycle.Overtaken, state: "stopped", errIs: lifecycle.ErrConflict,
		},
		{
			name: "overtaken by its own work", event: "reboot", handler: "reboot", overtake: true,
			sweeper: lifecycle.Config[event]{Handlers: again}, remedy: lifecycle.Overtaken, state: "running", errIs: lifecycle.ErrConflict,
		},
	}
	for _, c := range cases {
		inBubble(t, c.name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			ttl := 24 * time.Hour
			if c.dead {
				ttl = time.Second
			}
			o := join(t, store.MemoryStore, "p", ttl)
			end := make(chan struct{})
			m := workers(store.MemoryStore, lifecycle.Config[event]{Owner: o, Handlers: map[string]lifecycle.Handler{
				"reboot": func(context.Context, []byte) error { <-end; return nil },
			}})
			running(t, m, "a")
			switch {
			case c.handler != "":
				do(t, m, "a", c.event, user, lifecycle.Named(c.handler, []byte("args")), nil)
			case c.dead:
				do(t, m, "a", c.event, user, lifecycle.Func(func(context.Context) error { <-end; return nil }), nil)
			default:
				fire(t, m, "a", c.event, user, nil)
			}
			if !c.dead {
				time.Sleep(time.Minute + 1)
			}
			if c.overtake {
				done := false
				store.onCommit = func(_ int, commit *lifecycle.Commit, write func() error) error {
					if commit.Changes[0].To.Machine == "work-vm" && !done {
						done = true
						require.Equal(t, lifecycle.Applied, report(t, m, "a", 3, "done", "worker", ""))
					}
					return write()
				}
			}
			n := workers(store, c.sweeper)
			var found []lifecycle.SweepResult
			if c.dead {
				found = sweepFor(t, n, time.Second) // long before the deadline
			} else {
				found = sweep(t, n)
			}
			synctest.Wait()
			require.Len(t, found, 1)
			require.Equal(t, c.remedy, found[0].Resolution, "%v", found[0])
			if c.remedy == lifecycle.Moved || c.remedy == lifecycle.Redone {
				rows := rowsOf(t, m, "a", 0, 0)
				require.True(t, slices.ContainsFunc(rows, func(row lifecycle.HistoryRow) bool {
					return row.Event == found[0].Event && row.Reason == found[0].Cause
				}), "the history has the cause: %v", rows)
			}
			if c.text != "" {
				require.Equal(t, c.text, found[0].String())
			}
			require.ErrorIs(t, found[0].Err, c.errIs)
			require.Equal(t, c.dead, found[0].OwnerDead)
			require.Equal(t, c.state, get(t, m, "a").State)
			if c.remedy == lifecycle.NoHandler || c.remedy == lifecycle.NeedsOperator {
				require.Equal(t, found, sweep(t, n), "every sweep reports it")
			}
			close(end)
			synctest.Wait()
			path(t, workVM, "none", rowsOf(t, m, "a", 0, 0))
		})
	}
}

// TestSweepPages: more stuck objects than a page holds, each moved once.
func TestSweepPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &clocked{hooked: &hooked{MemoryStore: lifecycle.NewMemoryStore()}}
		m := lifecycle.Must(sizedVM, store, nil)
		const many = 1234
		for i := range many {
			create(t, m, fmt.Sprintf("vm-%04d", i), "create", user, size{})
		}
		time.Sleep(time.Hour + 1)
		found := sweep(t, m)
		require.Len(t, found, many)
		for i, c := range found {
			require.Equal(t, fmt.Sprintf("vm-%04d", i), c.ID)
			require.Equal(t, lifecycle.Moved, c.Resolution)
		}
		require.Less(t, store.lists, 12)
		require.Empty(t, sweep(t, m))
	})
}

// TestSweepRests: a resting state with a deadline row is overdue as well.
func TestSweepRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := lifecycle.Must(lease, lifecycle.NewMemoryStore(), nil)
		add(t, leases, "l", user, size{})
		fire(t, leases, "l", "start", agent, nil)
		time.Sleep(24 * time.Hour)
		require.Empty(t, sweep(t, leases))
		time.Sleep(time.Nanosecond)
		require.Equal(t, "Ending", sweep(t, leases)[0].To)
		time.Sleep(time.Minute + 1)
		require.Equal(t, "Over", sweep(t, leases)[0].To)
		require.Empty(t, sweep(t, leases))
	})
}

// jobs is a table whose state busy has a deadline row for one of its origins only.
// With manual, new objects enter it too.
func jobs(manual string) *fsm.Machine[state, event, size] {
	work := fsm.Move[state, event]("old", "work", "busy")
	if manual != "" {
		work = work.AlsoFrom("new")
	}
	return fsm.Must[size](fsm.Spec[state, event]{
		Name: "job", Initial: "new", Actors: []fsm.Actor{user},
		States: []fsm.State[state]{{Name: "new"}, {Name: "old"}, {Name: "busy", Kind: fsm.Transitional, Manual: manual}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("new", "age", "old"),
			work,
			fsm.Return[state, event]("busy", "end"),
			fsm.Return[state, event]("busy", "late").Of("old").After(time.Hour),
		),
	})
}

// TestManualOfOneOrigin: in one state, objects of one origin need an operator, and
// those of another have a deadline row.
func TestManualOfOneOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(jobs("an operator starts new ones"), lifecycle.NewMemoryStore(), nil)
		add(t, m, "n", user, size{})
		fire(t, m, "n", "work", user, nil)
		add(t, m, "o", user, size{})
		fire(t, m, "o", "age", user, nil)
		fire(t, m, "o", "work", user, nil)
		found := sweep(t, m)
		require.Len(t, found, 1, "%v", found)
		require.Equal(t, "n", found[0].ID)
		require.Equal(t, lifecycle.NeedsOperator, found[0].Resolution)
		time.Sleep(time.Hour + 1)
		found = sweep(t, m)
		require.Len(t, found, 2)
		require.Equal(t, lifecycle.Moved, found[0].Resolution)
		require.Equal(t, "o", found[0].ID)
	})
}

// TestLeftAlone: an override may put an object where no row of the table leads on.
// Every sweep reports it.
func TestLeftAlone(t *testing.T) {
	m := lifecycle.Must(jobs(""), lifecycle.NewMemoryStore(), nil)
	add(t, m, "n", user, size{})
	require.Empty(t, sweep(t, m))
	override(t, m, "n", "busy", "ann", "it works", nil)
	for range 2 {
		found := sweep(t, m)
		require.Len(t, found, 1)
		require.Equal(t, `job "n" in busy, operation 1: no row, because the operation has neither an owner nor a deadline`, found[0].String())
	}
	fire(t, m, "n", "end", user, nil)
	require.Empty(t, sweep(t, m))
}

// TestRun: Run sweeps at its interval until the context ends. A sweep that fails is
// reported and tried again.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &clocked{hooked: &hooked{MemoryStore: lifecycle.NewMemoryStore()}}
		m := lifecycle.Must(sizedVM, store, nil)
		create(t, m, "a", "create", user, size{})
		var pauses []time.Duration
		var moved, failed int
		last := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		err := lifecycle.Run(ctx, time.Minute, func(found []lifecycle.SweepResult, err error) {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			moved += len(found)
			if err != nil {
				require.ErrorIs(t, err, errBoom)
				failed++
			}
			switch len(pauses) {
			case 100:
				store.fail = errBoom
			case 101:
				store.fail = nil
			case 200:
				stop()
			}
		}, m)
		require.NoError(t, err)
		require.Equal(t, 1, moved)
		require.Equal(t, 1, failed)
		distinct := map[time.Duration]bool{}
		for _, p := range pauses {
			require.GreaterOrEqual(t, p, 48*time.Second)
			require.LessOrEqual(t, p, 72*time.Second)
			distinct[p] = true
		}
		require.Greater(t, len(distinct), 100)

		ctx, stop = context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		calls := store.lists
		require.NoError(t, lifecycle.Run(ctx, 0, nil, m), "report may be nil, and the interval has a default")
		require.GreaterOrEqual(t, store.lists-calls, 5)
	})
}
