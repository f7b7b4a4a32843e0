package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// Actors of the tables in these tests. No table declares the last one.
const (
	user       fsm.Actor = "user"
	worker     fsm.Actor = "worker"
	guest      fsm.Actor = "guest"
	undeclared fsm.Actor = "undeclared"
)

// disk is the payload of the guard of the disks.
type disk struct {
	free   int
	during func() error // the guard calls it, unless it is nil
}

var errFull = errors.New("no space")

var room = fsm.When("room", func(_ context.Context, _, d *disk) error {
	if d == nil || d.free <= 0 {
		return errFull
	}
	if d.during != nil {
		return d.during()
	}
	return nil
})

// diskSpec is a table with a row of every kind. The end of DELETING depends on the
// origin.
func diskSpec() fsm.Spec[string, string] {
	return fsm.Spec[string, string]{
		Name: "disk", Initial: "ABSENT", Actors: []fsm.Actor{user, worker, guest},
		States: []fsm.State[string]{
			{Name: "ABSENT", Kind: fsm.Absent},
			{Name: "CREATING", Kind: fsm.Transitional},
			{Name: "CREATED"},
			{Name: "TOBEDELETED"},
			{Name: "DELETING", Kind: fsm.Transitional, Manual: "operator"},
			{Name: "DELETED", Kind: fsm.Final},
			{Name: "BROKEN", Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			/* 0 */ fsm.Move("ABSENT", "create", "CREATING").By(user),
			/* 1 */ fsm.Move("CREATING", "done", "CREATED").By(worker),
			/* 2 */ fsm.Return("CREATING", "failed").By(worker).After(time.Minute),
			/* 3 */ fsm.Move("CREATED", "resize", "CREATED").By(user).If(room),
			/* 4 */ fsm.Move("CREATED", "delete", "DELETING").AlsoFrom("TOBEDELETED").By(user),
			/* 5 */ fsm.Move("DELETING", "done", "TOBEDELETED").Of("CREATED").By(worker),
			/* 6 */ fsm.Move("DELETING", "done", "DELETED").Of("TOBEDELETED").By(worker),
			/* 7 */ fsm.Return("DELETING", "failed").By(worker),
			/* 8 */ fsm.Ignore("DELETING", "delete").By(user),
			/* 9 */ fsm.Move("DELETED", "restore", "CREATED").By(user).OnlyForced(),
			/* 10 */ fsm.FromAny("lost", "BROKEN"),
			/* 11 */ fsm.Move("BROKEN", "repair", "CREATED").By(user).If(room),
		),
	}
}

func newDisks(t testing.TB) *fsm.Machine[string, string, disk] {
	t.Helper()
	m, err := fsm.New[disk](diskSpec())
	require.NoError(t, err)
	return m
}

// none is the payload of machines without guards.
type none struct{}

func mustNew[S, E comparable](t testing.TB, spec fsm.Spec[S, E]) *fsm.Machine[S, E, none] {
	t.Helper()
	m, err := fsm.New[none](spec)
	require.NoError(t, err)
	return m
}

// ring is a sound table over any states. An event of its own moves each state to the
// next one, and the last to the first.
func ring[S, E comparable](states []S, events []E) fsm.Spec[S, E] {
	spec := fsm.Spec[S, E]{Name: "ring", Initial: states[0], Actors: []fsm.Actor{user}}
	for i, s := range states {
		spec.States = append(spec.States, fsm.State[S]{Name: s})
		spec.Rows = append(spec.Rows, fsm.Move(s, events[i], states[(i+1)%len(states)]))
	}
	if len(states) == 1 {
		spec.States[0].Kind = fsm.Final
		spec.Rows[0] = fsm.Ignore(states[0], events[0])
	}
	return spec
}

func instanceAt[S, E comparable, T any](
	t require.TestingT, m *fsm.Machine[S, E, T], at fsm.Status[S],
) (in fsm.Instance[S, E, T]) {
	in, err := m.InstanceAt(at)
	require.NoError(t, err)
	return
}

func status(state, origin string) fsm.Status[string] {
	return fsm.Status[string]{State: state, Origin: origin}
}

// detail returns the TransitionError in the tree of a refusal.
func detail(t require.TestingT, err error) *fsm.TransitionError {
	te, ok := errors.AsType[*fsm.TransitionError](err)
	require.True(t, ok, "no TransitionError in %v", err)
	return te
}

var sentinels = []error{
	fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrGuard, fsm.ErrForcedOnly,
	fsm.ErrConflict, fsm.ErrUnknownState, fsm.ErrUnknownEvent, fsm.ErrInvalid,
}

// sentinel returns the one sentinel that err matches, nil for nil.
func sentinel(t require.TestingT, err error) error {
	if err == nil {
		return nil
	}
	var found []error
	for _, s := range sentinels {
		if errors.Is(err, s) {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "%v matches %v", err, found)
	return found[0]
}

// requireRow requires that a problem has the index of the row that its text begins with, or -1.
func requireRow(t require.TestingT, p fsm.Problem) {
	row := -1
	_, _ = fmt.Sscanf(p.Text, "row %d (", &row)
	require.Equal(t, row, p.Row, p.Text)
}
