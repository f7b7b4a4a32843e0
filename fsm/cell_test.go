package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// trial is a payload that lists the guards that permit, and records those that ran.
type trial struct {
	permit []string
	ran    []string
}

var errTrial = errors.New("declined")

func guarded(name string) fsm.Guard[trial] {
	return fsm.When(name, func(_ context.Context, _, p *trial) error {
		p.ran = append(p.ran, name)
		if slices.Contains(p.permit, name) {
			return nil
		}
		return errTrial
	})
}

func trials(t *testing.T) *fsm.Machine[string, string, trial] {
	m, err := fsm.New[trial](spec{
		Name: "trials", Initial: "start", Actors: []fsm.Actor{user, worker, guest},
		States: []fsm.State[string]{{Name: "start"}, {Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}},
		Rows: fsm.Rows(
			/* 0 */ fsm.Move("start", "go", "a").By(user).If(guarded("first")),
			/* 1 */ fsm.Move("start", "go", "b").By(worker),
			/* 2 */ fsm.Move("start", "go", "c").By(user).If(guarded("second")),
			/* 3 */ fsm.Move("start", "go", "a").By(user).OnlyForced(),
			/* 4 */ fsm.Move("start", "go", "d").By(user).If(guarded("third")),
			/* 5 */ fsm.Move("a", "back", "start").AlsoFrom("b", "c", "d"),
		),
	})
	require.NoError(t, err)
	return m
}

func TestRowsOfACellAreTriedInOrderOfDeclaration(t *testing.T) {
	m := trials(t)
	for _, c := range []struct {
		name   string
		actor  fsm.Actor
		force  bool
		permit []string
		to     string
		row    int
		ran    []string
	}{
		{"first guard permits", user, false, []string{"first", "second", "third"}, "a", 0, []string{"first"}},
		{"second guard permits", user, false, []string{"second", "third"}, "c", 2, []string{"first", "second"}},
		{"third guard permits", user, false, []string{"third"}, "d", 4, []string{"first", "second", "third"}},
		{"user by force", user, true, []string{"third"}, "a", 3, []string{"first", "second"}},
		{"worker", worker, false, nil, "b", 1, nil},
		{"worker by force", worker, true, nil, "b", 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := m.Instance()
			next, fire := m.Next, in.Fire
			if c.force {
				next, fire = m.NextForced, in.FireForced
			}
			p := &trial{permit: c.permit}
			want := fsm.Step[string]{Status: m.At(c.to), Row: c.row}
			step, err := next(t.Context(), m.Start(), "go", c.actor, p)
			require.NoError(t, err)
			require.Equal(t, want, step)
			require.Equal(t, c.ran, p.ran)

			p = &trial{permit: c.permit}
			step, err = fire(t.Context(), "go", c.actor, p)
			require.NoError(t, err)
			require.Equal(t, want, step)
			require.Equal(t, c.ran, p.ran)
		})
	}
}

func TestRefusalHasTheReasonsOfAllGuardsOfTheCell(t *testing.T) {
	m := trials(t)
	p := &trial{}
	_, err := m.Next(t.Context(), m.Start(), "go", user, p)
	require.ErrorIs(t, err, fsm.ErrGuard)
	require.ErrorIs(t, err, errTrial)
	require.Equal(t, []string{"first", "second", "third"}, p.ran)
	te := detail(t, err)
	require.Equal(t, 0, te.Row)
	require.Equal(t, "first", te.Guard)
	require.EqualError(t, err, "fsm: refused by a guard: trials: go in start by user: first: declined; second: declined; third: declined")
}

func TestIgnoreAcceptsAndChangesNothing(t *testing.T) {
	m := newDisks(t)
	at := status("DELETING", "TOBEDELETED")
	in := instanceAt(t, m, at)
	for range 3 {
		step, err := in.Fire(t.Context(), "delete", user, nil)
		require.NoError(t, err)
		require.Equal(t, fsm.Step[string]{Status: at, Row: 8, Ignored: true}, step)
		require.Equal(t, at, in.Status())
	}
	_, err := in.Fire(t.Context(), "delete", worker, nil)
	require.ErrorIs(t, err, fsm.ErrWrongActor, "an ignore row has actors too")
}

func TestForcedRowsNeedForce(t *testing.T) {
	m := newDisks(t)
	in := instanceAt(t, m, m.At("DELETED"))
	_, err := in.Fire(t.Context(), "restore", user, nil)
	require.ErrorIs(t, err, fsm.ErrForcedOnly)

	// A forced request takes forced rows of its actor only.
	_, err = in.FireForced(t.Context(), "restore", worker, nil)
	require.ErrorIs(t, err, fsm.ErrWrongActor)
	step, err := in.FireForced(t.Context(), "restore", user, nil)
	require.NoError(t, err)
	require.Equal(t, fsm.Step[string]{Status: m.At("CREATED"), Row: 9}, step)
	// It runs guards.
	_, err = in.FireForced(t.Context(), "resize", user, nil)
	require.ErrorIs(t, err, errFull)
	// It also takes rows that need no force.
	_, err = in.FireForced(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	require.Equal(t, status("DELETING", "CREATED"), in.Status())
}

func TestPermittedIsInOrderAndRunsNoGuard(t *testing.T) {
	m := newDisks(t)
	for _, c := range []struct {
		at    fsm.Status[string]
		actor fsm.Actor
		want  []string
	}{
		{m.At("ABSENT"), user, []string{"create"}},
		{m.At("ABSENT"), worker, nil},
		{m.At("CREATED"), user, []string{"resize", "delete", "lost"}},
		{m.At("CREATED"), guest, []string{"lost"}},
		{status("DELETING", "CREATED"), worker, []string{"done", "failed", "lost"}},
		{status("DELETING", "BROKEN"), worker, []string{"failed", "lost"}},
		{status("DELETING", "CREATED"), user, []string{"delete", "lost"}},
		{m.At("DELETED"), user, nil},
	} {
		t.Run(fmt.Sprintf("%v by %s", c.at, c.actor), func(t *testing.T) {
			require.Equal(t, c.want, slices.Collect(m.Permitted(c.at, c.actor)))
		})
	}
}
