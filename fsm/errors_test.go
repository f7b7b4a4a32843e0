package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// refusals has every way to be refused by a machine of disks: the sentinel, the
// text and the detail.
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
		"no row for an undeclared actor", fires("CREATED", "CREATED", "create", "nobody"), fsm.ErrNotAllowed,
		"fsm: not allowed: disk: create in CREATED by nobody",
		fsm.TransitionError{From: "CREATED", Event: "create", Actor: "nobody", Row: -1},
	},
	{
		"no row for the origin", fires("DELETING", "BROKEN", "done", worker), fsm.ErrNotAllowed,
		"fsm: not allowed: disk: done in DELETING (origin BROKEN) by worker: no row for an object of this origin",
		fsm.TransitionError{From: "DELETING", Origin: "BROKEN", Event: "done", Actor: worker, Row: -1},
	},
	{
		"no row to the target", asksTo("CREATED", "DELETED", user), fsm.ErrNotAllowed,
		"fsm: not allowed: disk: to DELETED in CREATED by user",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", To: "DELETED", Actor: user, Row: -1},
	},
	{
		"wrong actor", fires("CREATED", "CREATED", "delete", worker), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: delete in CREATED by worker",
		fsm.TransitionError{From: "CREATED", Event: "delete", Actor: worker, Row: -1},
	},
	{
		"undeclared actor", fires("DELETING", "CREATED", "delete", "nobody"), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: delete in DELETING by nobody",
		fsm.TransitionError{From: "DELETING", Event: "delete", Actor: "nobody", Row: -1},
	},
	{
		"no actor", fires("CREATED", "CREATED", "delete", ""), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: delete in CREATED",
		fsm.TransitionError{From: "CREATED", Event: "delete", Row: -1},
	},
	{
		"wrong actor for the target", asksTo("CREATED", "DELETING", worker), fsm.ErrWrongActor,
		"fsm: wrong actor: disk: to DELETING in CREATED by worker",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", To: "DELETING", Actor: worker, Row: -1},
	},
	{
		"guard", fires("CREATED", "CREATED", "resize", user), fsm.ErrGuard,
		"fsm: refused by a guard: disk: resize in CREATED by user: room: no space",
		fsm.TransitionError{From: "CREATED", Origin: "CREATED", Event: "resize", Actor: user, Row: 3, Guard: "room"},
	},
	{
		"guard before the target", asksTo("BROKEN", "CREATED", user), fsm.ErrGuard,
		"fsm: refused by a guard: disk: to CREATED in BROKEN by user: room: no space",
		fsm.TransitionError{From: "BROKEN", Origin: "BROKEN", To: "CREATED", Actor: user, Row: 11, Guard: "room"},
	},
	{
		"forced only", fires("DELETED", "DELETED", "restore", user), fsm.ErrForcedOnly,
		"fsm: only by force: disk: restore in DELETED by user",
		fsm.TransitionError{From: "DELETED", Event: "restore", Actor: user, Row: 9},
	},
	{
		"target by force only", asksTo("DELETED", "CREATED", user), fsm.ErrForcedOnly,
		"fsm: only by force: disk: to CREATED in DELETED by user",
		fsm.TransitionError{From: "DELETED", Origin: "DELETED", To: "CREATED", Actor: user, Row: 9},
	},
	{
		"conflict", func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
			in := sure(m.InstanceAt(status("DELETING", "CREATED")))
			move := sure(in.Next(ctx, "done", worker, nil))
			sure(in.Fire(ctx, "lost", guest, nil))
			return second(in.CompareAndSwap(move))
		}, fsm.ErrConflict,
		"fsm: conflict: disk: done in DELETING (origin CREATED) by worker",
		fsm.TransitionError{From: "DELETING", Origin: "CREATED", Event: "done", Actor: worker, Row: -1},
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
		"fsm: unknown state: disk: done in DELETING (origin NOWHERE) by worker",
		fsm.TransitionError{From: "DELETING", Origin: "NOWHERE", Event: "done", Actor: worker, Row: -1},
	},
	{
		"unknown state and event", nexts("NOWHERE", "NOWHERE", "explode", user), fsm.ErrUnknownState,
		"fsm: unknown state: disk: explode in NOWHERE by user",
		fsm.TransitionError{From: "NOWHERE", Origin: "NOWHERE", Event: "explode", Actor: user, Row: -1},
	},
	{
		"unknown target", asksTo("CREATED", "NOWHERE", user), fsm.ErrUnknownState,
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
}

// fires is Fire of a disk without room, from a status.
func fires(state, origin, event string, actor fsm.Actor) func(context.Context, *fsm.Machine[string, string, disk]) error {
	return func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
		in := sure(m.InstanceAt(status(state, origin)))
		_, err := in.Fire(ctx, event, actor, nil)
		return err
	}
}

func nexts(state, origin, event string, actor fsm.Actor) func(context.Context, *fsm.Machine[string, string, disk]) error {
	return func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
		_, err := m.Next(ctx, status(state, origin), event, actor, nil)
		return err
	}
}

func asksTo(state, to string, actor fsm.Actor) func(context.Context, *fsm.Machine[string, string, disk]) error {
	return func(ctx context.Context, m *fsm.Machine[string, string, disk]) error {
		_, err := m.NextTo(ctx, m.At(state), to, actor, nil)
		return err
	}
}

