package explore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// roundTrip fails unless the fixture of a trace reads back as the same trace.
func roundTrip(t require.TestingT, tr *explore.Trace) {
	data, err := tr.Fixture()
	require.NoError(t, err)
	again, err := explore.ParseTrace(data)
	require.NoError(t, err, string(data))
	require.Empty(t, cmp.Diff(tr, again, cmpopts.EquateEmpty()))
	twice, err := again.Fixture()
	require.NoError(t, err)
	require.Equal(t, string(data), string(twice))
	require.Equal(t, tr.String(), again.String())
}

// mail is a system with every kind of step. Its names and texts look like syntax.
func mail() *explore.System {
	sys := explore.New("mail; #1")
	budget := sys.Budget("faults", 4)
	a := explore.NewActor(sys, "a;\nb", 0)
	b := explore.NewActor(sys, "<b>", 0)
	c := explore.NewChannel(sys, "%% c", explore.ChannelSpec{Capacity: 3, Ordered: true, Lose: budget, Duplicate: budget}, "first: #")
	a.Acts(func(l int, step func(string, int)) { step("rests\nnot", (l+1)%2) })
	explore.Sends(a, c, func(l int, send func(string, string, int)) {
		if l == 1 {
			send("", "", l)
		}
	})
	explore.Receives(b, c, func(l int, m string, next func(string, int)) {
		if m == "" {
			next("->> takes", min(l+1, 2))
		}
	})
	crash := sys.Fault("crash", budget, c)
	explore.Strikes(crash, b, func(l int) (int, bool) { return 9, l == 2 })
	sys.Always("never again", func(v *explore.View) error {
		if b.In(v) == 9 && len(c.In(v)) == 0 && strings.HasSuffix(v.String(), "; faults 1") {
			return errors.New("crashed")
		}
		return nil
	})
	return sys
}

func TestTraces(t *testing.T) {
	v := explored(t, mail(), nil)
	require.Equal(t, explore.Violated, v.Outcome)
	kinds := map[explore.StepKind]bool{}
	for _, s := range v.Trace.Steps {
		kinds[s.Kind] = true
	}
	require.Equal(t, map[explore.StepKind]bool{
		explore.StepAct: true, explore.StepSend: true, explore.StepDeliver: true,
		explore.StepLose: true, explore.StepDuplicate: true, explore.StepFault: true,
	}, kinds)
	require.Equal(t, `  a;<U+000A>b: 0
  <b>: 0
  %% c: first: #
      a;<U+000A>b  %% c    <b>
   1       *         |      |     rests<U+000A>not; a;<U+000A>b: 1
   2       o-------->|      |     ""
   3       |         x      |     first: # is lost
   4       |         +      |     "" is duplicated
   5       |         |----->o     ->> takes: ""; <b>: 1
   6       |         |----->o     ->> takes: ""; <b>: 2
   7       |         |      #     crash; <b>: 9
`, v.Trace.String())
	roundTrip(t, v.Trace)
}

func TestFixturesThatDoNotFit(t *testing.T) {
	v := explored(t, alternatingBit(true, false), nil)
	data, err := v.Trace.Fixture()
	require.NoError(t, err)
	good := string(data)
	tests := map[string]struct{ old, new, want string }{
		"no JSON":        {"{", "[", "invalid character"},
		"more behind it": {"\n}\n", "\n}\n{}", "after top-level value"},
		"other format":   {"protocol-trace/1", "protocol-trace/2", `format "protocol-trace/2"`},
		"no actors":      {`"actors": [`, `"actors": [], "others": [`, "no actor"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, good, test.old)
			_, err := explore.ParseTrace([]byte(strings.Replace(good, test.old, test.new, 1)))
			require.ErrorIs(t, err, explore.ErrTrace)
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err = explore.ParseTrace([]byte(good))
	require.NoError(t, err)
}

// The trace of a livelock has a loop without faults.
func TestLoopIsDrawn(t *testing.T) {
	g := &modelGraph{
		next: [][]refStep{{{to: 1}, {to: 3}}, {{fault: true, to: 2}, {to: 2}}, {{to: 1}}, {}}, bad: make([]bool, 4), rests: []bool{false, false, false, true},
		from: make([]bool, 4), to: make([]bool, 4),
	}
	v, err := g.model(true).Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, explore.Livelock, v.Outcome)
	require.Equal(t, 2, v.Trace.Loop)
	require.Len(t, v.Trace.Steps, 3)
	for _, s := range v.Trace.Steps {
		require.Equal(t, explore.StepAct, s.Kind)
	}
	require.Contains(t, v.Trace.String(), "     forever:\n   2 ")
	roundTrip(t, v.Trace)
}

