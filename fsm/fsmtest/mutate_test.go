package fsmtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/fsm/tour"
)

type diskMachine = *fsm.Machine[string, string, disk]

// A tour of the table detects every mutant of the machine.
func TestMutateByTour(t *testing.T) {
	passes(t, func(t testing.TB) {
		fsmtest.Mutate(t, disks, func(t testing.TB, m diskMachine) {
			fsmtest.Tour(t, disks.Table(), fsmtest.Drive(m, payload), nil)
		}, &fsmtest.MutateConfig{Survivors: map[string]string{
			"row 3 (created -resize-> created) is ignored":          "a driver reports the state of the object, not whether it moved",
			"row 10 (deleting -delete-> ignored) leads to deleting": "as above",
			"row 12 (any -lost-> broken) is for user only":          "a tour takes a row by one actor",
			"row 13 (broken -repair-> created) is for user only":    "as above",
		}})
	}, "disk: 60 of 64 mutants detected; 1 are equivalent, fsm.New refuses 21")
}

// Mutants of rows that a test does not cover survive.
func TestMutateNamesSurvivors(t *testing.T) {
	few := func(t testing.TB, m diskMachine) {
		fsmtest.Run(t, m, []diskCase{
			{From: "off", Event: "switch", Actor: user, To: "on"},
			{From: "off", Event: "switch", Actor: worker, Err: fsm.ErrWrongActor},
			{From: "on", Event: "switch", Actor: user, To: "off"},
		})
	}
	const survivor = "row 1 (on -switch-> off) is for user only"
	fails(t, func(t testing.TB) { fsmtest.Mutate(t, lampsOfTwo, few, nil) },
		"survived: "+survivor+": not explained", "the test does not detect 1 mutants")
	passes(t, func(t testing.TB) {
		fsmtest.Mutate(t, lampsOfTwo, few, &fsmtest.MutateConfig{Survivors: map[string]string{survivor: "trusted"}})
	}, "survived: "+survivor+": trusted")
	moves := 0
	observed := lampsOfTwo.Observe(fsm.Observer{Moved: func(context.Context, fsm.Moved) { moves++ }})
	passes(t, func(t testing.TB) {
		fsmtest.Mutate(t, observed, func(t testing.TB, m diskMachine) {
			moves = 0
			few(t, m)
			if moves == 0 {
				t.Error("a mutant has the observer of the machine")
			}
		}, &fsmtest.MutateConfig{Survivors: map[string]string{survivor: "trusted"}})
	}, "survived: "+survivor+": trusted")
	const detected = "row 0 (off -switch-> on) is for every actor"
	for fault, survivors := range map[string]map[string]string{
		`exception "row 99" is needless: the test detects or covers it, or the table does not have it`:           {"row 99": "why"},
		`exception "` + detected + `" is needless: the test detects or covers it, or the table does not have it`: {detected: "why"},
		"has no reason": {survivor: ""},
	} {
		t.Run(fault, func(t *testing.T) {
			fails(t, func(t testing.TB) {
				fsmtest.Mutate(t, lampsOfTwo, few, &fsmtest.MutateConfig{Survivors: survivors})
			}, fault)
		})
	}
}

// A test of a mutant may fail in any way without failing the outer test.
func TestMutateRecordsEveryFailure(t *testing.T) {
	release := make(chan struct{})
	for name, notice := range map[string]func(testing.TB){
		"error": func(t testing.TB) { t.Error("noticed") },
		"fatal": func(t testing.TB) { t.Fatal("noticed") },
		"panic": func(testing.TB) { panic("noticed") },
		"hangs": func(t testing.TB) { <-t.Context().Done() },
		"deaf":  func(testing.TB) { <-release }, // Mutate abandons it
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, func(t testing.TB) {
				fsmtest.Mutate(t, lampsOfTwo, func(t testing.TB, m diskMachine) {
					if err := m.Can(t.Context(), m.At("off"), "switch", worker, nil); err == nil {
						notice(t)
					}
				}, &fsmtest.MutateConfig{Timeout: 50 * time.Millisecond})
			}, "lamp: 2 of 5 mutants detected")
		})
	}
	close(release)
	fails(t, func(t testing.TB) {
		fsmtest.Mutate(t, lampsOfTwo, func(t testing.TB, _ diskMachine) { t.Skip("not today") }, nil)
	}, "lamp: 0 of 5 mutants detected")
	fails(t, func(t testing.TB) {
		fsmtest.Mutate(t, lampsOfTwo, func(t testing.TB, _ diskMachine) { t.Error("always") }, nil)
	}, "fails without a mutant:\nalways")
	still := fsm.Must[disk](fsm.Spec[string, string]{Name: "still", Initial: "on", Actors: []fsm.Actor{user}, States: []fsm.State[string]{{Name: "on", Kind: fsm.Final}}})
	fails(t, func(t testing.TB) { fsmtest.Mutate(t, still, func(testing.TB, diskMachine) {}, nil) }, "there is no mutant to run")
}

