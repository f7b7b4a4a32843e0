package lifecycle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/lifecycle"
)

// [evolve.Diff] reports hazards of old and new binaries side by side. These tests show
// each hazard with two managers of two tables over one store.

type (
	lampSpec    = fsm.Spec[string, string]
	lampManager = lifecycle.Manager[string, string, string]
)

func lamp(change func(*lampSpec)) *fsm.Machine[string, string, string] {
	spec := lampSpec{
		Name: "lamp", Initial: "Off", Actors: []fsm.Actor{"user", "device"},
		States: []fsm.State[string]{
			{Name: "Off"},
			{Name: "Dim"},
			{Name: "Starting", Kind: fsm.Transitional},
			{Name: "On"},
			{Name: "Deleting", Kind: fsm.Transitional, Manual: "an operator"},
			{Name: "Broken", Kind: fsm.Failed},
			{Name: "Gone", Kind: fsm.Absent},
			{Name: "Grinding", Kind: fsm.Transitional},
		},
		Rows: fsm.Rows(
			fsm.Move("Off", "start", "Starting").By("user"),
			fsm.Move("Off", "dim", "Dim").By("user"),
			fsm.Move("Dim", "undim", "Off").By("user"),
			fsm.Move("Starting", "done", "On").By("device").Of("Off"),
			fsm.Move("Starting", "fail", "Broken").By("device"),
			fsm.Move("Starting", "late", "Broken").After(5*time.Minute).Of("Off"),
			fsm.Move("Starting", "delete", "Deleting").By("user"),
			fsm.Move("Deleting", "done", "Gone").By("device"),
			fsm.Move("On", "stop", "Off").By("user"),
			fsm.Move("Broken", "undo", "Off").By("user"),
			fsm.Move("Off", "grind", "Grinding").By("user"),
			fsm.Move("Grinding", "ground", "Off").By("user").Of("Off"),
			fsm.Move("Grinding", "late", "Off").After(5*time.Minute).Of("Off"),
		),
	}
	if change != nil {
		change(&spec)
	}
	return fsm.Must[string](spec)
}

func (l lampFleet) hazard(t *testing.T, code string) evolve.Hazard {
	e, err := evolve.Diff(l.machines[0].Table(), l.machines[1].Table(), nil)
	require.NoError(t, err)
	for _, h := range e.Hazards {
		if h.ID == code {
			return h
		}
	}
	require.Fail(t, "no hazard "+code, "%s", e)
	return evolve.Hazard{}
}

type lampFleet struct {
	machines [2]*fsm.Machine[string, string, string]
	old, new *lampManager
}

func lamps(change func(*lampSpec)) lampFleet {
	store := lifecycle.NewMemoryStore()
	l := lampFleet{machines: [2]*fsm.Machine[string, string, string]{lamp(nil), lamp(change)}}
	config := &lifecycle.Config[string]{Undo: []string{"undo"}}
	l.old = lifecycle.Must(l.machines[0], store, config)
	l.new = lifecycle.Must(l.machines[1], store, config)
	return l
}

func (l lampFleet) fire(t *testing.T, m *lampManager, events ...string) lifecycle.Record[string, string] {
	var rec lifecycle.Record[string, string]
	for _, e := range events {
		var err error
		actor := fsm.Actor("user")
		if e == "done" || e == "fail" {
			actor = "device"
		}
		rec, err = m.Fire(t.Context(), "a", e, actor, nil)
		require.NoError(t, err, e)
	}
	return rec
}

func TestEvolutionUnknownState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lamps(func(s *lampSpec) {
			s.States = append(s.States, fsm.State[string]{Name: "Testing", Kind: fsm.Transitional})
			s.Rows = append(s.Rows, fsm.Move("Off", "test", "Testing").By("user"), fsm.Move("Testing", "late", "Off").After(time.Minute))
		})
		require.Equal(t, evolve.Unsafe, l.hazard(t, "unknown-to-old").Level)
		add(t, l.old, "a", "user", "")
		add(t, l.old, "b", "user", "")
		l.fire(t, l.new, "test")

		_, err := l.old.Get(t.Context(), "a")
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		_, err = l.old.Fire(t.Context(), "a", "start", "user", nil)
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		page, err := l.old.List(t.Context(), lifecycle.Select[string]{})
		require.NoError(t, err)
		require.Len(t, page, 2)
		require.ErrorIs(t, page[0].Err, lifecycle.ErrForeign)
		require.NoError(t, page[1].Err, "b is listed")
		time.Sleep(2 * time.Minute)
		require.Empty(t, sweep(t, l.old), "which looks for its own states only")
		require.Len(t, sweep(t, l.new), 1, "a new node does it")
		require.Equal(t, "Off", get(t, l.old, "a").State)
	})
}

