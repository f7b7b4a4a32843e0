package fsm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func status(state, origin string) fsm.Status[string] {
	return fsm.Status[string]{State: state, Origin: origin}
}

func TestOriginIsTheLastStateThatWasNotTransitional(t *testing.T) {
	s := sound()
	s.States = append(s.States, fsm.State[string]{Name: "jammed", Kind: fsm.Transitional, Manual: "the porter"})
	s = with(s,
		fsm.Move("closing", "jam", "jammed").By(worker),
		fsm.Move("jammed", "jam", "jammed").By(worker),
		fsm.Return("jammed", "free").By(worker),
		fsm.Move("closed", "close", "closing").By(worker))
	m := mustNew(t, s)
	in := m.Instance()
	for _, c := range []struct {
		event string
		actor fsm.Actor
		want  fsm.Status[string]
	}{
		{"close", user, status("closing", "open")},
		{"jam", worker, status("jammed", "open")},
		{"jam", worker, status("jammed", "open")},
		{"free", worker, status("open", "open")},
		{"close", user, status("closing", "open")},
		{"shut", worker, status("closed", "closed")},
		{"close", worker, status("closing", "closed")},
		{"jam", worker, status("jammed", "closed")},
		{"free", worker, status("closed", "closed")},
		{"close", worker, status("closing", "closed")},
		{"stuck", fsm.Sweeper, status("closed", "closed")},
		{"remove", user, status("gone", "gone")},
	} {
		pure, err := m.Next(t.Context(), in.Status(), c.event, c.actor, nil)
		require.NoError(t, err)
		step, err := in.Fire(t.Context(), c.event, c.actor, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, step.Status)
		require.Equal(t, c.want, pure.Status)
		require.Equal(t, c.want, in.Status())
	}
}

func TestRowCanAskForTheOrigin(t *testing.T) {
	m := newDisks(t)
	for origin, want := range map[string]string{"CREATED": "TOBEDELETED", "TOBEDELETED": "DELETED"} {
		step, err := m.Next(t.Context(), status("DELETING", origin), "done", worker, nil)
		require.NoError(t, err)
		require.Equal(t, m.At(want), step.Status)
	}
	// From elsewhere neither row fits, although the event and the actor do.
	_, err := m.Next(t.Context(), status("DELETING", "BROKEN"), "done", worker, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	te := detail(t, err)
	require.Equal(t, "BROKEN", te.Origin)
	require.EqualError(t, te.Reason, "no row for an object of this origin")
}

func TestReturnLeadsToTheOrigin(t *testing.T) {
	m := newDisks(t)
	for _, origin := range []string{"CREATED", "TOBEDELETED"} {
		step, err := m.Next(t.Context(), status("DELETING", origin), "failed", worker, nil)
		require.NoError(t, err)
		require.Equal(t, m.At(origin), step.Status)
		require.Equal(t, 7, step.Row)
	}
}

// An object that begins in a transitional state has no origin. Rows that ask
// for one do not fit it, and what New lets through cannot return.
func TestTransitionalInitialStateHasNoOrigin(t *testing.T) {
	s := edit(func(s *spec) {
		s.Initial = "closing"
		s.States[1].Manual = "the porter"
		s.Rows[1] = fsm.Return("closing", "stuck").Of("open")
		s.Rows = append(s.Rows, fsm.Move("closed", "x", "open"), fsm.Move("closing", "begun", "closed").Of("closing"))
	})
	m := mustNew(t, s)
	require.Equal(t, status("closing", "closing"), m.Start())
	require.Equal(t, [][]int{{0}, {0, 1}, {2}, {3}}, m.Table().Origins())

	_, err := m.Next(t.Context(), m.Start(), "stuck", user, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	step, err := m.Next(t.Context(), m.Start(), "begun", user, nil)
	require.NoError(t, err)
	require.Equal(t, m.At("closed"), step.Status)
	require.ErrorIs(t, m.Can(t.Context(), status("closing", "open"), "begun", user, nil), fsm.ErrNotAllowed)
}

// The state in which it began is all that such an object carries on, and it is
// no place to return to.
func TestObjectThatBeganTransitionalCarriesNoOriginOn(t *testing.T) {
	s := spec{
		Name: "job", Initial: "queued", Actors: []fsm.Actor{worker},
		States: []fsm.State[string]{
			{Name: "queued", Kind: fsm.Transitional, Manual: "the scheduler"},
			{Name: "running", Kind: fsm.Transitional, Manual: "the scheduler"},
			{Name: "done"},
		},
		Rows: fsm.Rows(
			fsm.Move("queued", "start", "running"),
			fsm.Move("running", "finish", "done"),
			fsm.Move("done", "again", "running"),
			fsm.Return("running", "abort").Of("done"),
		),
	}
	m := mustNew(t, s)
	in := m.Instance()
	_, err := in.Fire(t.Context(), "start", worker, nil)
	require.NoError(t, err)
	require.Equal(t, status("running", "queued"), in.Status())
	require.Equal(t, [][]int{{0}, {0, 2}, {2}}, m.Table().Origins())
	_, err = in.Fire(t.Context(), "abort", worker, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)

	// The same status out of a store.
	at, err := m.ParseStatus("running", "queued")
	require.NoError(t, err)
	require.Equal(t, in.Status(), at)
}

func TestReturnThatCouldLackAnOriginIsRefused(t *testing.T) {
	job := spec{
		Name: "job", Initial: "queued", Actors: []fsm.Actor{worker},
		States: []fsm.State[string]{
			{Name: "queued", Kind: fsm.Transitional, Manual: "the scheduler"},
			{Name: "running", Kind: fsm.Transitional, Manual: "the scheduler"},
			{Name: "done"},
		},
		Rows: fsm.Rows(
			fsm.Move("queued", "start", "running"),
			fsm.Move("running", "finish", "done"),
			fsm.Move("done", "again", "running"),
			fsm.Return("running", "abort"), // may have come here without resting
		),
	}
	problems := problemsOf(t, job)
	require.Len(t, problems, 1)
	require.Equal(t, fsm.NoOrigin, problems[0].Code)
	require.Equal(t, 3, problems[0].Row)
}

// A return that is asked of a status without origin, which no machine leads to
// but a caller may have written by hand, goes nowhere.
func TestReturnWithoutOriginIsNotAllowed(t *testing.T) {
	m := newDisks(t)
	for _, at := range []fsm.Status[string]{m.At("DELETING"), status("DELETING", "CREATING")} {
		_, err := m.Next(t.Context(), at, "failed", worker, nil)
		require.ErrorIs(t, err, fsm.ErrNotAllowed)
		require.Error(t, detail(t, err).Reason)
		for r := range m.Permitted(at, worker) {
			require.NotEqual(t, "failed", r.Event)
		}
	}
}
