package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The output does not depend on the load of the machine: time is virtual.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		if os.Getenv("UPDATE_DOCS") != "" {
			require.NoError(t, os.WriteFile("testdata/output.txt", []byte(out.String()), 0o666))
		}
		want, err := os.ReadFile("testdata/output.txt")
		require.NoError(t, err)
		require.Equal(t, string(want), out.String())
	})
}

func TestRunFindsFaults(t *testing.T) {
	ctx := t.Context()
	for want, fault := range map[string]func(w *world){
		"the records are":                       func(w *world) { w.note(w.verify(ctx)) },
		"is NotPresent with 0 nodes, not Ready": func(w *world) { w.requireCluster(ctx, "c1", edgecloud.Ready, 2) },
		"is refused, not applied":               func(w *world) { w.report(ctx, "c1", 1, edgecloud.Ready, lifecycle.Applied) },
		"got <nil>": func(w *world) {
			_, err := w.c.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
			w.refused(err, lifecycle.ErrPrecondition)
		},
		"no quota": func(w *world) { w.note(errors.New("no quota")) },
		"oslo 1": func(w *world) {
			w.sites["oslo"].present[appKey("x")] = edgecloud.Order{}
			_, err := w.c.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 2}, nil)
			w.note(err)
			w.serve(ctx, "berlin")
			_, err = w.c.Apps.Create(ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 3}, nil)
			w.note(err)
			w.serve(ctx, "berlin")
			w.note(w.verify(ctx))
		},
	} {
		t.Run(want, func(t *testing.T) {
			w := &world{out: io.Discard, store: lifecycle.NewMemoryStore(), sites: map[string]*site{}}
			w.restart()
			startCloudlets(ctx, w)
			require.NoError(t, w.err)
			fault(w)
			require.ErrorContains(t, w.err, want)
		})
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	require.ErrorIs(t, run(ended, io.Discard), context.Canceled)
}
