package fsmtest_test

import (
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
	score := fsmtest.Mutate(t, disks, func(t testing.TB, m diskMachine) {
		fsmtest.Tour(t, disks.Table(), fsmtest.Drive(m, payload), &fsmtest.TourConfig{EveryActor: true})
	}, &fsmtest.MutateConfig{EveryTarget: true, Survivors: map[string]string{
		"row 3 (created -resize-> created) is ignored":          "a driver reports the state of the object, not whether it moved",
		"row 10 (deleting -delete-> ignored) leads to deleting": "as above",
	}})
	require.Equal(t, 2, score.Survived)
	require.Greater(t, score.Killed, 100)
	require.Positive(t, score.Equivalent)
	require.Positive(t, score.Refused)
}

// Mutants of rows that a test does not cover survive.
func TestMutateNamesSurvivors(t *testing.T) {
	few := func(t testing.TB, m diskMachine) {
		fsmtest.Run(t, m, []diskCase{
			{From: "absent", Event: "create", Actor: user, To: "creating"},
			{From: "absent", Event: "create", Actor: worker, Err: fsm.ErrWrongActor},
		})
	}
	kinds := []tour.MutantKind{tour.MutantActor, tour.MutantAnybody}
	const survivor = "row 1 (creating -done-> created) is for anybody"
	fails(t, func(t testing.TB) { fsmtest.Mutate(t, disks, few, &fsmtest.MutateConfig{Kinds: kinds}) },
		"survived: "+survivor+": not explained", "want 100%")
	var score fsmtest.Score
	passes(t, func(t testing.TB) {
		score = fsmtest.Mutate(t, disks, few, &fsmtest.MutateConfig{Kinds: kinds, Least: 5, Survivors: map[string]string{survivor: "trusted"}})
	}, "survived: "+survivor+": trusted")
	require.Equal(t, 2, score.Killed)
	require.Contains(t, score.Survivors, survivor)
	require.Len(t, score.Survivors, score.Survived)
	for fault, survivors := range map[string]map[string]string{
		`exception "row 99": there is no such mutant`:                                          {"row 99": "why"},
		`exception "row 0 (absent -create-> creating) is for anybody": the mutant is detected`: {"row 0 (absent -create-> creating) is for anybody": "why"},
		"has no reason": {survivor: ""},
	} {
		fails(t, func(t testing.TB) {
			fsmtest.Mutate(t, disks, few, &fsmtest.MutateConfig{Kinds: kinds, Least: -1, Survivors: survivors})
		}, fault)
	}
	passes(t, func(t testing.TB) { fsmtest.Mutate(t, disks, few, &fsmtest.MutateConfig{Least: -1}) })
}

// A test of a mutant may fail in any way without failing the outer test.
func TestMutateRecordsEveryFailure(t *testing.T) {
	one := &fsmtest.MutateConfig{Kinds: []tour.MutantKind{tour.MutantAnybody}, Timeout: 50 * time.Millisecond}
	for name, notice := range map[string]func(testing.TB){
		"error": func(t testing.TB) { t.Error("noticed") },
		"fatal": func(t testing.TB) { t.Fatal("noticed") },
		"panic": func(testing.TB) { panic("noticed") },
		"hangs": func(t testing.TB) { <-t.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			score := fsmtest.Mutate(t, lampsOfTwo, func(t testing.TB, m diskMachine) {
				if err := m.Can(t.Context(), m.At("off"), "switch", worker, nil); err == nil {
					notice(t)
				}
			}, one)
			require.Equal(t, 1, score.Killed)
		})
	}
	skips := func(t testing.TB, _ diskMachine) { t.Skip("not today") }
	require.Equal(t, 1, fsmtest.Mutate(t, lampsOfTwo, skips, &fsmtest.MutateConfig{Kinds: one.Kinds, Least: -1}).Survived)
	fails(t, func(t testing.TB) {
		fsmtest.Mutate(t, lampsOfTwo, func(t testing.TB, _ diskMachine) { t.Error("always") }, one)
	}, "fails without a mutant:\nalways")
	fails(t, func(t testing.TB) {
		fsmtest.Mutate(t, lampsOfTwo, func(testing.TB, diskMachine) {}, &fsmtest.MutateConfig{Kinds: []tour.MutantKind{tour.MutantUnguarded}})
	}, "there is no mutant to run")
	release := make(chan struct{})
	deaf := func(t testing.TB, m diskMachine) {
		if m.Can(t.Context(), m.At("off"), "switch", worker, nil) == nil {
			<-release
		}
	}
	require.Equal(t, 1, fsmtest.Mutate(t, lampsOfTwo, deaf, one).Killed, "a test that ignores its context is left behind")
	close(release)
}

// A mutant is not written into documentation.
func TestMutateWritesNoDocumentation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.go")
	require.NoError(t, os.WriteFile(file, []byte("// Package lamp has a lamp.\npackage lamp\n"), 0o600))
	t.Setenv(diagramtest.Update, "1")
	score := fsmtest.Mutate(t, lampsOfTwo, func(t testing.TB, m diskMachine) {
		diagramtest.Doc(t, file, m.Table())
	}, nil)
	require.Positive(t, score.Killed)
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
	score := fsmtest.Mutate(t, disks, func(t testing.TB, m diskMachine) {
		fsmtest.Run(t, m, []diskCase{
			{From: "created", Event: "resize", Actor: user, Payload: &disk{}, To: "created"},
			{From: "created", Event: "resize", Actor: user, Payload: &disk{used: true}, Err: fsm.ErrGuard},
			{From: "created", Event: "delete", Actor: user, Payload: &disk{used: true}, Err: fsm.ErrGuard},
			{From: "trash", Event: "delete", Actor: user, Payload: &disk{}, To: "deleting"},
			{From: "trash", Event: "delete", Actor: user, Payload: &disk{old: true}, To: "gone"},
		})
	}, &fsmtest.MutateConfig{Kinds: []tour.MutantKind{tour.MutantUnguarded}})
	require.Equal(t, 2, score.Killed)
	require.Equal(t, 1, score.Refused, "without its guard, row 5 shadows row 6")
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
	all, err := tour.Mutants(disks.Table(), &tour.MutantConfig{EveryTarget: true})
	require.NoError(t, err)
	var wanted [][]string
	for m := range all {
		wanted = append(wanted, lines(m.Table))
	}
	tried := 0
	score := fsmtest.Mutate(t, disks, func(t testing.TB, m diskMachine) {
		if tried++; tried > 1 {
			require.Contains(t, wanted, lines(m.Table()))
		}
	}, &fsmtest.MutateConfig{EveryTarget: true, Least: -1})
	require.Zero(t, score.Killed)
	require.Equal(t, tried-1, score.Survived)
	require.Len(t, wanted, score.Survived+score.Equivalent+score.Refused)
}
