package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The output does not depend on the load of the machine: time is virtual.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, 30*time.Second))
		if os.Getenv("UPDATE_DOCS") != "" {
			require.NoError(t, os.WriteFile("testdata/output.txt", []byte(out.String()), 0o666))
		}
		want, err := os.ReadFile("testdata/output.txt")
		require.NoError(t, err)
		require.Equal(t, string(want), out.String())
	})
}

func TestVerifyFindsFaults(t *testing.T) {
	ctx := t.Context()
	w := newWorld(io.Discard)
	defer w.close()
	p, err := w.start(ctx, "alpha", time.Minute)
	require.NoError(t, err)
	require.NoError(t, w.verify(ctx, p))
	w.create(ctx, p, "l", 0, 1, "host")
	require.ErrorContains(t, w.verify(ctx, p), "l is PENDING")
	_, err = p.StartLease(ctx, "l")
	require.NoError(t, err)
	_, err = p.EndLease(ctx, "l")
	require.NoError(t, err)
	require.NoError(t, w.verify(ctx, p))

	w.hosts.holders["host"] = "l"
	require.ErrorContains(t, w.verify(ctx, p), "l still has the host")
	require.NoError(t, w.hosts.start(ctx, "host", blazar.Allocation{Lease: "k"}))
	require.ErrorContains(t, w.verify(ctx, p), "k gets the host of l")
	w.hosts.holders, w.hosts.faults = map[string]string{}, nil

	_, err = p.Leases.Override(ctx, "l", blazar.LeaseActive, "operator", "test", nil)
	require.NoError(t, err)
	require.ErrorContains(t, w.verify(ctx, p), "l is ACTIVE; by its reservations and events it is TERMINATED")

	w.refused(nil, lifecycle.ErrPrecondition)
	require.ErrorContains(t, w.err, "want lifecycle: precondition failed")
}
