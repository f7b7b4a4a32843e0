package fsm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// Each of 64 actors has a row of its own. The mask of actors has a bit for every one.
func TestSixtyFourActorsDiffer(t *testing.T) {
	s := spec{Name: "crowd", Initial: "on", States: []fsm.State[string]{{Name: "on"}, {Name: "off"}}}
	for i := range fsm.MaxActors {
		a := fsm.Actor(fmt.Sprintf("actor%d", i))
		s.Actors = append(s.Actors, a)
		s.Rows = append(s.Rows, fsm.Move("on", fmt.Sprintf("only%d", i), "off").By(a))
	}
	s.Rows = append(s.Rows, fsm.Move("off", "any", "on"))
	m := mustNew(t, s)
	for i, a := range s.Actors {
		for k := range s.Actors {
			err := m.Can(t.Context(), m.At("on"), fmt.Sprintf("only%d", k), a, nil)
			if i == k {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, fsm.ErrWrongActor)
				require.Equal(t, a, detail(t, err).Actor)
			}
		}
		require.NoError(t, m.Can(t.Context(), m.At("off"), "any", a, nil))
	}
}

func TestRowWithoutActorsIsForEveryDeclaredActor(t *testing.T) {
	m := newDisks(t)
	for _, a := range []fsm.Actor{user, worker, guest, fsm.Sweeper} {
		require.NoError(t, m.Can(t.Context(), m.At("CREATED"), "lost", a, nil), a)
	}
	require.ErrorIs(t, m.Can(t.Context(), m.At("CREATED"), "lost", undeclared, nil), fsm.ErrWrongActor)
	require.Empty(t, m.Table().Rows[10].Actors)
}

func TestUndeclaredActorIsTheWrongActor(t *testing.T) {
	m := newDisks(t)
	for _, a := range []fsm.Actor{"", undeclared, "USER", "user "} {
		err := m.Can(t.Context(), m.At("CREATED"), "delete", a, nil)
		require.ErrorIs(t, err, fsm.ErrWrongActor)
		require.Equal(t, a, detail(t, err).Actor)
		_, err = m.NextTo(t.Context(), m.At("CREATED"), "DELETING", a, nil)
		require.ErrorIs(t, err, fsm.ErrWrongActor)
		for range m.Permitted(m.At("CREATED"), a) {
			t.Fatal("a row is permitted to an undeclared actor")
		}
	}
}

func TestRowWithATimeoutIsForTheSweeperAndItsActors(t *testing.T) {
	m := newDisks(t)
	at := status("CREATING", "ABSENT")
	for _, a := range []fsm.Actor{worker, fsm.Sweeper} {
		step, err := m.Next(t.Context(), at, "failed", a, nil)
		require.NoError(t, err)
		require.Equal(t, m.At("ABSENT"), step.Status)
	}
	require.ErrorIs(t, m.Can(t.Context(), at, "failed", user, nil), fsm.ErrWrongActor)

	// Without By, the row is for the sweeper alone.
	doors := mustNew(t, sound())
	at = status("closing", "open")
	require.NoError(t, doors.Can(t.Context(), at, "stuck", fsm.Sweeper, nil))
	require.ErrorIs(t, doors.Can(t.Context(), at, "stuck", worker, nil), fsm.ErrWrongActor)
	require.Equal(t, []fsm.Actor{user, worker, fsm.Sweeper}, doors.Table().Actors)
}

func TestMachineWithoutTimeoutsHasNoSweeper(t *testing.T) {
	m := mustNew(t, ring([]string{"a", "b"}, []string{"x", "y"}))
	require.ErrorIs(t, m.Can(t.Context(), m.At("a"), "x", fsm.Sweeper, nil), fsm.ErrWrongActor)
	require.Equal(t, []fsm.Actor{user}, m.Table().Actors)
}
