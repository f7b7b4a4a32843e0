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

// The output is compared in virtual time, so that no process is declared dead
// because the computer is busy.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, 100, 30*time.Second))
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
	require.ErrorIs(t, run(ctx, io.Discard, 5, time.Minute), context.Canceled)
}

// verify makes the program fail, so it must find every fault.
func TestVerifyDetectsFaults(t *testing.T) {
	alpha, err := start(t.Context(), lifecycle.NewMemoryStore(), "alpha", time.Minute)
	require.NoError(t, err)
	defer alpha.close(t.Context())
	s := &service{out: io.Discard, n: 1, alpha: alpha}
	require.ErrorIs(t, s.verify(t.Context()), lifecycle.ErrNotFound)
	_, err = alpha.vms.Add(t.Context(), id(0), ovc.Virtual, ovc.API, struct{}{}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(t.Context()), "vm-000 ended in VIRTUAL, not in HALTED")
}
