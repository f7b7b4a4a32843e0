package fsmtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

// lamps has two rows that differ in the guard only.
var lamps = fsm.Must[disk](fsm.Spec[string, string]{
	Name: "lamp", Initial: "off", Actors: []fsm.Actor{user},
	States: []fsm.State[string]{{Name: "off"}, {Name: "on"}},
	Rows: fsm.Rows(
		fsm.Move("off", "switch", "on").If(asks("old", func(d *disk) bool { return d.old })),
		fsm.Move("off", "switch", "on"),
		fsm.Move("on", "switch", "off"),
	),
})

// switchLamp fires n events at a lamp.
func switchLamp(t testing.TB, m *fsm.Machine[string, string, disk], n int, d *disk) {
	t.Helper()
	in := m.Instance()
	for range n {
		_, err := in.Fire(t.Context(), "switch", user, d)
		require.NoError(t, err)
	}
}

func TestCoverage(t *testing.T) {
	m, c := fsmtest.Watch(lamps, nil)
	require.Equal(t, `coverage of lamp: 0 of 2 states (0%) 0 of 2 transitions (0%) 0 of 2 guard results (0%)
	not covered: state off
	not covered: state on
	not covered: off -switch-> on
	not covered: on -switch-> off
	not covered: guard old passes in row 0
	not covered: guard old refuses in row 0`, c.String())
	switchLamp(t, m, 2, &disk{old: true})
	require.Equal(t, "coverage of lamp: 2 of 2 states (100%) 2 of 2 transitions (100%) 1 of 2 guard results (50%)\n"+
		"\tnot covered: guard old refuses in row 0", c.String())
	switchLamp(t, m, 1, nil)
	require.Equal(t, "coverage of lamp: 2 of 2 states (100%) 2 of 2 transitions (100%) 2 of 2 guard results (100%)", c.String())
	c.Judge(t)
}

// A system that moves its objects itself reports the moves.
func TestCoverageOfReportedMoves(t *testing.T) {
	m, c := fsmtest.Watch(lamps, nil)
	_, err := m.Next(t.Context(), m.At("off"), "switch", user, &disk{old: true})
	require.NoError(t, err)
	require.Contains(t, c.String(), "0 of 2 transitions (0%) 1 of 2 guard results (50%)", "the machine counts guards only")
	c.Saw(fsm.Moved{From: "off", To: "on", Event: "switch"})
	c.Saw(fsm.Moved{From: "off", To: "on", Event: "explode"})
	require.Contains(t, c.String(), "2 of 2 states (100%) 1 of 2 transitions (50%) 1 of 2 guard results (50%)")

	_, c = fsmtest.Watch(disks, nil)
	c.Saw(fsm.Moved{To: "creating", Event: "create", Actor: user})
	require.Contains(t, c.String(), "2 of 7 states", "an object without a state comes from the absent one")
	c.Saw(fsm.Moved{To: "created"})
	require.NotContains(t, c.String(), "no transitions", "a move without an event")
	require.Contains(t, c.String(), "3 of 7 states")
}

func TestJudge(t *testing.T) {
	use := func(config *fsmtest.CoverConfig, events int) func(testing.TB) {
		return func(t testing.TB) {
			m, c := fsmtest.Watch(lamps, config)
			switchLamp(t, m, events, nil)
			c.Judge(t)
		}
	}
	const passes1, taken = "guard old passes in row 0", "on -switch-> off"
	fails(t, use(nil, 1), "coverage of lamp: 2 of 2 states (100%) 1 of 2 transitions (50%) 1 of 2 guard results (50%)",
		"lamp: not covered:\n\t"+taken+"\n\t"+passes1)
	why := map[string]string{passes1: "lamps are new"}
	passes(t, use(&fsmtest.CoverConfig{Except: why}, 2), "not covered: "+passes1+" (lamps are new)")
	why[taken] = "lamps stay on"
	fails(t, use(&fsmtest.CoverConfig{Except: why}, 2), `exception "on -switch-> off" is needless: the test detects or covers it, or the table does not have it`)
	fails(t, use(&fsmtest.CoverConfig{Except: map[string]string{passes1: "", "state red": "why"}}, 2),
		`exception "guard old passes in row 0" has no reason`, `exception "state red" is needless`)
}

// An entry state is one of the states to cover, also if no row leads there.
func TestCoverageOfEntryStates(t *testing.T) {
	m := bound(t, `{"name":"disk","initial":"new","initials":["new","imported"],"actors":["user"],
		"states":[{"name":"new","kind":"stable"},{"name":"imported","kind":"stable"},{"name":"gone","kind":"final"}],
		"transitions":[
			{"from":"new","event":"scrap","to":"gone"},
			{"from":"imported","event":"scrap","to":"gone"}]}`)
	_, c := fsmtest.Watch(m, nil)
	c.Saw(fsm.Moved{From: "new", To: "gone", Event: "scrap"})
	require.Equal(t, `coverage of disk: 2 of 3 states (66%) 1 of 2 transitions (50%)
	not covered: state imported
	not covered: imported -scrap-> gone`, c.String())
}

// The watched machine does what the machine does.
func TestWatchChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMachine(t)
		watched, _ := fsmtest.Watch(m, nil)
		require.Same(t, m.Table(), watched.Table())
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

// A file may lack a source of a wildcard row: a state that was added by hand. The watched
// machine has the sources of the file.
func TestWatchKeepsSourcesOfAFile(t *testing.T) {
	m := bound(t, `{"name":"link","initial":"up","actors":["user"],
		"states":[{"name":"up","kind":"stable"},{"name":"idle","kind":"stable"},{"name":"lost","kind":"stable"}],
		"transitions":[
			{"from":"up","event":"lose","to":"lost","any":true},
			{"from":"up","event":"rest","to":"idle"},
			{"from":"idle","event":"wake","to":"up"},
			{"from":"lost","event":"wake","to":"up"}]}`)
	watched, _ := fsmtest.Watch(m, nil)
	for _, m := range []*fsm.Machine[string, string, disk]{m, watched} {
		require.NoError(t, m.Can(t.Context(), m.At("up"), "lose", user, nil))
		require.ErrorIs(t, m.Can(t.Context(), m.At("idle"), "lose", user, nil), fsm.ErrNotAllowed)
	}
}

// A state may have a timeout for one origin, and an operator for the others.
func TestWatchKeepsManualBesideATimeout(t *testing.T) {
	m := fsm.Must[disk](fsm.Spec[string, string]{
		Name: "backup", Initial: "idle", Actors: []fsm.Actor{user},
		States: []fsm.State[string]{
			{Name: "idle"}, {Name: "full"}, {Name: "running", Kind: fsm.Transitional, Manual: "the storage team"},
		},
		Rows: fsm.Rows(
			fsm.Move("idle", "run", "running"),
			fsm.Move("full", "run", "running"),
			fsm.Move("running", "done", "full"),
			fsm.Return("running", "late").Of("idle").After(time.Minute),
		),
	})
	watched, _ := fsmtest.Watch(m, nil)
	require.Equal(t, m.Table().States, watched.Table().States)
}