// A mutant is not written into documentation.
func TestMutateWritesNoDocumentation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.go")
	require.NoError(t, os.WriteFile(file, []byte("// Package lamp has a lamp.\npackage lamp\n"), 0o600))
	t.Setenv(diagramtest.Update, "1")
	passes(t, func(t testing.TB) {
		fsmtest.Mutate(t, lampsOfTwo, func(t testing.TB, m diskMachine) { diagramtest.Doc(t, file, m.Table()) }, nil)
	})
	t.Setenv(diagramtest.Update, "")
	diagramtest.Doc(t, file, lampsOfTwo.Table())
}

// lampsOfTwo has one row with an actor, and therefore one mutant without.
var lampsOfTwo = fsm.Must[disk](fsm.Spec[string, string]{
	Name: "lamp", Initial: "off", Actors: []fsm.Actor{user, worker},
	States: []fsm.State[string]{{Name: "off"}, {Name: "on"}},
	Rows:   fsm.Rows(fsm.Move("off", "switch", "on").By(user), fsm.Move("on", "switch", "off")),
})

// Guards of mutants are those of the machine, row by row.
func TestMutantsKeepTheirGuards(t *testing.T) {
	r := record(t, func(t testing.TB) {
		fsmtest.Mutate(t, disks, func(t testing.TB, m diskMachine) {
			fsmtest.Run(t, m, []diskCase{
				{From: "created", Event: "resize", Actor: user, Payload: &disk{}, To: "created"},
				{From: "created", Event: "resize", Actor: user, Payload: &disk{used: true}, Err: fsm.ErrGuard},
				{From: "created", Event: "delete", Actor: user, Payload: &disk{used: true}, Err: fsm.ErrGuard},
				{From: "trash", Event: "delete", Actor: user, Payload: &disk{}, To: "deleting"},
				{From: "trash", Event: "delete", Actor: user, Payload: &disk{old: true}, To: "gone"},
			})
		}, nil)
	})
	require.NotContains(t, r.Text(), "has no guard")
}

// lines returns the rows by name.
func lines(t *fsm.Table) (list []string) {
	states := func(of []int) (names []string) {
		for _, s := range of {
			names = append(names, t.States[s].Name)
		}
		return names
	}
	for _, r := range t.Rows {
		to := ""
		if r.Then == fsm.ThenMove {
			to = t.States[r.To].Name
		}
		var actors []fsm.Actor
		for _, a := range r.Actors {
			actors = append(actors, t.Actors[a])
		}
		list = append(list, fmt.Sprint(states(r.From), states(r.Origin), t.Events[r.Event], actors, r.Guard, to, r.Then, r.Forced, r.Supersede, r.Timeout))
	}
	return list
}

// The machines of a test have the tables of the mutants.
func TestMachinesAreThoseOfTheMutants(t *testing.T) {
	all, err := tour.Mutants(disks.Table())
	require.NoError(t, err)
	var wanted [][]string
	for m := range all {
		wanted = append(wanted, lines(m.Table))
	}
	tried := 0
	r := record(t, func(t testing.TB) {
		fsmtest.Mutate(t, disks, func(t testing.TB, m diskMachine) {
			if tried++; tried > 1 {
				require.Contains(t, wanted, lines(m.Table()))
			}
		}, nil)
	})
	require.Contains(t, r.Text(), fmt.Sprintf("0 of %d mutants detected", tried-1))
	require.LessOrEqual(t, tried-1, len(wanted))
}

// A mutant that comes back after every timeout, in the same operation, does not count: fsm.New
// refuses its table.
func TestMutantsWithEndlessTimeouts(t *testing.T) {
	m := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "steps", Initial: "idle", Actors: []fsm.Actor{user},
		States: []fsm.State[string]{{Name: "idle"}, {Name: "first", Kind: fsm.Transitional}, {Name: "second", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move("idle", "start", "first").By(user),
			fsm.Move("first", "late", "second").After(time.Minute),
			fsm.Move("second", "late", "idle").After(time.Minute),
		),
	})
	endless := 0
	record(t, func(t testing.TB) {
		fsmtest.Mutate(t, m, func(t testing.TB, mutant *fsm.Machine[string, string, struct{}]) {
			for _, row := range mutant.Table().Rows { // Machine.With accepts such a table
				if row.Timeout > 0 && row.Then == fsm.ThenMove && row.From[0] == row.To {
					endless++
				}
			}
			fsmtest.Tour(t, m.Table(), fsmtest.Drive(mutant, nil), nil)
		}, nil)
	})
	require.Zero(t, endless)
}
