package edgecloud_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

func TestConformance(t *testing.T) {
	conforms(t, edgecloud.ClusterInst, "trackedstate")
	conforms(t, edgecloud.AppInst, "trackedstate")
	conforms(t, edgecloud.CloudletCreate, "cloudlet-create")
	conforms(t, edgecloud.CloudletUpgrade, "cloudlet-upgrade")
}

// conforms compares a machine with the document, takes every row, and requires that the
// comparison finds every mutant of the table.
func conforms[S, E comparable, T any](t *testing.T, m *fsm.Machine[S, E, T], document string) {
	check := func(t testing.TB, m *fsm.Machine[S, E, T]) {
		conform.Check(t, m.Table(), "testdata/"+document+".json", "testdata/"+document+".map.txt")
	}
	t.Run(m.Name(), func(t *testing.T) {
		check(t, m)
		conform.Walk(t, m, new(T))
		fsmtest.Mutate(t, m, check, nil)
	})
}

func TestDocumentation(t *testing.T) {
	// The rows of AppInst are those of ClusterInst, which TestConformance proves.
	diagramtest.Doc(t, "doc.go", edgecloud.ClusterInst.Table(),
		edgecloud.CloudletCreate.Table(), edgecloud.CloudletUpgrade.Table())
}

// outcomes returns the resting states that an operation leads to without a request.
func outcomes(at fsm.Status[edgecloud.State]) []edgecloud.State {
	m := edgecloud.ClusterInst
	var ends []edgecloud.State
	seen := make(map[fsm.Status[edgecloud.State]]bool)
	var follow func(fsm.Status[edgecloud.State])
	follow = func(at fsm.Status[edgecloud.State]) {
		if seen[at] {
			return
		}
		seen[at] = true
		if m.Kind(at.State).Resting() {
			ends = append(ends, at.State)
			return
		}
		for e := range m.Events() {
			for _, a := range []fsm.Actor{edgecloud.CRM, edgecloud.Controller, fsm.Sweeper} {
				if step, err := m.NextForced(context.Background(), at, e, a, nil); err == nil {
					follow(step.Status)
				}
			}
		}
	}
	follow(at)
	return ends
}

func TestOperationDeterminesErrorState(t *testing.T) {
	type states = []edgecloud.State
	for _, tt := range []struct {
		event edgecloud.Event
		from  states // where the operation begins
		ends  states
	}{
		{edgecloud.Create, states{edgecloud.NotPresent}, states{edgecloud.CreateError, edgecloud.Ready}},
		{edgecloud.Update, states{edgecloud.Ready, edgecloud.UpdateError}, states{edgecloud.Ready, edgecloud.UpdateError}},
		{
			edgecloud.Delete,
			states{edgecloud.Ready, edgecloud.CreateError, edgecloud.UpdateError, edgecloud.DeleteError},
			states{edgecloud.NotPresent, edgecloud.DeleteError},
		},
	} {
		for _, from := range tt.from {
			t.Run(string(tt.event)+" from "+string(from), func(t *testing.T) {
				m := edgecloud.ClusterInst
				step, err := m.NextForced(t.Context(), m.At(from), tt.event, edgecloud.User, nil)
				require.NoError(t, err)
				want := slices.Clone(tt.ends)
				if tt.event == edgecloud.Delete && !slices.Contains(want, from) {
					want = append(want, from) // the preparation may fail
				}
				require.ElementsMatch(t, want, outcomes(step.Status))
			})
		}
	}
}

// The machine with a manager and without a coordinator: undo restores state and content.
func TestManagerConfig(t *testing.T) {
	ctx := t.Context()
	for _, tt := range []struct {
		begin edgecloud.Event
		nodes int
	}{{edgecloud.Update, 7}, {edgecloud.Delete, 3}} {
		t.Run(string(tt.begin), func(t *testing.T) {
			clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), edgecloud.ManagerConfig())
			rec, err := clusters.Create(ctx, "c", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3})
			require.NoError(t, err)
			_, err = clusters.Report(ctx, "c", rec.Operation, edgecloud.Done, edgecloud.CRM, "")
			require.NoError(t, err)
			rec, err = clusters.Fire(ctx, "c", tt.begin, edgecloud.User, &lifecycle.Change[edgecloud.ClusterSpec]{
				Edit: func(s *edgecloud.ClusterSpec) error { s.Nodes = tt.nodes; return nil },
			})
			require.NoError(t, err)
			if tt.begin == edgecloud.Delete {
				_, err = clusters.Fire(ctx, "c", edgecloud.Prepared, edgecloud.Controller, nil)
				require.NoError(t, err)
			}
			_, err = clusters.Report(ctx, "c", rec.Operation, edgecloud.Fail, edgecloud.CRM, "")
			require.NoError(t, err)
			rec, err = clusters.Fire(ctx, "c", edgecloud.Undo, edgecloud.Controller, nil)
			require.NoError(t, err)
			require.Equal(t, edgecloud.Ready, rec.State)
			require.Equal(t, 3, rec.Payload.Nodes)
		})
	}
	t.Run("work is by the CRM", func(t *testing.T) {
		clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), edgecloud.ManagerConfig())
		work := lifecycle.Func(func(context.Context) error { return nil })
		h, err := clusters.Do(ctx, "d", edgecloud.Create, edgecloud.User, work, nil)
		require.NoError(t, err)
		rec, err := h.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, edgecloud.Ready, rec.State)
		require.Equal(t, edgecloud.CRM, rec.Actor)
	})
}
