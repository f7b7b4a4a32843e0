package fsmtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

func TestRequest(t *testing.T) {
	r := fsmtest.Request{Event: "delete", Actor: user, Force: true, Agree: []string{"old"}, Refuse: []string{"unused"}}
	require.Equal(t, "delete by user by force, not unused, old", r.String())
	require.NoError(t, r.Guard("old"))
	require.EqualError(t, r.Guard("unused"), "fsmtest: the request wants this guard to refuse")
	require.EqualError(t, r.Guard("other"), `fsmtest: call guard "other": the table does not call it here`)
}

func TestDrive(t *testing.T) {
	d := fsmtest.Drive(disks, func(fsmtest.Request) (*disk, bool) { return nil, false })
	require.Equal(t, "absent", d.Reset(t, "absent"))
	state, err := d.Apply(t, fsmtest.Request{Event: "explode", Actor: user})
	require.ErrorIs(t, err, fsm.ErrUnknownEvent)
	require.Equal(t, "absent", state)
	_, err = d.Apply(t, fsmtest.Request{Event: "create", Actor: user})
	require.ErrorIs(t, err, fsmtest.ErrUnsupported)

	m := fsmtest.ScriptedGuards(disks)
	require.PanicsWithValue(t, "fsmtest: a guard of ScriptedGuards needs a Request in its context", func() {
		_, _ = m.Next(t.Context(), m.At("created"), "resize", user, nil)
	})
}

// A table without an initial state has no tour.
func TestTableWithoutTour(t *testing.T) {
	fails(t, func(t testing.TB) { fsmtest.Race(t, &fsm.Table{Name: "empty", Initial: -1}, nil) })
}

// answering is a system that gives other answers. It is safe for concurrent use, unlike bent.
type answering struct {
	fsmtest.Driver
	answer func(state string, err error) (string, error)
}

func (a answering) Apply(t testing.TB, r fsmtest.Request) (string, error) {
	return a.answer(a.Driver.Apply(t, r))
}

func TestRaceReportsFaultsOfWinners(t *testing.T) {
	for message, answer := range map[string]func(string, error) (string, error){
		"the driver cannot make this request": func(state string, _ error) (string, error) { return state, fsmtest.ErrUnsupported },
		"a winner is in trash":                func(_ string, err error) (string, error) { return "trash", err },
	} {
		t.Run(message, func(t *testing.T) {
			fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), answering{fsmtest.Drive(disks, nil), answer}) }, message)
		})
	}
}
