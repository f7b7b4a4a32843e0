package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// refusals lists every refusal of the disks with its sentinel, text and detail.
var refusals = []struct {
	name string
	call func(context.Context, *fsm.Machine[string, string, disk]) error
	is   error
	text string
	want fsm.TransitionError // without Err and Reason
}{
	{
		"no row", fires("CREATED", "CREATED", "create", user), fsm.ErrNotAllowed,
		"fsm: not allowed: disk: create in CREATED by user",
		fsm.TransitionError{From: "CREATED", Event: "create", Actor: user, Row: -1},
	},
	{
		"no row for an undeclared actor", fires("CREATED", "CREATED", "create", undeclared), fsm.ErrNotAllowed,
		"fsm: not allowed: disk: create in CREATED by undeclared",
		fsm.TransitionError{From: "CREATED", Event: "create", Actor: undeclared, Row: -1},
	},
	{
		"no row for the origin", fires("DELETING", "BROKEN", "done", worker), fsm.ErrNotAllowed,
		"fsm: not allowed: disk: done in DELETING (origin BROKEN) by worker: no row for an object of this origin",
		fsm.TransitionError{From: "DELETING", Origin: "BROKEN", Event: "done", Actor: worker, Row: -1},
	},
	{
		"no row to the target", nextTo("CREATED", "DELETED", user), fsm.ErrNotAllowed,
		"fsm: not allowed: disk: to DELETED in CREATED by user",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", To: "DELETED", Actor: user, Row: -1},
	},
	{
		"wrong actor", fires("CREATED", "CREATED", "delete", worker), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: delete in CREATED by worker",
		fsm.TransitionError{From: "CREATED", Event: "delete", Actor: worker, Row: -1},
	},
	{
		"undeclared actor", fires("DELETING", "CREATED", "delete", undeclared), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: delete in DELETING by undeclared",
		fsm.TransitionError{From: "DELETING", Event: "delete", Actor: undeclared, Row: -1},
	},
	{
		"no actor", fires("CREATED", "CREATED", "delete", ""), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: delete in CREATED",
		fsm.TransitionError{From: "CREATED", Event: "delete", Row: -1},
	},
	{
		"wrong actor for the target", nextTo("CREATED", "DELETING", worker), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: to DELETING in CREATED by worker",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", To: "DELETING", Actor: worker, Row: -1},
	},
	{
		"guard", fires("CREATED", "CREATED", "resize", user), fsm.ErrGuard,
		"fsm: refused by a guard: disk: resize in CREATED by user: room: no space",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", Event: "resize", Actor: user, Row: 3, Guard: "room"},
	},
	{
		"guard before the target", nextTo("BROKEN", "CREATED", user), fsm.ErrGuard,
		"fsm: refused by a guard: disk: to CREATED in BROKEN by user: room: no space",
		fsm.TransitionError{From: "BROKEN", Origin: "BROKEN", To: "CREATED", Actor: user, Row: 11, Guard: "room"},
	},
	{
		"forced only", fires("DELETED", "DELETED", "restore", user), fsm.ErrForcedOnly,
		"fsm: only by force: disk: restore in DELETED by user",
		fsm.TransitionError{From: "DELETED", Event: "restore", Actor: user, Row: 9},
	},
	{
		"target by force only", nextTo("DELETED", "CREATED", user), fsm.ErrForcedOnly,
		"fsm: only by force: disk: to CREATED in DELETED by user",
		fsm.TransitionError{From: "DELETED", Origin: "DELETED", To: "CREATED", Actor: user, Row: 9},
	},
	{
		"conflict", func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
			in, err := m.InstanceAt(m.At("CREATED"))
			if err != nil {
				return err
			}
			// The guard moves the object between the load and the compare-and-set.
			_, err = in.Fire(ctx, "resize", user, &disk{free: 1, during: func() error {
				_, err := in.Fire(ctx, "delete", user, nil)
				return err
			}})
			return err
		}, fsm.ErrConflict,
		"fsm: conflict: disk: resize in CREATED by user",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", Event: "resize", Actor: user, Row: -1},
	},
	{
		"unknown event", fires("CREATED", "CREATED", "explode", user), fsm.ErrUnknownEvent,
		"fsm: unknown event: disk: explode in CREATED by user",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", Event: "explode", Actor: user, Row: -1},
	},
	{
		"unknown state", nexts("NOWHERE", "NOWHERE", "delete", user), fsm.ErrUnknownState,
		"fsm: unknown state: disk: delete in NOWHERE by user",
		fsm.TransitionError{From: "NOWHERE", Origin: "NOWHERE", Event: "delete", Actor: user, Row: -1},
	},
	{
		"unknown origin", nexts("DELETING", "NOWHERE", "done", worker), fsm.ErrUnknownState,
		`fsm: unknown state: disk: done in DELETING (origin NOWHERE) by worker: origin "NOWHERE" is not declared`,
		fsm.TransitionError{From: "DELETING", Origin: "NOWHERE", Event: "done", Actor: worker, Row: -1},
	},
	{
		"unknown state and event", nexts("NOWHERE", "NOWHERE", "explode", user), fsm.ErrUnknownState,
		"fsm: unknown state: disk: explode in NOWHERE by user",
		fsm.TransitionError{From: "NOWHERE", Origin: "NOWHERE", Event: "explode", Actor: user, Row: -1},
	},
	{
		"unknown target", nextTo("CREATED", "NOWHERE", user), fsm.ErrUnknownState,
		"fsm: unknown state: disk: to NOWHERE in CREATED by user",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", To: "NOWHERE", Actor: user, Row: -1},
	},
	{
		"unknown state of an instance", func(_ context.Context, m *fsm.Machine[string, string, disk]) error {
			_, err := m.InstanceAt(m.At("NOWHERE"))
			return err
		}, fsm.ErrUnknownState,
		"fsm: unknown state: disk: in NOWHERE",
		fsm.TransitionError{From: "NOWHERE", Origin: "NOWHERE", Row: -1},
	},
	{
		"forgotten origin", nexts("CREATED", "", "delete", user), fsm.ErrUnknownState,
		`fsm: unknown state: disk: delete in CREATED by user: origin "" is not declared`,
		fsm.TransitionError{From: "CREATED", Event: "delete", Actor: user, Row: -1},
	},
	{
		"forgotten origin before the target", func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
			_, err := m.NextTo(ctx, status("CREATED", ""), "DELETING", user, nil)
			return err
		}, fsm.ErrUnknownState,
		`fsm: unknown state: disk: to DELETING in CREATED by user: origin "" is not declared`,
		fsm.TransitionError{From: "CREATED", To: "DELETING", Actor: user, Row: -1},
	},
	{
		"forgotten origin of an instance", func(_ context.Context, m *fsm.Machine[string, string, disk]) error {
			_, err := m.InstanceAt(status("CREATED", ""))
			return err
		}, fsm.ErrUnknownState,
		`fsm: unknown state: disk: in CREATED: origin "" is not declared`,
		fsm.TransitionError{From: "CREATED", Row: -1},
	},
}

