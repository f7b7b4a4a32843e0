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

// Actors of the tables in these tests.
const (
	user   fsm.Actor = "user"
	worker fsm.Actor = "worker"
	guest  fsm.Actor = "guest"
)

// disk is what the guard of the disks looks at.
type disk struct{ free int }

var errFull = errors.New("no space")

var room = fsm.When("room", func(_ context.Context, _, d *disk) error {
	if d == nil || d.free <= 0 {
		return errFull
	}
	return nil
})

// diskSpec is a table with a row of every sort: where DELETING ends depends on
// where it began.
func diskSpec() fsm.Spec[string, string] {
	return fsm.Spec[string, string]{
		Name: "disk", Initial: "ABSENT", Actors: []fsm.Actor{user, worker, guest},
		States: []fsm.State[string]{
			{Name: "ABSENT", Kind: fsm.Absent},
			{Name: "CREATING", Kind: fsm.Transitional},
			{Name: "CREATED"},
			{Name: "TOBEDELETED"},
			{Name: "DELETING", Kind: fsm.Transitional, Manual: "the storage team"},
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

// ring is a sound table over any states: each leads to the next by an event of
// its own, and the last to the first.
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

// sure unwraps what cannot fail in a test.
func sure[V any](v V, err error) V {
	if err != nil {
		panic(fmt.Sprintf("unexpected: %v", err))
	}
	return v
}

// detail is the TransitionError in a refusal's tree.
func detail(t require.TestingT, err error) *fsm.TransitionError {
	te, ok := errors.AsType[*fsm.TransitionError](err)
	require.True(t, ok, "no TransitionError in %v", err)
	return te
}

var sentinels = []error{
	fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrGuard, fsm.ErrForcedOnly,
	fsm.ErrConflict, fsm.ErrUnknownState, fsm.ErrUnknownEvent, fsm.ErrInvalid,
}

// sentinel is the one sentinel that err matches, nil for nil.
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