func TestEveryRefusalHasItsSentinelTextAndDetail(t *testing.T) {
	m := newDisks(t)
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			err := r.call(t.Context(), m)
			require.Equal(t, r.is, sentinel(t, err))
			require.EqualError(t, err, r.text)
			te := *detail(t, err)
			require.Equal(t, r.text, te.Error())
			require.Equal(t, r.is, te.Err)
			te.Err, te.Reason = nil, nil
			r.want.Machine = "disk"
			require.Equal(t, r.want, te)

			wrapped := fmt.Errorf("order 7: %w", err)
			require.Equal(t, r.is, sentinel(t, wrapped))
			require.Equal(t, r.text, detail(t, wrapped).Error())
		})
	}
}

func TestEverySentinelIsRefusedSomewhere(t *testing.T) {
	seen := map[error]bool{fsm.ErrInvalid: true} // New's, see TestNewRefuses
	for _, r := range refusals {
		seen[r.is] = true
	}
	for _, s := range sentinels {
		require.True(t, seen[s], s)
		require.True(t, strings.HasPrefix(s.Error(), "fsm: "), s)
	}
}

func TestGuardRefusalCarriesItsOwnReason(t *testing.T) {
	m := newDisks(t)
	err := m.Can(t.Context(), m.At("CREATED"), "resize", user, &disk{})
	require.ErrorIs(t, err, fsm.ErrGuard)
	require.ErrorIs(t, err, errFull)
	require.Equal(t, errFull, detail(t, err).Reason)
}

// reason is a guard's own error type, found through the refusal.
type reason struct{ missing int }

func (r *reason) Error() string { return fmt.Sprintf("%d missing", r.missing) }

func TestGuardReasonIsFoundByType(t *testing.T) {
	s := diskSpec()
	s.Rows[3] = s.Rows[3].If(fsm.When("own", func(context.Context, *disk, *disk) error { return &reason{3} }))
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	in := sure(m.InstanceAt(m.At("CREATED")))
	_, err = in.Fire(t.Context(), "resize", user, nil)
	own, ok := errors.AsType[*reason](err)
	require.True(t, ok)
	require.Equal(t, 3, own.missing)
}

// Refusals are shared by all who are refused. Nobody can change what the next
// one reads.
func TestRefusalsAreImmutable(t *testing.T) {
	m := newDisks(t)
	for _, r := range refusals {
		err := r.call(t.Context(), m)
		text := err.Error()
		*detail(t, err) = fsm.TransitionError{Machine: "changed", From: "changed", Err: fsm.ErrInvalid}
		require.EqualError(t, r.call(t.Context(), m), text)
	}
}

func TestRefusalIsNoOtherError(t *testing.T) {
	m := newDisks(t)
	for _, r := range refusals {
		err := r.call(t.Context(), m)
		_, ok := errors.AsType[*fsm.InvalidError](err)
		require.False(t, ok)
		_, ok = errors.AsType[*reason](err)
		require.False(t, ok)
		require.NotErrorIs(t, err, errTrial)
	}
}

// Success is the nil error, never a nil pointer in an error.
func TestSuccessIsANilError(t *testing.T) {
	m, err := fsm.New[disk](diskSpec())
	require.True(t, err == nil)
	ctx, at, d := t.Context(), m.At("CREATED"), &disk{free: 1}
	in, err := m.InstanceAt(at)
	require.True(t, err == nil)
	for name, err := range map[string]error{
		"Next":           second(m.Next(ctx, at, "resize", user, d)),
		"NextForced":     second(m.NextForced(ctx, m.At("DELETED"), "restore", user, d)),
		"NextTo":         second(m.NextTo(ctx, at, "CREATED", user, d)),
		"Can":            m.Can(ctx, at, "resize", user, d),
		"Check":          m.Check(ctx, 3, d, d),
		"ParseStatus":    second(m.ParseStatus("CREATED", "")),
		"Fire":           second(in.Fire(ctx, "resize", user, d)),
		"Fire unguarded": second(in.Fire(ctx, "delete", user, d)),
		"FireForced":     second(in.FireForced(ctx, "failed", worker, d)),
		"Instance.Next":  second(in.Next(ctx, "resize", user, d)),
		"CompareAndSwap": second(in.CompareAndSwap(sure(in.Next(ctx, "resize", user, d)))),
	} {
		require.True(t, err == nil, "%s: %T", name, err)
	}
}

func second[V any](_ V, err error) error { return err }

// After every refusal the object is where it was.
func TestRefusalMovesNothing(t *testing.T) {
	m := newDisks(t)
	for _, r := range refusals {
		if r.want.Event == "" || r.is == fsm.ErrUnknownState || r.is == fsm.ErrConflict {
			continue // no instance fires
		}
		at := status(r.want.From, r.want.From)
		if r.want.Origin != "" {
			at.Origin = r.want.Origin
		}
		in := sure(m.InstanceAt(at))
		decided, err := in.Next(t.Context(), "lost", user, nil)
		for range 2 {
			_, refused := in.Fire(t.Context(), r.want.Event, r.want.Actor, nil)
			require.Error(t, refused)
		}
		require.Equal(t, at, in.Status())
		if err == nil {
			require.NoError(t, second(in.CompareAndSwap(decided)), "a refusal counts as a move")
		}
	}
}
