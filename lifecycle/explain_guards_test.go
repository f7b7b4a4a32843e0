package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Gates has rows of every form that one event can have several of.
var gates = fsm.Must[size](fsm.Spec[state, event]{
	Name: "gates", Initial: "here", Actors: []fsm.Actor{user, "worker"},
	States: []fsm.State[state]{
		{Name: "here"}, {Name: "left"}, {Name: "right"}, {Name: "late", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("here", "go", "left").By(user).If(fsm.When("greedy", func(_ context.Context, _, s *size) error {
			s.N = 99
			return errors.New("not left")
		})),
		fsm.Move[state, event]("here", "go", "right").By(user).If(fsm.When("small", func(_ context.Context, _, s *size) error {
			if s.N > 3 {
				return errors.New("too big")
			}
			return nil
		})),
		fsm.Move[state, event]("here", "go", "late").By(user),
		fsm.Move[state, event]("here", "go", "left").By("worker"),
		fsm.Ignore[state, event]("here", "look").By("worker"),
		fsm.Move[state, event]("here", "fix", "left").By(user).OnlyForced(),
		fsm.Move[state, event]("left", "go", "here").By(user).If(fsm.When("sudden", func(context.Context, *size, *size) error { panic("boom") })),
		fsm.Move[state, event]("left", "back", "here").By("worker"),
		fsm.Move[state, event]("right", "back", "here").By("worker"),
		fsm.Move[state, event]("late", "over", "here").After(time.Minute).If(fsm.When("never", func(context.Context, *size, *size) error { return errors.New("not\nnow") })),
	),
})

func linesOf(x lifecycle.Explanation, actor fsm.Actor) (lines []string) {
	of := false
	for line := range strings.Lines(x.Verbose()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case !strings.HasPrefix(line, "    "):
			of = line == "  "+string(actor)+":"
		case of:
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestExplainIsWhatFireDoes: of several rows of one event, Explain names the row
// that Fire takes. Without a row, it names the states that have one.
func TestExplainIsWhatFireDoes(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(gates, store, nil)
	add(t, m, "a", user, size{N: 1})
	x := explain(t, m, "a")
	require.Equal(t, []string{"go to right", "not look: only by worker", "fix to left, with force"}, linesOf(x, user))
	require.Equal(t, []string{"go to left", "look is ignored", "not fix: only by user", "not back: only in left, right"}, linesOf(x, "worker"))
	require.Equal(t, []string{
		"not go: only by user, worker", "not look: only by worker", "not fix: only by user",
	}, linesOf(x, fsm.Sweeper))
	require.Equal(t, state("right"), fire(t, m, "a", "go", user, nil).State)

	add(t, m, "b", user, size{N: 9})
	x = explain(t, m, "b")
	require.Equal(t, "go to late", linesOf(x, user)[0])

	override(t, m, "b", "left", "ann", "a test", nil)
	x = explain(t, m, "b")
	require.Equal(t, "not go: refused by a guard: sudden: the guard panics: boom", linesOf(x, user)[0])

	override(t, m, "b", "late", "ann", "a test", nil)
	x = explain(t, m, "b")
	require.Contains(t, linesOf(x, user), "not fix: only in here (with force)")
	require.Contains(t, x.String(), "; after 1m0s the sweeper fires over: the table refuses it now: refused by a guard: never: not; now\n")
}

// TestExplainIsBounded: the list of waiting work is short, however much waits, and has
// the place of the object itself.
func TestExplainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must[lifecycle.Key](nil)
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
			Queue: q,
		})
		running(t, m, "vm")
		hold := make(chan struct{})
		wait := lifecycle.Func(func(context.Context) error { <-hold; return nil })
		for i := range 5000 {
			occupy(t, m, "vm", fmt.Sprint("look-", i), wait)
			if i == 2000 {
				do(t, m, "vm", "stop", user, wait, nil)
			}
		}
		synctest.Wait()
		x := explain(t, m, "vm")
		require.Len(t, x.Blocked, 12)
		require.Contains(t, x.Blocked[10], "queue: stop is waiting since 2000-01-01T00:00:00Z, 2001 ahead")
		require.Equal(t, "queue: and 4990 more", x.Blocked[11])
		close(hold)
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// TestExplainWhatItCannotFindOut: Explain returns the rest of its answer if the payload
// cannot be decoded.
func TestExplainWhatItCannotFindOut(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(gates, store, nil)
	plant(t, store, lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: "gates", ID: "a"}, State: "here", Origin: "here", Actor: user, Payload: []byte("{"),
	})
	require.Contains(t, linesOf(explain(t, m, "a"), user)[0], "go to late")
	_, err := m.Explain(t.Context(), "a", lifecycle.Precondition{Key: lifecycle.Key{Machine: "gates", ID: "b"}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)

	// A guard whose context has ended has not decided anything.
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the caller has left")
	m = lifecycle.Must(gates, &cancels{store, cancel, left}, nil)
	_, err = m.Explain(ctx, "a")
	require.ErrorIs(t, err, left)
}

// cancels is a store that reads, and whose caller then leaves.
type cancels struct {
	*lifecycle.MemoryStore
	cancel context.CancelCauseFunc
	cause  error
}

func (s *cancels) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, key)
	s.cancel(s.cause)
	return r, err
}

// TestExplainTime: after its deadline an object is the sweeper's.
func TestExplainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner := join(t, store, "p", time.Hour)
		hold := make(chan struct{})
		m := workers(store, lifecycle.Config[event]{Owner: owner, Handlers: map[string]lifecycle.Handler{
			"stop": func(context.Context, []byte) error { <-hold; return nil },
		}})
		running(t, m, "vm")
		h := do(t, m, "vm", "stop", user, lifecycle.Named("stop", nil), nil)
		synctest.Wait()
		x := explain(t, m, "vm")
		require.Contains(t, x.String(), "\n  work: stop\n")
		require.Equal(t, "the process p, which is alive", x.NextMove)

		time.Sleep(time.Until(x.Deadline))
		x = explain(t, m, "vm")
		require.Equal(t, "the process p, which is alive; or the sweeper fires late: the object returns to running, if the deadline has passed by the clock of the store", x.NextMove)
		close(hold)
		wait(t, h)
	})
}
