package fsm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func TestOriginIsTheLastStateThatWasNotTransitional(t *testing.T) {
	s := sound()
	s.States = append(s.States, fsm.State[string]{Name: "jammed", Kind: fsm.Transitional, Manual: "worker"})
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
		step, err := in.Fire(t.Context(), c.event, c.actor, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, step.Status)
		require.Equal(t, c.want, in.Status())
	}
}

// Rows 5 and 6 of the disks have an origin condition, and row 7 returns.
func TestOriginDecidesTheTarget(t *testing.T) {
	m := newDisks(t)
	for _, c := range []struct{ origin, event, want string }{
		{"CREATED", "done", "TOBEDELETED"},
		{"TOBEDELETED", "done", "DELETED"},
		{"CREATED", "failed", "CREATED"},
		{"TOBEDELETED", "failed", "TOBEDELETED"},
	} {
		t.Run(c.event+" of "+c.origin, func(t *testing.T) {
			step, err := m.Next(t.Context(), status("DELETING", c.origin), c.event, worker, nil)
			require.NoError(t, err)
			require.Equal(t, m.At(c.want), step.Status)
		})
	}
}

// An object that begins in a transitional state has no origin. No row with an origin
// condition fits it, and it cannot return.
func TestTransitionalInitialStateHasNoOrigin(t *testing.T) {
	job := func(abort row) spec {
		return spec{
			Name: "job", Initial: "queued", Actors: []fsm.Actor{worker},
			States: []fsm.State[string]{
				{Name: "queued", Kind: fsm.Transitional, Manual: "worker"},
				{Name: "running", Kind: fsm.Transitional, Manual: "worker"},
				{Name: "done"},
			},
			Rows: fsm.Rows(
				fsm.Move("queued", "start", "running"),
				fsm.Move("running", "finish", "done"),
				fsm.Move("done", "again", "running"),
				abort,
			),
		}
	}
	m := mustNew(t, job(fsm.Return("running", "abort").Of("done")))
	in := m.Instance()
	require.Equal(t, status("queued", "queued"), in.Status())
	_, err := in.Fire(t.Context(), "start", worker, nil)
	require.NoError(t, err)
	require.Equal(t, status("running", "queued"), in.Status())
	require.Equal(t, [][]int{{0}, {0, 2}, {2}}, m.Table().Origins())
	_, err = in.Fire(t.Context(), "abort", worker, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	at, err := m.ParseStatus("running", "queued")
	require.NoError(t, err)
	require.Equal(t, in.Status(), at)

	problems := problemsOf(t, job(fsm.Return("running", "abort")))
	require.Len(t, problems, 1)
	require.Equal(t, fsm.NoOrigin, problems[0].Code)
	require.Equal(t, 3, problems[0].Row)
}

// Objects that begin in any of two transitional states have no origin. One problem of a
// return row and a source is enough, because a file may have thousands of initial states.
func TestProblemsNameOneMissingOrigin(t *testing.T) {
	table := &fsm.Table{
		Name: "job", Initials: []int{0, 1}, Actors: []fsm.Actor{worker}, Events: []string{"start", "abort", "finish", "again"},
		States: []fsm.TableState{
			{Name: "queued", Kind: fsm.Transitional, Manual: "worker", Target: -1},
			{Name: "waiting", Kind: fsm.Transitional, Manual: "worker", Target: -1},
			{Name: "running", Kind: fsm.Transitional, Manual: "worker", Target: -1},
			{Name: "stopping", Kind: fsm.Transitional, Manual: "worker", Target: -1},
			{Name: "done", Target: -1},
		},
		Rows: []fsm.TableRow{
			{From: []int{0, 1}, Event: 0, To: 2},
			{From: []int{2, 3}, Event: 1, To: -1, Then: fsm.ThenReturn},
			{From: []int{2}, Event: 2, To: 3},
			{From: []int{3}, Event: 2, To: 4},
			{From: []int{4}, Event: 3, To: 2},
		},
	}
	require.Equal(t, []string{
		"row 1 (running|stopping -abort-> origin): an object in running may have begun in queued and have no origin to return to",
		"row 1 (running|stopping -abort-> origin): an object in stopping may have begun in queued and have no origin to return to",
	}, textsOf(table.Problems()))
}
