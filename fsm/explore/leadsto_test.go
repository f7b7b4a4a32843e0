package explore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// roads is a model of states 0 to 9 from a list of steps such as "0 go 1; 1 !break 2". A
// mark ! is a fault. The labels that fair lists are fair. State 0 leads to state 9.
func roads(steps string, fair ...string) *explore.Model[int] {
	return &explore.Model[int]{
		Name: "roads", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) {
			for part := range strings.SplitSeq(steps, ";") {
				var from, to int
				var label string
				if _, err := fmt.Sscan(part, &from, &label, &to); err != nil {
					panic(err)
				}
				if from == s {
					step(strings.TrimPrefix(label, "!"), label[0] == '!', to)
				}
			}
		},
		Rests: func(int) bool { return true },
		Fair:  func(label string) bool { return slices.Contains(fair, label) },
		LeadsTo: map[string]explore.LeadsTo[int]{
			"arrives": {From: func(s int) bool { return s == 0 }, To: func(s int) bool { return s == 9 }},
		},
	}
}

// labels returns the labels of a trace, with a bar before the loop.
func labels(tr *explore.Trace) string {
	var list []string
	for i, s := range tr.Steps {
		if tr.Loop > 0 && i == len(tr.Steps)-tr.Loop {
			list = append(list, "|")
		}
		list = append(list, s.Label)
	}
	return strings.Join(list, " ")
}

func TestLeadsTo(t *testing.T) {
	for _, c := range []struct {
		name, steps, fair string
		want              string // labels of the counterexample; "holds": none
	}{
		{"a fair step is taken", "0 go 9", "go", "holds"},
		{"an unfair step may wait forever", "0 go 9", "", ""},
		{"a fair step ends a loop", "0 spin 0; 0 go 9", "go", "holds"},
		{"a fair loop that no fair step leaves", "0 spin 0; 0 go 9", "spin", "| spin"},
		{"fairness is weak", "0 a 1; 1 b 0; 0 go 9", "a b go", "| a b"},
		{"a step that stays possible is taken", "0 a 1; 1 b 0; 0 go 9; 1 go 9", "a b go", "holds"},
		{"a deadlock", "0 a 1; 0 go 9", "a go", "a"},
		{"a loop later", "0 a 1; 1 b 2; 2 c 1; 0 go 9; 1 out 9", "a b c go out", "a | b c"},
		{"a step that is taken elsewhere in the loop", "0 a 1; 1 b 0; 0 b 9; 1 c 9", "a b", "| a b"},
		{"the loop takes every fair action", "0 a 1; 1 b 0; 0 c 2; 2 d 0; 1 c 0; 2 a 0; 1 a 1; 2 c 2; 0 x 9", "a c", "| a c"},
		{"a fault before the loop", "0 !break 1; 1 spin 1; 0 go 9", "go spin", "break | spin"},
		{"a fault is not a part of a loop", "0 a 1; 1 !break 0; 1 go 9", "a go", "holds"},
		{"after the property", "9 spin 8; 8 spin 9; 0 go 9", "go spin", "holds"},
		{"the loop visits a state that does not want an action", "0 a 1; 1 b 0; 1 c 2; 2 d 0; 0 x 9; 1 x 9", "x d", "| a c d"},
		{"two ways to the same state", "0 a 1; 0 b 1; 1 c 0; 1 b 9", "b c", "| b c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := roads(c.steps, strings.Fields(c.fair)...)
			v, err := m.Explore(t.Context(), nil)
			require.NoError(t, err)
			if c.want == "holds" {
				require.NoError(t, v.Err())
				require.Equal(t, []string{"arrives"}, v.Live)
				return
			}
			require.Equal(t, explore.Unreached, v.Outcome, v)
			require.Equal(t, "arrives", v.Property)
			require.Equal(t, c.want, labels(v.Trace), v)
			roundTrip(t, v.Trace)

			v, err = m.Explore(t.Context(), &explore.Config{SkipLeadsTo: true})
			require.NoError(t, err)
			require.NoError(t, v.Err())
			require.Empty(t, v.Live)
		})
	}
}

// The text of a counterexample shows the loop, or that the run may stop.
func TestLeadsToText(t *testing.T) {
	v, err := roads("0 a 1; 1 b 2; 2 c 1; 2 out 9", "a", "b", "c", "out").Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, `roads: unreached: arrives (4 states, 4 steps, depth 3)
  state: 0
      state
   1    *     a; state: 1
     forever:
   2    *     b; state: 2
   3    *     c; state: 1
`, v.String())
	v, err = roads("0 a 1; 1 out 9", "a").Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, `roads: unreached: arrives (3 states, 2 steps, depth 2)
  state: 0
      state
   1    *     a; state: 1
     stops: no fair action is possible
`, v.String())
	v, err = roads("0 a 9", "a").Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "roads: holds (2 states, 1 steps, depth 1)\n  leads to: arrives\n", v.String()+"\n")
}

// lossy sends one request over a channel that may lose it twice, and repeats it. Without
// fairness of one of the two steps the request never arrives.
func lossy(send, deliver bool) *explore.System {
	sys := explore.New("lossy")
	a, b := explore.NewActor(sys, "a", ""), explore.NewActor(sys, "b", "waits")
	c := explore.NewChannel[string](sys, "c", explore.ChannelSpec{Capacity: 2, Lose: sys.Budget("loss", 2)})
	sends := explore.Sends(a, c, func(l string, send func(string, string, string)) { send("", "request", l) })
	delivers := explore.Receives(b, c, func(_, _ string, next func(string, string)) { next("", "has it") })
	if send {
		sends.Fair()
	}
	if deliver {
		delivers.Fair()
	}
	sys.LeadsTo("it arrives", nil, func(v *explore.View) bool { return b.In(v) == "has it" })
	return sys
}