// fires fires an instance that has this status, without a payload.
func fires(state, origin, event string, actor fsm.Actor) func(context.Context, *fsm.Machine[string, string, disk]) error {
	return func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
		in, err := m.InstanceAt(status(state, origin))
		if err == nil {
			_, err = in.Fire(ctx, event, actor, nil)
		}
		return err
	}
}

func nexts(state, origin, event string, actor fsm.Actor) func(context.Context, *fsm.Machine[string, string, disk]) error {
	return func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
		_, err := m.Next(ctx, status(state, origin), event, actor, nil)
		return err
	}
}

func nextTo(state, to string, actor fsm.Actor) func(context.Context, *fsm.Machine[string, string, disk]) error {
	return func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
		_, err := m.NextTo(ctx, m.At(state), to, actor, nil)
		return err
	}
}

func TestRefusals(t *testing.T) {
	m := newDisks(t)
	seen := map[error]bool{fsm.ErrInvalid: true} // of New: see TestNewRefuses
	for _, r := range refusals {
		seen[r.is] = true
		t.Run(r.name, func(t *testing.T) {
			err := r.call(t.Context(), m)
			require.Equal(t, r.is, sentinel(t, err))
			require.EqualError(t, err, r.text)
			te := detail(t, fmt.Errorf("order 7: %w", err))
			require.Equal(t, r.is, te.Err)
			got := *te
			got.Err, got.Reason = nil, nil
			r.want.Machine = "disk"
			require.Equal(t, r.want, got)
			_, invalid := errors.AsType[*fsm.InvalidError](err)
			require.False(t, invalid)

			// A caller that changes its error does not change the next one.
			*te = fsm.TransitionError{Machine: "changed", From: "changed", Err: fsm.ErrInvalid}
			require.EqualError(t, r.call(t.Context(), m), r.text)
		})
	}
	for _, s := range sentinels {
		require.True(t, seen[s], "no refusal has the sentinel %v", s)
	}
}

