package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The order of events differs from run to run. The final states do not.
func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, 60))
	require.Contains(t, out.String(), "undone by the controller: 6 creations, 6 updates and 2 deletions that failed\n")
	require.Regexp(t, `end: 38 of 60 clusters are Ready, 22 do not exist\n$`, out.String())
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, io.Discard, 5), context.Canceled)
}

// The program is a test of the library only if verify detects faults.
func TestVerifyDetectsFaults(t *testing.T) {
	mgr := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	u := &user{mgr: mgr, out: io.Discard, n: 2}
	require.ErrorIs(t, u.verify(t.Context()), lifecycle.ErrNotFound, "c-001 is missing")

	made, err := mgr.Create(t.Context(), "c-001", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Flavor: "small", Nodes: 1}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, u.verify(t.Context()), "c-001 ended in CreateRequested")

	_, err = mgr.Report(t.Context(), "c-001", made.Operation, edgecloud.Done, edgecloud.CRM, nil)
	require.NoError(t, err)
	require.NoError(t, u.verify(t.Context()))
}
