package fsmtest_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

func fire(t testing.TB, in *fsm.Instance[string, string, disk], event string, actor fsm.Actor, d *disk) {
	t.Helper()
	_, _ = in.Fire(t.Context(), event, actor, d)
}

// lamps has two rows that do the same, apart from the guard.
var lamps = fsm.Must[disk](fsm.Spec[string, string]{
	Name: "lamp", Initial: "off", Actors: []fsm.Actor{user},
	States: []fsm.State[string]{{Name: "off"}, {Name: "on"}},
	Rows: fsm.Rows(
		fsm.Move("off", "switch", "on").If(asks("old", func(d *disk) bool { return d.old })),
		fsm.Move("off", "switch", "on"),
		fsm.Move("on", "switch", "off"),
	),
})

func TestCoverage(t *testing.T) {
	m, c := fsmtest.Watch(lamps, nil)
	require.Equal(t, `coverage of lamp: 0 of 2 states (0%) 0 of 3 transitions (0%) 0 of 2 guard outcomes (0%)
	not covered: state off
	not covered: state on
	not covered: off -switch-> on (row 0)
	not covered: off -switch-> on (row 1)
	not covered: on -switch-> off
	not covered: guard old agrees: off -switch-> on (row 0)
	not covered: guard old refuses: off -switch-> on (row 0)`, c.String())
	in := m.Instance()
	fire(t, &in, "switch", user, &disk{old: true})
	require.Equal(t, []string{"off -switch-> on (row 1)", "on -switch-> off", "guard old refuses: off -switch-> on (row 0)"}, c.Missing())
	fire(t, &in, "switch", user, nil)
	fire(t, &in, "switch", user, nil)
	require.Empty(t, c.Missing())
	require.Empty(t, c.Faults())
	require.Equal(t, "coverage of lamp: 2 of 2 states (100%) 3 of 3 transitions (100%) 2 of 2 guard outcomes (100%)", c.String())
}

func TestCoverageOfWhatAsksOnly(t *testing.T) {
	m, c := fsmtest.Watch(lamps, nil)
	_, err := m.Next(t.Context(), m.At("off"), "switch", user, &disk{old: true})
	require.NoError(t, err)
	require.Len(t, c.Missing(), 6, "only the guard was asked")
	c.Saw(fsm.Moved{From: "off", Origin: "off", To: "on", Event: "switch", Actor: user, Row: -1})
	require.Contains(t, c.String(), "1 moves could be of several rows")
	c.Saw(fsm.Moved{From: "on", Origin: "on", To: "off", Event: "switch", Actor: user, Row: -1})
	c.Saw(fsm.Moved{From: "off", Origin: "off", To: "on", Event: "switch", Actor: user, Row: 1})
	c.Saw(fsm.Moved{From: "off", Origin: "off", To: "on", Event: "explode", Actor: user, Row: -1})
	require.Contains(t, c.String(), "1 moves could be of several rows; 1 moves were of no row")
	require.Equal(t, []string{"off -switch-> on (row 0)", "guard old refuses: off -switch-> on (row 0)"}, c.Missing())

	_, c = fsmtest.Watch(disks, nil)
	c.Saw(fsm.Moved{To: "creating", Event: "create", Actor: user, Row: -1})
	c.Saw(fsm.Moved{From: "creating", Origin: "absent", To: "absent", Event: "failed", Actor: worker, Row: -1})
	c.Saw(fsm.Moved{From: "gone", Origin: "gone", To: "created", Event: "restore", Actor: user, Row: -1})
	for _, name := range []string{"absent -create-> creating", "creating -failed-> absent", "gone -restore-> created", "state created"} {
		require.NotContains(t, c.Missing(), name)
	}
	c.Saw(fsm.Moved{To: "broken"})
	require.NotContains(t, c.Missing(), "state broken")
}

// What an instance refuses was a state that was seen, and other observers are told.
func TestCoverageTellsOthers(t *testing.T) {
	m, c := fsmtest.Watch(lamps, nil)
	var moved, refused int
	told := m.Observe(c.Observer(fsm.Observer{
		Moved:   func(context.Context, fsm.Moved) { moved++ },
		Refused: func(context.Context, error) { refused++ },
	}))
	in := told.Instance()
	fire(t, &in, "switch", "nobody", nil)
	require.NotContains(t, c.Missing(), "state off")
	require.Contains(t, c.Missing(), "state on")
	fire(t, &in, "switch", user, nil)
	require.Equal(t, []int{1, 1}, []int{moved, refused})
}

