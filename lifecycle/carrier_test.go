package lifecycle_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

type traceKey struct{}

func trace(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

func traced(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

// tracing returns the configuration of a process that keeps the trace of a context, and
// notes where it sees one.
func tracing(log *calls, config lifecycle.Config[event]) lifecycle.Config[event] {
	config.Inject = func(ctx context.Context) map[string]string {
		if trace(ctx) == "" {
			return nil
		}
		return map[string]string{"trace": trace(ctx)}
	}
	config.Extract = func(ctx context.Context, values map[string]string) context.Context {
		return traced(ctx, values["trace"])
	}
	config.BeforeCommit = func(ctx context.Context, change *lifecycle.StoredChange) (*lifecycle.Tx, error) {
		if change.To.Actor == "worker" {
			log.note("commit of " + change.To.Event + " " + trace(ctx))
		}
		return nil, nil
	}
	config.Observer.Changed = func(ctx context.Context, row lifecycle.CommittedChange) {
		if row.Actor == "worker" {
			log.note("changed by " + row.Event + " " + trace(ctx))
		}
	}
	config.Observer.Finished = func(ctx context.Context, _ lifecycle.Finished) { log.note("finished " + trace(ctx)) }
	return config
}

func TestValuesReachTheWork(t *testing.T) {
	reboot := func(log *calls) func(ctx context.Context, _ []byte) error {
		return func(ctx context.Context, _ []byte) error {
			log.note("work " + trace(ctx))
			return nil
		}
	}
	seen := []string{"work 7", "commit of done 7", "changed by done 7", "finished 7"}
	t.Run("same process", func(t *testing.T) {
		for name, work := range map[string]func(*calls) lifecycle.Work{
			"handler": func(*calls) lifecycle.Work { return lifecycle.Named("reboot", nil) },
			"function": func(log *calls) lifecycle.Work {
				return lifecycle.Func(func(ctx context.Context) error { return reboot(log)(ctx, nil) })
			},
		} {
			t.Run(name, func(t *testing.T) {
				var log calls
				m := workers(lifecycle.NewMemoryStore(), tracing(&log, lifecycle.Config[event]{
					Handlers: map[string]lifecycle.Handler{"reboot": reboot(&log), "stop": reboot(&log), "delete": reboot(&log)},
				}))
				running(t, m, "a")
				log.list = nil
				ticket, err := m.Do(traced(t.Context(), "7"), "a", "stop", user, work(&log), nil)
				require.NoError(t, err)
				wait(t, ticket)
				require.Equal(t, seen, log.list)
			})
		}
	})
	t.Run("another process", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var first, second calls
			store := lifecycle.NewMemoryStore()
			owner := join(t, store, "first", time.Second)
			m := workers(store, tracing(&first, lifecycle.Config[event]{
				Owner:    owner,
				Handlers: map[string]lifecycle.Handler{"reboot": func(ctx context.Context, _ []byte) error { return untilEnded(ctx) }},
			}))
			running(t, m, "a")
			_, err := m.Do(traced(t.Context(), "7"), "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
			require.NoError(t, err)
			synctest.Wait() // until its turn has begun
			require.JSONEq(t, `{"carrier":{"trace":"7"}}`, string(stored(t, store, "a").WorkOptions))

			n := workers(store, tracing(&second, lifecycle.Config[event]{
				Owner:    join(t, store, "second", time.Hour),
				Handlers: map[string]lifecycle.Handler{"reboot": reboot(&second)},
			}))
			sweepFor(t, n, time.Second)
			synctest.Wait()
			require.Equal(t, seen, second.list)
			require.Equal(t, "running", stored(t, store, "a").State)
			require.Nil(t, stored(t, store, "a").WorkOptions)
			require.Error(t, owner.Heartbeat(t.Context()), "it ends the work of the first process")
		})
	})
	t.Run("without an operation", func(t *testing.T) {
		var log calls
		m := workers(lifecycle.NewMemoryStore(), tracing(&log, lifecycle.Config[event]{}))
		running(t, m, "a")
		log.list = nil
		ticket, err := lifecycle.Occupy(traced(t.Context(), "7"), m, "a", "migrate", lifecycle.Func(func(ctx context.Context) error { return reboot(&log)(ctx, nil) }))
		require.NoError(t, err)
		require.NoError(t, ticket.Wait(t.Context()))
		require.Equal(t, []string{"work 7"}, log.list)
	})
}

func TestValuesAreBounded(t *testing.T) {
	var values map[string]string
	store := lifecycle.NewMemoryStore()
	m := workers(store, lifecycle.Config[event]{
		Inject: func(context.Context) map[string]string { return values },
	})
	running(t, m, "a")
	before := stored(t, store, "a")
	for name, bad := range map[string]map[string]string{
		"too long":      {"trace": strings.Repeat("x", 4<<10)},
		"not UTF-8":     {"trace": "\xff"},
		"not UTF-8 key": {"\xff": "trace"},
	} {
		t.Run(name, func(t *testing.T) {
			values = bad
			_, err := m.Do(t.Context(), "a", "stop", user, nothing, nil)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.ErrorContains(t, err, "Config.Inject")
			_, err = lifecycle.Occupy(t.Context(), m, "a", "migrate", nothing)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.Equal(t, before, stored(t, store, "a"))
		})
	}
	values = map[string]string{"trace": strings.Repeat("x", 4<<10-len("trace"))}
	ticket := do(t, m, "a", "stop", user, nothing, nil)
	wait(t, ticket)
}

// A panic of Extract is the outcome of the work, and leaves the operation with an end.
func TestExtractPanics(t *testing.T) {
	var once sync.Once
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
		Inject: func(context.Context) map[string]string { return map[string]string{"trace": "7"} },
		Extract: func(ctx context.Context, _ map[string]string) context.Context {
			once.Do(func() { panic("extract") })
			return ctx
		},
	})
	running(t, m, "a")
	ticket := do(t, m, "a", "stop", user, nothing, nil)
	rec, err := ticket.Wait(t.Context())
	failed := outcomeError(t, err)
	require.Equal(t, lifecycle.Panicked, failed.Outcome)
	require.NoError(t, failed.Unwritten)
	require.Equal(t, state("running"), rec.State)
}
