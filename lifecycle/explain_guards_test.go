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
	"github.com/interlock-go/interlock/internal/suitetest"
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
		fsm.Move[state, event]("here", "go", "left").By(user).If(fsm.When("greedy", func(ctx context.Context, _, s *size) error {
			s.N = 99
			if runs, ok := ctx.Value(guardRuns{}).(*int); ok {
				*runs++
			}
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

// guardRuns is the key of a counter in the context of the guard greedy.
type guardRuns struct{}

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
	runs := 0
	x, err := m.Explain(context.WithValue(t.Context(), guardRuns{}, &runs), "a")
	require.NoError(t, err)
	require.Equal(t, 1, runs)
	require.Empty(t, x.Origin)
	require.Empty(t, x.Then)
	require.Equal(t, "none: the object is not in transition", x.NextMove)
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

	override(t, m, "b", "right", "ann", "a test", nil)
	require.Contains(t, linesOf(explain(t, m, "b"), user), "not go: only in here, left")

	override(t, m, "b", "late", "ann", "a test", nil)
	x = explain(t, m, "b")
	require.Contains(t, linesOf(x, user), "not fix: only in here (with force)")
	require.Contains(t, x.String(), "; after 1m0s the sweeper fires over: the table refuses it now: refused by a guard: never: not; now\n")
}

// Each form of a row and of a state that the other tables lack.
var forms = fsm.Must[size](fsm.Spec[state, event]{
	Name: "forms", Initial: "here", Actors: []fsm.Actor{user, "worker"},
	States: []fsm.State[state]{
		{Name: "here"},
		{Name: "there"},
		{Name: "polled"},
		{Name: "moving", Kind: fsm.Transitional},
		{Name: "broken", Kind: fsm.Transitional, Manual: "an operator looks"},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("here", "go", "there").By(user).OnlyForced(),
		fsm.Move[state, event]("here", "go", "moving").By(user),
		fsm.Move[state, event]("here", "fix", "there").By(user).If(never),
		fsm.Move[state, event]("here", "fix", "moving").By(user).OnlyForced(),
		fsm.Move[state, event]("here", "lock", "there").By(user).If(never).OnlyForced(),
		fsm.Move[state, event]("here", "poll", "polled").By("worker"),
		fsm.Move[state, event]("here", "break", "broken").By("worker"),
		fsm.Move[state, event]("there", "expire", "moving").After(time.Hour),
		fsm.Move[state, event]("there", "back", "here").AlsoFrom("polled"),
		fsm.Move[state, event]("polled", "tick", "polled").After(time.Minute),
		fsm.Return[state, event]("moving", "back").Of("there").By(user),
		fsm.Move[state, event]("moving", "stop", "there").By(user),
		fsm.Move[state, event]("moving", "drop", "here").By(user),
		fsm.Ignore[state, event]("moving", "look").By("worker"),
		fsm.Return[state, event]("moving", "late").After(time.Minute),
		fsm.Move[state, event]("broken", "fix", "here").By(user).OnlyForced(),
	),
})

var never = fsm.When("never", func(context.Context, *size, *size) error { return errors.New("no") })

// TestExplainForms: the text about a record of each form, and the cause is that of a sweep.
func TestExplainForms(t *testing.T) {
	for name, c := range map[string]struct {
		state   state
		timeout time.Duration // of the record; it has passed
		head    string        // the text without the events
		user    []string
		worker  []string
	}{
		"at rest": {
			state: "here",
			head:  "here (stable) since 2000-01-01T00:00:00Z\n  next move: none: the object is not in transition",
			user: []string{
				"go to moving", "go to there, with force", "not fix: refused by a guard: never: no", "fix to moving, with force",
				"not lock, with force: refused by a guard: never: no", "not poll: only by worker", "not break: only by worker",
				"not back: only in there, polled, moving", "not stop: only in moving", "not drop: only in moving",
			},
			worker: []string{
				"not go: only by user", "not fix: only by user", "not lock: only by user", "poll to polled", "break to broken",
				"not back: only in there, polled", "not look: only in moving",
			},
		},
		"at rest, with a deadline and no row": {
			state: "here", timeout: time.Minute,
			head: "here (stable) since 2000-01-01T00:00:00Z\n  next move: none until the deadline: the object is not in transition\n  deadline: 2000-01-01T00:01:00Z",
		},
		"at rest, with a row and no deadline": {
			state: "there",
			head:  "there (stable) since 2000-01-01T00:00:00Z\n  next move: none: the object is not in transition",
		},
		"at rest, at the deadline": {
			state: "there", timeout: time.Hour,
			head: "there (stable) since 2000-01-01T00:00:00Z\n  cause: deadline 2000-01-01T01:00:00Z has passed" +
				"\n  next move: the sweeper fires expire: the object moves to moving, unless Config.Observe returns another event, if the deadline has passed by the clock of the store" +
				"\n  deadline: 2000-01-01T01:00:00Z; after 1h0m0s the sweeper fires expire: the object moves to moving, unless Config.Observe returns another event",
		},
		"polled": {
			state: "polled", timeout: time.Minute,
			head: "polled (stable) since 2000-01-01T00:00:00Z\n  cause: deadline 2000-01-01T00:01:00Z has passed" +
				"\n  next move: the sweeper fires tick: the object moves to polled, unless Config.Observe returns another event, if the deadline has passed by the clock of the store" +
				"\n  deadline: 2000-01-01T00:01:00Z; after 1m0s the sweeper fires tick: the object moves to polled, unless Config.Observe returns another event",
		},
		"in transition": {
			state: "moving", timeout: time.Minute,
			head: "moving (transitional) since 2000-01-01T00:00:00Z, origin here\n  cause: deadline 2000-01-01T00:01:00Z has passed" +
				"\n  next move: user; or the sweeper fires late: the object returns to here, unless Config.Observe returns another event, if the deadline has passed by the clock of the store" +
				"\n  deadline: 2000-01-01T00:01:00Z; after 1m0s the sweeper fires late: the object returns to here, unless Config.Observe returns another event",
			user: []string{
				"not back: not allowed: no row for an object of this origin", "stop to there", "drop to here", "not look: only by worker", "not late: only by sweeper",
				"not go: only in here (with force), here", "not fix: only in here, here (with force), broken (with force)", "not lock: only in here (with force)",
			},
			worker: []string{
				"not back: wrong actor", "not stop: only by user", "not drop: only by user", "look is ignored", "not late: only by sweeper",
				"not poll: only in here", "not break: only in here",
			},
		},
		"manual": {
			state: "broken",
			head: "broken (transitional) since 2000-01-01T00:00:00Z, origin here\n  cause: the operation has neither an owner nor a deadline" +
				"\n  next move: an operator: an operator looks\n  no deadline: an operator looks",
		},
		"manual, with a deadline": {
			state: "broken", timeout: time.Minute,
			head: "broken (transitional) since 2000-01-01T00:00:00Z, origin here\n  cause: deadline 2000-01-01T00:01:00Z has passed" +
				"\n  next move: an operator: an operator looks\n  deadline: 2000-01-01T00:01:00Z",
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := lifecycle.Must(forms, store, &lifecycle.Config[event]{
				Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) { return "", "", nil },
			})
			r := storedAt(t, store, lifecycle.Key{Machine: "forms", ID: "a"})
			r.State, r.Origin, r.Sequence = string(c.state), string(c.state), 1
			if m.Machine().Kind(c.state) == fsm.Transitional {
				r.Origin = "here"
			}
			require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{
				Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{Expect: r.Revision, To: r, Timeout: c.timeout}},
			}))
			time.Sleep(c.timeout + 1)
			x := explain(t, m, "a")
			head, _, _ := strings.Cut(x.Verbose(), "\n  user:\n")
			require.Equal(t, `forms "a" is `+c.head, head)
			if c.user != nil {
				require.Equal(t, c.user, linesOf(x, user))
				require.Equal(t, c.worker, linesOf(x, "worker"))
			}
			found, err := lifecycle.Stuck(t.Context(), m, 0)
			require.NoError(t, err)
			cause := ""
			if len(found) > 0 {
				cause = found[0].Cause
			}
			require.Equal(t, cause, x.Cause)
		})
	}
}