func TestRefusalMovesNothing(t *testing.T) {
	m := newDisks(t)
	for _, r := range refusals {
		if r.want.Event == "" || r.is == fsm.ErrUnknownState || r.is == fsm.ErrConflict {
			continue // no instance fires
		}
		t.Run(r.name, func(t *testing.T) {
			at := status(r.want.From, r.want.From)
			if r.want.Origin != "" {
				at.Origin = r.want.Origin
			}
			in := instanceAt(t, m, at)
			_, err := in.Fire(t.Context(), r.want.Event, r.want.Actor, nil)
			require.Error(t, err)
			require.Equal(t, at, in.Status())
		})
	}
}

// shortage is an error type of a guard.
type shortage struct{ missing int }

func (r *shortage) Error() string { return fmt.Sprintf("%d missing", r.missing) }

func TestRefusalUnwrapsToTheReasonOfTheGuard(t *testing.T) {
	want := &shortage{3}
	s := diskSpec()
	s.Rows[3] = s.Rows[3].If(fsm.When("own", func(context.Context, *disk, *disk) error { return want }))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	err = m.Can(t.Context(), m.At("CREATED"), "resize", user, nil)
	require.ErrorIs(t, err, fsm.ErrGuard)
	got, ok := errors.AsType[*shortage](err)
	require.True(t, ok)
	require.Same(t, want, got)
	require.Equal(t, error(want), detail(t, err).Reason)
}

func TestRefusalHasOneLine(t *testing.T) {
	m := newDisks(t)
	require.EqualError(t, m.Can(t.Context(), m.Start(), "a\nb", "c\nd", nil),
		"fsm: unknown event: disk: a<U+000A>b in "+m.Start().State+" by c<U+000A>d")
	s := diskSpec()
	s.Rows[3] = s.Rows[3].If(fsm.When("own", func(context.Context, *disk, *disk) error {
		return errors.Join(&shortage{3}, errors.New("not now"))
	}))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	require.EqualError(t, m.Can(t.Context(), m.At("CREATED"), "resize", user, nil),
		"fsm: refused by a guard: disk: resize in CREATED by user: own: 3 missing; not now")
}

// Success is the nil error, and not a nil pointer in an error.
func TestSuccessIsANilError(t *testing.T) {
	m, err := fsm.New[disk](diskSpec())
	require.True(t, err == nil)
	ctx, at, d := t.Context(), m.At("CREATED"), &disk{free: 1}
	in, err := m.InstanceAt(at)
	require.True(t, err == nil)
	_, err = m.Next(ctx, at, "resize", user, d)
	require.True(t, err == nil, "Next")
	_, err = m.NextTo(ctx, at, "CREATED", user, d)
	require.True(t, err == nil, "NextTo")
	require.True(t, m.Can(ctx, at, "resize", user, d) == nil, "Can")
	require.True(t, m.Check(ctx, 3, d, d) == nil, "Check")
	_, err = m.ParseStatus("CREATED", "")
	require.True(t, err == nil, "ParseStatus")
	_, err = in.Fire(ctx, "delete", user, d)
	require.True(t, err == nil, "Fire")
}
