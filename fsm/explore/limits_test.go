package explore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// A channel may have more different messages than two bytes can count.
func TestManyMessages(t *testing.T) {
	sys := explore.New("many")
	a := explore.NewActor(sys, "a", 0)
	c := explore.NewChannel[int](sys, "c", explore.ChannelSpec{Capacity: 1})
	explore.Sends(a, c, func(l int, send func(string, int, int)) {
		for m := range 70_000 {
			send("", m, l)
		}
	})
	explore.Receives(a, c, func(int, int, func(string, int)) {})
	sys.Rests(func(*explore.View) bool { return true })
	v := explored(t, sys, nil)
	require.NoError(t, v.Err())
	require.Equal(t, 70_001, v.States)
	require.Equal(t, 140_000, v.Steps)
}

// The loop of a livelock may start some steps after the last state with a path to rest.
func TestLivelockLoopStartsLater(t *testing.T) {
	m := &explore.Model[int]{
		Name: "beyond", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) {
			switch s {
			case 0:
				step("lost", false, 1)
				step("home", false, 9)
			case 4:
				step("round", false, 3)
			case 9:
			default:
				step("on", false, s+1)
			}
		},
		Rests: func(s int) bool { return s == 9 },
	}
	v, err := m.Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, explore.Livelock, v.Outcome)
	require.Equal(t, 2, v.Trace.Loop)
	require.Len(t, v.Trace.Steps, 5)
	require.Equal(t, "3", v.Trace.Steps[4].Locals[0].After)
}

// The verdict is inconclusive if the context ends during the search for livelocks.
func TestCancellationAfterTheSearch(t *testing.T) {
	m := &explore.Model[int]{
		Name: "late", Initial: []int{0},
		Next:  func(s int, step func(string, bool, int)) { step("", false, min(s+1, 5)) },
		Rests: func(s int) bool { return s == 5 },
	}
	requireEnds(t, m, explore.Holds)
}

// requireEnds lets the context of an exploration end at every place: the verdict is
// inconclusive, until the exploration comes to its end.
func requireEnds(t *testing.T, m *explore.Model[int], want explore.Outcome) {
	t.Helper()
	ctx := &endingContext{Context: t.Context()}
	for after := range 200 {
		ctx.after = after
		v, err := m.Explore(ctx, &explore.Config{Workers: 1})
		require.NoError(t, err)
		if v.Outcome == want {
			return
		}
		require.Equal(t, explore.Inconclusive, v.Outcome)
		require.ErrorIs(t, v.Reason, errEnded)
	}
	require.Fail(t, "no exploration came to its end")
}

// The loop of a livelock begins at the earliest state that is on one. A context that ends
// during the search for it makes the verdict inconclusive.
func TestLivelockAtTheEndOfAChain(t *testing.T) {
	const end = 50
	m := &explore.Model[int]{
		Name: "chain", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) {
			if s == end+1 {
				step("back", false, end)
				return
			}
			step("on", false, s+1)
		},
		Rests: func(int) bool { return false },
	}
	v, err := m.Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, explore.Livelock, v.Outcome)
	require.Equal(t, 2, v.Trace.Loop)
	require.Len(t, v.Trace.Steps, end+2)

	requireEnds(t, m, explore.Livelock)
}

var errEnded = errors.New("ended")

// endingContext ends after a number of calls of Err.
type endingContext struct {
	context.Context
	after int
}

func (c *endingContext) Err() error {
	if c.after--; c.after < 0 {
		return errEnded
	}
	return nil
}

// Progress receives the number of explored states and of those that were found, and each
// report once. The numbers of a phase never fall, and the verdict is that of an exploration
// without it.
func TestProgress(t *testing.T) {
	const states = 1 << 15 // the last report of a pass is of its last state
	m := &explore.Model[int]{
		Name: "long", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) {
			step("one", false, min(s+1, states-1))
			step("two", false, min(2*s+1, states-1))
		},
		Rests:   func(s int) bool { return s == states-1 },
		LeadsTo: map[string]explore.LeadsTo[int]{"ends": {To: func(s int) bool { return s == states-1 }}},
		Fair:    func(string) bool { return true },
	}
	want, err := m.Explore(t.Context(), nil)
	require.NoError(t, err)
	type report struct {
		what        string
		done, total int
	}
	var reports []report
	got, err := m.Explore(t.Context(), &explore.Config{Progress: func(what string, done, total int) {
		reports = append(reports, report{what, done, total})
	}})
	require.NoError(t, err)
	require.Equal(t, want, got)
	last, found := map[string]report{}, 0
	for _, r := range reports {
		require.LessOrEqual(t, r.done, r.total, r)
		require.NotEqual(t, last[r.what], r)
		if r.what == "explore long" {
			require.Greater(t, r.done, last[r.what].done, r)
			require.GreaterOrEqual(t, r.total, found, r)
			found = r.total
		}
		last[r.what] = r
	}
	require.Equal(t, report{"explore long", states, states}, last["explore long"])
	require.Contains(t, last, "check long")
	require.Len(t, last, 2)
}

// The verdict is inconclusive if the context ends while the components of many states are found.
func TestContextEndsInComponents(t *testing.T) {
	const n = 50_000
	m := &explore.Model[int]{
		Name: "ring", Initial: []int{0},
		Next:  func(s int, step func(string, bool, int)) { step("on", false, (s+1)%n) },
		Rests: func(int) bool { return false },
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	v, err := m.Explore(ctx, &explore.Config{Progress: func(what string, _, total int) {
		if strings.HasPrefix(what, "check ") && total == n {
			end()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, explore.Inconclusive, v.Outcome)
	require.ErrorIs(t, v.Reason, context.Canceled)
	require.Nil(t, v.Trace)
}