func TestLeadsToOverALossyChannel(t *testing.T) {
	require.NoError(t, explored(t, lossy(true, true), nil).Err())

	v := explored(t, lossy(false, true), nil)
	require.Equal(t, explore.Unreached, v.Outcome)
	require.Empty(t, v.Trace.Steps, "the sender need not send: %v", v)

	v = explored(t, lossy(true, false), nil)
	require.Equal(t, explore.Unreached, v.Outcome)
	require.Len(t, v.Trace.Steps, 2, "the channel is full, and nothing is delivered: %v", v)
	require.Zero(t, v.Trace.Loop)
}

// crowd has a sender with two messages for one channel, of which the second counts.
func crowd(capacity int, ordered bool) *explore.System {
	sys := explore.New("crowd")
	a, b := explore.NewActor(sys, "a", 0), explore.NewActor(sys, "b", 0)
	c := explore.NewChannel[int](sys, "c", explore.ChannelSpec{Capacity: capacity, Ordered: ordered})
	explore.Sends(a, c, func(l int, send func(string, int, int)) {
		send("", 1, l)
		send("", 2, l)
	}).Fair()
	explore.Receives(b, c, func(l, m int, next func(string, int)) { next("", max(l, m)) }).Fair()
	sys.LeadsTo("the second arrives", nil, func(v *explore.View) bool { return b.In(v) == 2 })
	return sys
}

// Each message is an action of its own. A sender is not kept out of a channel forever
// that has room again and again. A message in an unordered channel is not passed forever.
func TestLeadsToOfEveryMessage(t *testing.T) {
	for capacity := 1; capacity <= 3; capacity++ {
		for _, ordered := range []bool{false, true} {
			require.NoError(t, explored(t, crowd(capacity, ordered), nil).Err())
		}
	}
}

// A fair send into a channel that stays full waits forever, also if the channel need not
// stay full.
func TestLeadsToBehindAFullChannel(t *testing.T) {
	sys := explore.New("full")
	a, b, other := explore.NewActor(sys, "a", 0), explore.NewActor(sys, "b", 0), explore.NewActor(sys, "other", 0)
	full := explore.NewChannel(sys, "full", explore.ChannelSpec{Capacity: 1}, 1)
	explore.Sends(a, full, func(_ int, send func(string, int, int)) { send("", 2, 9) }).Fair()
	explore.Sends(other, full, func(l int, send func(string, int, int)) { send("", 1, l) }) // not fair
	explore.Receives(b, full, func(int, int, func(string, int)) {})                         // not fair
	b.Acts(func(l int, step func(string, int)) { step("turns", 1-l) }).Fair()
	sys.LeadsTo("sent", nil, func(v *explore.View) bool { return a.In(v) == 9 })
	v := explored(t, sys, nil)
	require.Equal(t, explore.Unreached, v.Outcome, v)
	require.Equal(t, "| turns turns", labels(v.Trace))
}

// Peterson's algorithm starves no process, if each of them is fair.
func TestPetersonIsLive(t *testing.T) {
	m := peterson(false)
	m.LeadsTo = map[string]explore.LeadsTo[[2]contender]{"enters": {
		From: func(s [2]contender) bool { return s[0].At == 1 },
		To:   func(s [2]contender) bool { return s[0].At == 3 },
	}}
	v, err := m.Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, explore.Unreached, v.Outcome)
	m.Fair = func(string) bool { return true }
	v, err = m.Explore(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, v.Err())
	m.Fair = func(label string) bool { return label == "0" } // the other may stop inside
	v, err = m.Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, explore.Unreached, v.Outcome)
}

// Verdicts do not depend on the number of workers.
func TestLeadsToWithWorkers(t *testing.T) {
	for _, fair := range []bool{false, true} {
		var first *explore.Verdict
		for _, workers := range []int{1, 2, 5} {
			sys := shop(2, 2)
			sys.LeadsTo("never", func(*explore.View) bool { return fair }, func(*explore.View) bool { return false })
			v := explored(t, sys, &explore.Config{Workers: workers})
			if first == nil {
				first = v
			}
			require.Equal(t, fair, v.Outcome == explore.Unreached)
			require.Equal(t, first, v)
		}
	}
}

// The memory of the pass counts, and a context that ends ends it.
func TestLeadsToBounds(t *testing.T) {
	sys := func() *explore.System {
		sys := counters(2, 60, 0)
		sys.LeadsTo("moves", func(*explore.View) bool { return true }, func(*explore.View) bool { return true })
		return sys
	}
	all := explored(t, sys(), nil)
	require.NoError(t, all.Err())
	safe := explored(t, sys(), &explore.Config{SkipLeadsTo: true})
	require.Greater(t, all.Bytes, safe.Bytes)
	v := explored(t, sys(), &explore.Config{MaxBytes: all.Bytes - 1})
	require.Equal(t, explore.Inconclusive, v.Outcome)
	require.ErrorIs(t, v.Reason, explore.ErrMaxBytes)
	require.NoError(t, explored(t, sys(), &explore.Config{MaxBytes: all.Bytes}).Err())

	requireEnds(t, roads("0 a 1; 1 b 2; 2 c 9", "a", "b", "c"), explore.Holds)
}
