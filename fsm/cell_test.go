package fsm_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// trial is a payload that says which guards agree and notes which were asked.
type trial struct {
	yes   []string
	asked []string
}

var errTrial = errors.New("declined")

func ask(name string) fsm.Guard[trial] {
	return fsm.When(name, func(_ context.Context, _, p *trial) error {
		p.asked = append(p.asked, name)
		if slices.Contains(p.yes, name) {
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
			/* 0 */ fsm.Move("start", "go", "a").By(user).If(ask("first")),
			/* 1 */ fsm.Move("start", "go", "b").By(worker),
			/* 2 */ fsm.Move("start", "go", "c").By(user).If(ask("second")),
			/* 3 */ fsm.Move("start", "go", "a").By(user).OnlyForced(),
			/* 4 */ fsm.Move("start", "go", "d").By(user).If(ask("third")),
			/* 5 */ fsm.Move("a", "back", "start").AlsoFrom("b", "c", "d"),
		),
	})
	require.NoError(t, err)
	return m
}

func TestRowsOfACellAreTriedInOrderOfDeclaration(t *testing.T) {
	m := trials(t)
	for _, c := range []struct {
		actor fsm.Actor
		force bool
		yes   []string
		to    string
		row   int
		asked []string
	}{
		{user, false, []string{"first", "second", "third"}, "a", 0, []string{"first"}},
		{user, false, []string{"second", "third"}, "c", 2, []string{"first", "second"}},
		{user, false, []string{"third"}, "d", 4, []string{"first", "second", "third"}},
		{user, true, []string{"third"}, "a", 3, []string{"first", "second"}},
		{worker, false, nil, "b", 1, nil},
		{worker, true, nil, "b", 1, nil},
	} {
		next := m.Next
		if c.force {
			next = m.NextForced
		}
		p := &trial{yes: c.yes}
		step, err := next(t.Context(), m.Start(), "go", c.actor, p)
		require.NoError(t, err)
		require.Equal(t, fsm.Step[string]{Status: m.At(c.to), Row: c.row}, step)
		require.Equal(t, c.asked, p.asked)

		in := m.Instance()
		fire := in.Fire
		if c.force {
			fire = in.FireForced
		}
		p = &trial{yes: c.yes}
		step, err = fire(t.Context(), "go", c.actor, p)
		require.NoError(t, err)
		require.Equal(t, c.row, step.Row)
		require.Equal(t, c.to, in.State())
		require.Equal(t, c.asked, p.asked)
	}
}

func TestAllGuardsOfACellGiveTheirReasons(t *testing.T) {
	m := trials(t)
	p := &trial{}
	_, err := m.Next(t.Context(), m.Start(), "go", user, p)
	require.ErrorIs(t, err, fsm.ErrGuard)
	require.ErrorIs(t, err, errTrial)
	require.Equal(t, []string{"first", "second", "third"}, p.asked)
	te := detail(t, err)
	require.Equal(t, 0, te.Row)
	require.Equal(t, "first", te.Guard)
	require.EqualError(t, err, "fsm: refused by a guard: trials: go in start by user: first: declined\nsecond: declined\nthird: declined")
}

func TestGuardOfAnotherActorIsNotAsked(t *testing.T) {
	m := trials(t)
	p := &trial{}
	_, err := m.Next(t.Context(), m.Start(), "go", guest, p)
	require.ErrorIs(t, err, fsm.ErrWrongActor)
	require.Empty(t, p.asked)
}

func TestSelfTransitionsAreLegalAndExplicit(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(m.At("CREATED")))
	step, err := in.Fire(t.Context(), "resize", user, &disk{free: 1})
	require.NoError(t, err)
	require.Equal(t, m.At("CREATED"), step.Status)
	require.False(t, step.Ignored, "it is a move, not an ignored event")
	require.Equal(t, 3, step.Row)

	// A wildcard makes none: in its target the event is not allowed.
	broken := sure(m.InstanceAt(m.At("BROKEN")))
	_, err = broken.Fire(t.Context(), "lost", user, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
}

