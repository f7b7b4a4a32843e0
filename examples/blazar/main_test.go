package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle"
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

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, io.Discard, time.Minute), context.Canceled)
}

func TestVerifyDetectsFaults(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	d := newDemo(io.Discard)
	defer d.heartbeats.Wait()
	defer stop()
	d.alpha, _ = d.start(ctx, "alpha", time.Minute)
	d.verify(ctx)
	require.NoError(t, d.err)

	d.create(ctx, "l", 0, 1, "host")
	d.verify(ctx)
	require.EqualError(t, d.err, "l ended in PENDING, not in TERMINATED")

	d.err = nil
	require.NoError(t, d.alpha.DeleteLease(ctx, "l"))
	require.NoError(t, d.call(ctx, "start", "host", "l"))
	require.EqualError(t, d.call(ctx, "start", "host", "k"), "l holds the host")
	d.verify(ctx)
	require.EqualError(t, d.err, "l still holds the host")

	d.err = nil
	d.refused(nil, lifecycle.ErrPrecondition)
	require.ErrorContains(t, d.err, "want lifecycle: precondition failed")
}
