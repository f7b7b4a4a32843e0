package fsm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// routes has several rows from start to end, and one to aside.
func routes(t *testing.T) *fsm.Machine[string, string, trial] {
	m, err := fsm.New[trial](spec{
		Name: "routes", Initial: "start", Actors: []fsm.Actor{user, worker, guest},
		States: []fsm.State[string]{
			{Name: "start"}, {Name: "way", Kind: fsm.Transitional, Manual: "user"}, {Name: "end"}, {Name: "aside"},
		},
		Rows: fsm.Rows(
			/* 0 */ fsm.Move("start", "force", "end").By(user, worker).OnlyForced(),
			/* 1 */ fsm.Move("start", "walk", "end").By(worker),
			/* 2 */ fsm.Move("start", "swim", "end").By(user).If(guarded("warm")),
			/* 3 */ fsm.Move("start", "ride", "end").By(user).If(guarded("horse")),
			/* 4 */ fsm.Move("start", "leave", "aside").By(user),
			/* 5 */ fsm.Ignore("start", "wait"),
			/* 6 */ fsm.Move("start", "begin", "way").AlsoFrom("aside").By(user),
			/* 7 */ fsm.Move("way", "short", "end").Of("aside").By(user),
			/* 8 */ fsm.Return("way", "back").By(user),
			/* 9 */ fsm.Move("way", "detour", "aside").By(worker),
			/* 10 */ fsm.Move("end", "home", "start"),
			/* 11 */ fsm.Move("aside", "deep", "end").By(guest).OnlyForced(),
			/* 12 */ fsm.Move("way", "step", "way").By(guest),
		),
	})
	require.NoError(t, err)
	return m
}

func TestNextToTakesTheFirstRowThatPermits(t *testing.T) {
	m := routes(t)
	for _, c := range []struct {
		at     fsm.Status[string]
		to     string
		actor  fsm.Actor
		permit []string
		want   fsm.Status[string]
		row    int
		ran    []string
	}{
		{m.At("start"), "end", worker, nil, m.At("end"), 1, nil},
		{m.At("start"), "end", user, []string{"warm", "horse"}, m.At("end"), 2, []string{"warm"}},
		{m.At("start"), "end", user, []string{"horse"}, m.At("end"), 3, []string{"warm", "horse"}},
		{m.At("start"), "aside", user, nil, m.At("aside"), 4, nil},
		{m.At("start"), "way", user, nil, status("way", "start"), 6, nil},
		{status("way", "aside"), "end", user, nil, m.At("end"), 7, nil},
		{status("way", "aside"), "aside", user, nil, m.At("aside"), 8, nil},
		{status("way", "start"), "start", user, nil, m.At("start"), 8, nil},
		{status("way", "start"), "aside", worker, nil, m.At("aside"), 9, nil},
		{status("way", "start"), "way", guest, nil, status("way", "start"), 12, nil},
	} {
		t.Run(fmt.Sprintf("%v to %s by %s %v", c.at, c.to, c.actor, c.permit), func(t *testing.T) {
			p := &trial{permit: c.permit}
			step, err := m.NextTo(t.Context(), c.at, c.to, c.actor, p)
			require.NoError(t, err)
			require.Equal(t, fsm.Step[string]{Status: c.want, Row: c.row}, step)
			require.Equal(t, c.ran, p.ran)
		})
	}
}

func TestNextToErrorNamesTheTarget(t *testing.T) {
	m := routes(t)
	for _, c := range []struct {
		at    fsm.Status[string]
		to    string
		actor fsm.Actor
		want  error
		text  string
	}{
		{m.At("start"), "end", guest, fsm.ErrWrongActor, "fsm: wrong actor: routes: to end in start by guest"},
		{m.At("start"), "start", user, fsm.ErrNotAllowed, "fsm: not allowed: routes: to start in start by user"},
		{m.At("end"), "aside", user, fsm.ErrNotAllowed, "fsm: not allowed: routes: to aside in end by user"},
		{m.At("aside"), "end", guest, fsm.ErrForcedOnly, "fsm: only by force: routes: to end in aside by guest"},
		{m.At("aside"), "end", user, fsm.ErrWrongActor, "fsm: wrong actor: routes: to end in aside by user"},
		{status("way", "start"), "end", user, fsm.ErrNotAllowed, "fsm: not allowed: routes: to end in way (origin start) by user"},
		{
			m.At("start"), "end", user, fsm.ErrGuard,
			"fsm: refused by a guard: routes: to end in start by user: warm: declined; horse: declined",
		},
		{m.At("start"), "nowhere", user, fsm.ErrUnknownState, "fsm: unknown state: routes: to nowhere in start by user"},
		{m.At("nowhere"), "end", user, fsm.ErrUnknownState, "fsm: unknown state: routes: to end in nowhere by user"},
	} {
		t.Run(fmt.Sprintf("%v to %s by %s", c.at, c.to, c.actor), func(t *testing.T) {
			step, err := m.NextTo(t.Context(), c.at, c.to, c.actor, &trial{})
			require.Zero(t, step)
			require.Equal(t, c.want, sentinel(t, err))
			require.EqualError(t, err, c.text)
			te := detail(t, err)
			require.Equal(t, c.to, te.To)
			require.Empty(t, te.Event)
			if c.want == fsm.ErrGuard {
				require.ErrorIs(t, err, errTrial)
				require.Equal(t, "warm", te.Guard)
				require.Equal(t, 2, te.Row)
			}
		})
	}
}

// The refusal of a guard is the reason that the caller can change.
func TestNextToReportsAGuardBeforeAForcedRow(t *testing.T) {
	m := trials(t)
	_, err := m.NextTo(t.Context(), m.Start(), "a", user, &trial{})
	require.EqualError(t, err, "fsm: refused by a guard: trials: to a in start by user: first: declined")
}
