package fsmtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

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

// forgetful is a system that accepts a request which it has to refuse, and then breaks down.
type forgetful struct {
	fsmtest.Driver
	accepted bool
}

func (f *forgetful) Apply(t testing.TB, r fsmtest.Request) (string, error) {
	state, err := f.Driver.Apply(t, r)
	if err != nil && state == "created" && !f.accepted {
		f.accepted = true
		return state, nil
	}
	if f.accepted {
		return "lost", nil
	}
	return state, err
}

// A tour ends a sequence if it cannot lead the object back to where a refused request was made.
func TestTourOfASystemThatBreaksDown(t *testing.T) {
	fails(t, func(t testing.TB) {
		fsmtest.Tour(t, disks.Table(), &forgetful{Driver: fsmtest.Drive(disks, nil)}, nil)
	}, "the system accepts it and leads to", "again: is in lost, refusal <nil>")
}
