package lifecycle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// between runs something after the n-th Get.
type between struct {
	*lifecycle.MemoryStore
	armed atomic.Bool
	run   func()
}

func (s *between) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, k)
	if r.State == "starting" && s.armed.CompareAndSwap(true, false) {
		s.run()
	}
	return r, err
}

// late has a commit return only after something else has happened.
type late struct {
	*lifecycle.MemoryStore
	event string
	then  func()
}

func (l *late) Commit(ctx context.Context, c *lifecycle.Commit) error {
	err := l.MemoryStore.Commit(ctx, c)
	if then := l.then; then != nil && c.Changes[0].To.Event == l.event {
		l.then = nil
		then()
	}
	return err
}

// The next operation is admitted between the commit of an outcome and its
// publication. The publication ends only its own operation.
func TestOutcomeEndsNoLaterOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &late{MemoryStore: lifecycle.NewMemoryStore(), event: "done"}
		m := workers(store, lifecycle.Config[event]{})
		var next *lifecycle.Ticket[state, size]
		store.then = func() {
			next = do(t, m, "a", "start", "user", nothing, nil)
		}
		wait(t, do(t, m, "a", "create", "user", nothing, nil))
		require.Equal(t, state("running"), wait(t, next).State)
	})
}

// Another writer has ended the operation of work that failed. The outcome is Lost
// and not Failed, even if only the deadline row takes a failure.
func TestFailedWorkOfAnOperationThatIsOver(t *testing.T) {
	machine := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "door", Initial: "shut", Actors: []fsm.Actor{"user", "motor"},
		States: []fsm.State[string]{{Name: "shut"}, {Name: "opening", Kind: fsm.Transitional}, {Name: "open", Kind: fsm.Final}},
		Rows: fsm.Rows(
			fsm.Move("shut", "push", "opening").By("user"),
			fsm.Move("opening", "done", "open").By("motor"),
			fsm.Return("opening", "stuck").By("user").After(time.Hour),
		),
	})
	config := &lifecycle.Config[string]{WorkerActor: "motor", Done: []string{"done"}}
	for name, then := range map[string]func(t *testing.T, other *lifecycle.Manager[string, string, struct{}]){
		"at rest": func(*testing.T, *lifecycle.Manager[string, string, struct{}]) {},
		"in another operation": func(t *testing.T, other *lifecycle.Manager[string, string, struct{}]) {
			fire(t, other, "a", "push", "user", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m, other := lifecycle.Must(machine, store, config), lifecycle.Must(machine, store, config)
			add(t, m, "a", "user", struct{}{})
			begun, end := make(chan struct{}), make(chan struct{})
			ticket := do(t, m, "a", "push", "user", lifecycle.Func(func(context.Context) error {
				close(begun)
				<-end
				return errors.New("it is locked")
			}), nil)
			<-begun
			fire(t, other, "a", "stuck", "user", nil)
			then(t, other)
			before := get(t, m, "a")
			close(end)
			_, err := ticket.Wait(t.Context())
			require.ErrorIs(t, err, lifecycle.ErrStale)
			failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
			require.Equal(t, lifecycle.Lost, failed.Outcome)
			require.NoError(t, failed.Unwritten)
			require.Equal(t, before, get(t, m, "a"))
		})
	}
}

// TestLostToAForeignRecord: another program takes the operation away, and this one cannot read
// what it has written. Wait returns the record as the operation has left it.
func TestLostToAForeignRecord(t *testing.T) {
	for name, spoil := range map[string]func(*lifecycle.StoredRecord){
		"state":   func(r *lifecycle.StoredRecord) { r.State, r.Origin = "melting", "melting" },
		"payload": func(r *lifecycle.StoredRecord) { r.Payload = []byte(`"text"`) },
	} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := workers(store, lifecycle.Config[event]{})
			running(t, m, "a")
			ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error {
				r := stored(t, store, "a")
				spoil(&r)
				plant(t, store, r)
				return nil
			}), nil)
			rec, err := ticket.Wait(t.Context())
			require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
			require.Equal(t, ticket.Admitted(), rec)
		})
	}
}