// ParseTrace returns only traces that String and Fixture accept.
func FuzzParseTrace(f *testing.F) {
	for _, sys := range []*explore.System{mail(), alternatingBit(false, true), alternatingBit(true, false)} {
		v, err := sys.Explore(f.Context(), nil)
		require.NoError(f, err)
		data, err := v.Trace.Fixture()
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"format":"protocol-trace/1","actors":[{"name":""}],"steps":[{"kind":"fault","emptied":[{"channel":""}]}]}`))
	f.Add([]byte(`{"format":"protocol-trace/1","actors":[{"name":"a"}],"channels":[{"name":"a"}],"steps":[{"kind":"fault"}],"loop":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := explore.ParseTrace(data)
		if err != nil {
			require.ErrorIs(t, err, explore.ErrTrace)
			return
		}
		roundTrip(t, tr)
	})
}

// The names of a system and its properties take one line, as those of its parts do.
func TestVerdictOfOddNames(t *testing.T) {
	v := explore.Verdict{System: "a\nb", Outcome: explore.Violated, Property: "c\x1b"}
	require.Equal(t, "a<U+000A>b: violated: c<U+001B> (0 states, 0 steps, depth 0)", v.String())
	v = explore.Verdict{System: "s", Outcome: explore.Holds, Live: []string{"a\nb"}}
	require.Equal(t, "s: holds (0 states, 0 steps, depth 0)\n  leads to: a<U+000A>b", v.String())
}

// The trace of a fault has the messages that it removes.
func TestTraceOfEmptiedChannels(t *testing.T) {
	sys := explore.New("disconnect")
	a := explore.NewActor(sys, "a", 0)
	b := explore.NewActor(sys, "b", 0)
	c := explore.NewChannel[string](sys, "wire", explore.ChannelSpec{Capacity: 2, Ordered: true})
	quiet := explore.NewChannel(sys, "quiet", explore.ChannelSpec{Capacity: 1}, "")
	explore.Sends(a, c, func(l int, send func(string, string, int)) {
		if l < 2 {
			send("report", string(rune('x'+l)), l+1)
		}
	})
	explore.Receives(b, c, func(int, string, func(string, int)) {})
	explore.Receives(b, quiet, func(int, string, func(string, int)) {})
	cut := sys.Fault("cut", sys.Budget("cuts", 1), c, quiet)
	explore.Strikes(cut, b, func(l int) (int, bool) { return 1, true })
	sys.Always("two reports arrive", func(v *explore.View) error {
		if a.In(v) == 2 && len(c.In(v)) == 0 {
			return errors.New("lost")
		}
		return nil
	})
	v := explored(t, sys, nil)
	require.Equal(t, explore.Violated, v.Outcome)
	last := v.Trace.Steps[len(v.Trace.Steps)-1]
	require.Equal(t, []explore.TraceQueue{{Channel: "wire", Messages: []string{"x", "y"}}, {Channel: "quiet", Messages: []string{""}}}, last.Emptied)
	require.Contains(t, v.Trace.String(), "\n  quiet: \"\"\n")
	require.Contains(t, v.Trace.String(), `cut; wire loses x, y; quiet loses ""; b: 1`)
	roundTrip(t, v.Trace)
}