func TestCover(t *testing.T) {
	use := func(config *fsmtest.CoverConfig, events int) func(testing.TB) {
		return func(t testing.TB) {
			m := fsmtest.Cover(t, lamps, config)
			in := m.Instance()
			for range events {
				fire(t, &in, "switch", user, nil)
			}
		}
	}
	agrees, taken := "guard old agrees: off -switch-> on (row 0)", "off -switch-> on (row 0)"
	fails(t, use(nil, 2), "coverage of lamp: 2 of 2 states (100%) 2 of 3 transitions (66%) 1 of 2 guard outcomes (50%)",
		"lamp: 2 of 3 transitions are covered, fewer than 100%: missing are\n\t"+taken, "lamp: 1 of 2 guard outcomes are covered")
	passes(t, use(&fsmtest.CoverConfig{Least: 50}, 2), "not covered: "+agrees)
	fails(t, use(&fsmtest.CoverConfig{Least: 51}, 2), "1 of 2 guard outcomes are covered, fewer than 51%")
	fails(t, use(&fsmtest.CoverConfig{Least: 50}, 1), "1 of 3 transitions")
	passes(t, use(&fsmtest.CoverConfig{Least: -1}, 0))
	why := map[string]string{agrees: "lamps are new", taken: "lamps are new"}
	passes(t, use(&fsmtest.CoverConfig{Except: why}, 2), "not covered: "+agrees+" (lamps are new)")
	why["on -switch-> off"] = "lamps stay on"
	fails(t, use(&fsmtest.CoverConfig{Except: why}, 2), `"on -switch-> off" is excepted, and covered`)
	fails(t, use(&fsmtest.CoverConfig{Except: map[string]string{agrees: "", "state red": "why"}}, 2),
		"is excepted without a reason", `"state red" is excepted, and the table has no such thing`)
}

// The watched machine does what the machine does.
func TestWatchChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMachine(t)
		watched, _ := fsmtest.Watch(m, nil)
		have, err := watched.Table().MarshalJSON()
		require.NoError(t, err)
		want, err := m.Table().MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(have))
		for s := range m.States() {
			for e := range m.Events() {
				for _, a := range m.Table().Actors {
					for on := range 8 {
						p := &switches{on: [3]bool{on&1 > 0, on&2 > 0, on&4 > 0}}
						step, err := m.Next(t.Context(), m.At(s), e, a, p)
						same, other := watched.Next(t.Context(), watched.At(s), e, a, p)
						require.Equal(t, step, same)
						require.Equal(t, err == nil, other == nil)
						if err != nil {
							require.Equal(t, err.Error(), other.Error())
						}
					}
				}
			}
		}
	})
}

// TestMain is that of a package which watches its machines, if the test below runs
// this binary once more.
func TestMain(m *testing.M) {
	var tests interface{ Run() int } = m
	switch os.Getenv("FSMTEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "pass":
		tests = lit(0)
	case "fail":
		tests = lit(3)
	}
	var c *fsmtest.Coverage
	lamps, c = fsmtest.Watch(lamps, nil)
	os.Exit(fsmtest.Main(tests, c))
}

// lit are tests that switch one lamp on, and end like this.
type lit int

func (code lit) Run() int {
	flag.Parse() // as testing.M does
	in := lamps.Instance()
	_, _ = in.Fire(context.Background(), "switch", user, nil)
	return int(code)
}

// Main judges a whole binary, unless the flags choose among its tests.
func TestMainOfABinary(t *testing.T) {
	const printed = "coverage of lamp: 2 of 2 states (100%) 1 of 3 transitions (33%) 1 of 2 guard outcomes (50%)"
	if os.Getenv("FSMTEST_CHILD") == "run" {
		lit(0).Run()
		return
	}
	for _, c := range []struct {
		child  string
		args   []string
		code   int
		judged bool
	}{
		{"pass", nil, 1, true},
		{"fail", nil, 3, true},
		{"pass", []string{"-test.run=Lamps"}, 0, false},
		{"pass", []string{"-test.short"}, 0, false},
		{"pass", []string{"-test.v"}, 1, true},
		{"run", []string{"-test.run=^TestMainOfABinary$"}, 0, false},
	} {
		cmd := exec.Command(os.Args[0], c.args...)
		cmd.Env = append(os.Environ(), "FSMTEST_CHILD="+c.child)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%v: %s", c, out)
		require.Contains(t, string(out), printed, c)
		require.Equal(t, c.judged, strings.Contains(string(out), "FAIL: lamp: 1 of 3 transitions are covered"), "%v: %s", c, out)
	}
}
