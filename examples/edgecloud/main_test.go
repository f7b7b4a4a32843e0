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

func TestRunDetectsFaults(t *testing.T) {
	ctx := t.Context()
	for want, fault := range map[string]func(d *demo){
		"the records are":                       func(d *demo) { d.keep(d.verify(ctx)) },
		"is NotPresent with 0 nodes, not Ready": func(d *demo) { d.requireCluster(ctx, "c1", edgecloud.Ready, 2) },
		"is refused, not applied": func(d *demo) {
			c1 := cluster{ID: "c1", Operation: 1}
			d.report(ctx, c1, edgecloud.Ready, lifecycle.Applied)
		},
		"got <nil>": func(d *demo) {
			_, err := d.controller.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
			d.refused(err, lifecycle.ErrPrecondition)
		},
		"no quota": func(d *demo) { d.keep(errors.New("no quota")) },
		"berlin has 3 instances": func(d *demo) {
			_, err := d.controller.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 2}, nil)
			d.keep(err)
			d.serve(ctx)
			_, err = d.controller.Apps.Create(ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 3}, nil)
			d.keep(err)
			d.serve(ctx)
			d.site.present[lifecycle.Key{ID: "x"}] = edgecloud.Order{}
			d.keep(d.verify(ctx))
		},
	} {
		t.Run(want, func(t *testing.T) {
			d := newDemo(io.Discard)
			d.startCloudlet(ctx)
			require.NoError(t, d.err)
			fault(d)
			require.ErrorContains(t, d.err, want)
		})
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	require.ErrorIs(t, run(ended, io.Discard), context.Canceled)
}

func TestSite(t *testing.T) {
	s := &site{present: map[lifecycle.Key]edgecloud.Order{}}
	k := lifecycle.Key{ID: "c1"}
	do := func(o edgecloud.Order) {
		_, err := s.Do(t.Context(), o)
		require.NoError(t, err)
	}
	do(edgecloud.Order{Key: k, Operation: 1, Verb: edgecloud.Create})
	do(edgecloud.Order{Key: k, Operation: 1, Verb: edgecloud.Create})
	require.Equal(t, 1, s.twice)
	do(edgecloud.Order{Key: k, Operation: 2, Verb: edgecloud.Delete})
	require.Empty(t, s.present)
}