// TestExplainNamesTenStates: of more states that have a row for an event.
func TestExplainNamesTenStates(t *testing.T) {
	spec := fsm.Spec[state, event]{Name: "many", Initial: "hub", Actors: []fsm.Actor{user}, States: []fsm.State[state]{{Name: "hub"}}}
	for i := range 11 {
		s := fmt.Sprint("s", i)
		spec.States = append(spec.States, fsm.State[state]{Name: state(s)})
		spec.Rows = append(spec.Rows, fsm.Move[state, event]("hub", event("to "+s), state(s)), fsm.Move(state(s), event("back"), "hub"))
		if i < 10 {
			spec.Rows = append(spec.Rows, fsm.Move(state(s), event("home"), "hub"))
		}
	}
	m := lifecycle.Must(fsm.Must[size](spec), lifecycle.NewMemoryStore(), nil)
	add(t, m, "a", user, size{})
	lines := linesOf(explain(t, m, "a"), user)
	const ten = "only in s0, s1, s2, s3, s4, s5, s6, s7, s8, s9"
	require.Contains(t, lines, "not back: "+ten+", and 1 more")
	require.Contains(t, lines, "not home: "+ten)
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

	// A guard whose context has ended has not decided anything.
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the caller has left")
	m = lifecycle.Must(gates, &cancels{store, cancel, left}, nil)
	_, err := m.Explain(ctx, "a")
	require.ErrorIs(t, err, left)

	m = lifecycle.Must(gates, store, nil)
	for n, ended := 1, true; ended; n++ {
		ctx, stop := suitetest.EndWhenExamined(t.Context(), n, left)
		if _, err := m.Explain(ctx, "a"); err != nil {
			require.ErrorIs(t, err, context.Canceled, n)
			require.ErrorIs(t, err, left, n)
		}
		ended = stop()
	}
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
		ticket := do(t, m, "vm", "stop", user, lifecycle.Named("stop", nil), nil)
		synctest.Wait()
		x := explain(t, m, "vm")
		require.Contains(t, x.String(), "\n  work: stop\n")
		require.Equal(t, "the process p, which is alive", x.NextMove)

		time.Sleep(time.Until(x.Deadline))
		x = explain(t, m, "vm")
		require.Equal(t, "the process p, which is alive; or the sweeper fires late: the object returns to running, if the deadline has passed by the clock of the store", x.NextMove)
		close(hold)
		wait(t, ticket)
	})
}