func TestEvolutionDeadlines(t *testing.T) {
	without := func(s *lampSpec) {
		s.Rows[5] = fsm.Move("Starting", "late", "Broken").By("user")
		s.States[2].Manual = "an operator"
	}
	synctest.Test(t, func(t *testing.T) { // taken away: the old sweeper fires it all the same
		l := lamps(without)
		require.Equal(t, evolve.Unsafe, l.hazard(t, "deadline-action").Level)
		add(t, l.old, "a", "user", "")
		l.fire(t, l.old, "start")
		time.Sleep(6 * time.Minute)
		cases := sweep(t, l.new)
		require.Equal(t, lifecycle.NeedsOperator, cases[0].Resolution)
		cases = sweep(t, l.old)
		require.Equal(t, lifecycle.Moved, cases[0].Resolution)
		require.Equal(t, "Broken", get(t, l.new, "a").State)
	})
	synctest.Test(t, func(t *testing.T) { // added: what an old node puts there is never late
		l := lamps(func(s *lampSpec) { s.Rows = append(s.Rows, fsm.Move("On", "idle", "Off").After(time.Hour)) })
		require.Equal(t, evolve.NeedsDrain, l.hazard(t, "deadline-added").Level)
		add(t, l.old, "a", "user", "")
		l.fire(t, l.old, "start", "done")
		time.Sleep(24 * time.Hour)
		require.Empty(t, sweep(t, l.new))
		l.fire(t, l.new, "stop", "start", "done")
		time.Sleep(2 * time.Hour)
		require.Len(t, sweep(t, l.new), 1)
	})
	synctest.Test(t, func(t *testing.T) { // longer: each counts from its own table
		l := lamps(func(s *lampSpec) { s.Rows[5] = fsm.Move("Starting", "late", "Broken").After(9 * time.Minute).Of("Off") })
		require.Equal(t, evolve.Compatible, l.hazard(t, "deadline-time").Level)
		add(t, l.old, "a", "user", "")
		l.fire(t, l.new, "start")
		time.Sleep(6 * time.Minute)
		require.Empty(t, sweep(t, l.old))
		time.Sleep(4 * time.Minute)
		require.Len(t, sweep(t, l.old), 1, "which is the same event")
	})
}

// The late report of an operation that the other node took for superseded.
func TestEvolutionSupersede(t *testing.T) {
	l := lamps(func(s *lampSpec) { s.Rows[6] = fsm.Move("Starting", "delete", "Deleting").By("user").Superseding() })
	require.Equal(t, evolve.Unsafe, l.hazard(t, "two-results").Level)
	for id, c := range map[string]struct {
		node *lampManager
		want lifecycle.Verdict
	}{"new": {l.new, lifecycle.Stale}, "old": {l.old, lifecycle.Applied}} {
		t.Run(id, func(t *testing.T) {
			add(t, l.old, id, "user", "")
			started := fire(t, l.old, id, "start", "user", nil)
			fire(t, c.node, id, "delete", "user", nil)
			// "done" is about the start, and would end the deletion.
			require.Equal(t, c.want, report(t, l.new, id, started.Operation, "done", "device", ""))
		})
	}
}

// A new way into a known state, with an origin for which the old table has no row.
func TestEvolutionStranded(t *testing.T) {
	change := func(s *lampSpec) {
		s.Rows = append(s.Rows, fsm.Move("Dim", "grind", "Grinding").By("user"), fsm.Move("Grinding", "late", "Off").After(5*time.Minute).Of("Dim"))
	}
	l := lamps(change)
	require.Equal(t, evolve.Unsafe, l.hazard(t, "stranded").Level)
	synctest.Test(t, func(t *testing.T) {
		l := lamps(change)
		add(t, l.old, "a", "user", "")
		l.fire(t, l.new, "dim", "grind")
		time.Sleep(6 * time.Minute)
		for range 2 { // as long as only old nodes run
			for _, e := range []string{"ground", "start", "done", "late"} {
				_, err := l.old.Fire(t.Context(), "a", e, "user", nil)
				require.Error(t, err, e)
			}
			found := sweep(t, l.old)
			for _, c := range found {
				require.NotEqual(t, lifecycle.Moved, c.Resolution)
			}
			time.Sleep(time.Hour)
		}
		require.Len(t, sweep(t, l.new), 1)
		require.Equal(t, "Off", get(t, l.old, "a").State)
	})
}

// What an undo needs is kept by the node to which the object has failed.
func TestEvolutionUndo(t *testing.T) {
	l := lamps(func(s *lampSpec) { s.States[5].Kind = fsm.Stable })
	require.Equal(t, evolve.NeedsDrain, l.hazard(t, "undo").Level)
	edit := &lifecycle.Change[string]{Edit: func(p *string) error { *p = "after"; return nil }}
	for id, c := range map[string]struct {
		node *lampManager
		want string
	}{"old": {l.old, "before"}, "new": {l.new, "after"}} {
		t.Run(id, func(t *testing.T) {
			add(t, l.old, id, "user", "before")
			fire(t, l.old, id, "start", "user", edit)
			fire(t, c.node, id, "fail", "device", nil)
			require.Equal(t, c.want, fire(t, l.old, id, "undo", "user", nil).Payload)
		})
	}
}

// A row more is a note: an old node refuses it, and goes on from what it leads to.
func TestEvolutionRowMore(t *testing.T) {
	l := lamps(func(s *lampSpec) { s.Rows = append(s.Rows, fsm.Move("Dim", "stop", "Off").By("user")) })
	require.Equal(t, evolve.Compatible, l.hazard(t, "refused-by-old").Level)
	add(t, l.old, "a", "user", "")
	l.fire(t, l.old, "dim")
	_, err := l.old.Fire(t.Context(), "a", "stop", "user", nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	l.fire(t, l.new, "stop")
	l.fire(t, l.old, "start", "done")
}