func TestIgnoreAcceptsAndChangesNothing(t *testing.T) {
	m := newDisks(t)
	at := status("DELETING", "TOBEDELETED")
	in := sure(m.InstanceAt(at))
	for range 3 {
		step, err := in.Fire(t.Context(), "delete", user, nil)
		require.NoError(t, err)
		require.Equal(t, at, step.Status)
		require.True(t, step.Ignored)
		require.Equal(t, 8, step.Row)
		require.Equal(t, at, in.Status())
	}
	_, err := in.Fire(t.Context(), "delete", worker, nil)
	require.ErrorIs(t, err, fsm.ErrWrongActor, "an ignore row has actors too")
}

// A wildcard row whose sources are some of many is one row.
func TestWildcardSourcesAreExpandedWhenBuilt(t *testing.T) {
	m := newDisks(t)
	for _, c := range []struct {
		at fsm.Status[string]
		ok bool
	}{
		{m.At("CREATED"), true},
		{m.At("TOBEDELETED"), true},
		{status("CREATING", "ABSENT"), true},
		{status("DELETING", "CREATED"), true},
		{m.At("BROKEN"), false},
		{m.At("ABSENT"), false},
		{m.At("DELETED"), false},
	} {
		step, err := m.Next(t.Context(), c.at, "lost", guest, nil)
		if !c.ok {
			require.ErrorIs(t, err, fsm.ErrNotAllowed, c.at.State)
			continue
		}
		require.NoError(t, err, c.at.State)
		require.Equal(t, fsm.Step[string]{Status: m.At("BROKEN"), Row: 10}, step)
	}
}

func TestForcedRowsNeedForce(t *testing.T) {
	m := newDisks(t)
	in := sure(m.InstanceAt(m.At("DELETED")))
	_, err := in.Fire(t.Context(), "restore", user, nil)
	require.ErrorIs(t, err, fsm.ErrForcedOnly)
	require.ErrorIs(t, m.Can(t.Context(), m.At("DELETED"), "restore", user, nil), fsm.ErrForcedOnly)
	_, err = m.NextTo(t.Context(), m.At("DELETED"), "CREATED", user, nil)
	require.ErrorIs(t, err, fsm.ErrForcedOnly)
	for range m.Permitted(m.At("DELETED"), user) {
		t.Fatal("a forced row is permitted")
	}
	require.Equal(t, "DELETED", in.State())

	// Force opens forced rows, not those of another actor.
	_, err = in.FireForced(t.Context(), "restore", worker, nil)
	require.ErrorIs(t, err, fsm.ErrWrongActor)
	step, err := in.FireForced(t.Context(), "restore", user, nil)
	require.NoError(t, err)
	require.Equal(t, fsm.Step[string]{Status: m.At("CREATED"), Row: 9}, step)
	// And it takes rows that need none.
	_, err = in.FireForced(t.Context(), "delete", user, nil)
	require.NoError(t, err)
	require.Equal(t, status("DELETING", "CREATED"), in.Status())
	// Nor does it skip guards.
	in = sure(m.InstanceAt(m.At("CREATED")))
	_, err = in.FireForced(t.Context(), "resize", user, nil)
	require.ErrorIs(t, err, errFull)
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
		{m.At("CREATED"), "nobody", nil},
	} {
		var got []string
		for r := range m.Permitted(c.at, c.actor) {
			got = append(got, r.Event)
		}
		require.Equal(t, c.want, got, "%v %s", c.at, c.actor)
	}
	// Several rows of one cell are all there, the forced one aside.
	tm := trials(t)
	var guards []string
	for r := range tm.Permitted(tm.Start(), user) {
		guards = append(guards, r.Guard.Name())
	}
	require.Equal(t, []string{"first", "second", "third"}, guards)
}
