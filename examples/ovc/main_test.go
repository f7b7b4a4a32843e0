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
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The test runs in virtual time, so that a busy computer causes no timeout.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, time.Hour))
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
	require.ErrorIs(t, run(ctx, io.Discard, time.Hour), context.Canceled)
	require.ErrorIs(t, run(ctx, io.Discard, -time.Hour), lifecycle.ErrInvalid)
	d := &demo{out: io.Discard, hypervisor: newHypervisor(), cloud: ovc.Must(lifecycle.NewMemoryStore(), nil)}
	defer d.end(ctx)
	for _, step := range []func(context.Context){d.setUp, d.maintenance, d.unanswered, d.updates, d.retention, d.verify} {
		d.err = nil
		step(ctx)
		require.ErrorIs(t, d.err, context.Canceled)
	}
	require.ErrorIs(t, d.method(ctx, ovc.Call{Method: ovc.PutInMaintenance}), context.Canceled)
}

// The checks make the program fail, so they must find every fault.
func TestChecks(t *testing.T) {
	d := &demo{out: io.Discard, hypervisor: newHypervisor(), cloud: ovc.Must(lifecycle.NewMemoryStore(), nil)}
	defer d.end(t.Context())
	d.add(t.Context(), ovc.KindVM, "m1")
	d.verify(t.Context())
	require.EqualError(t, d.err, "the states are m1 VIRTUAL")
	d.err = nil
	d.refused(nil)
	require.EqualError(t, d.err, "a request was not refused")
}
