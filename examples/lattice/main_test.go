package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// A canceled program returns an error and leaves no goroutine.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(ctx, io.Discard))
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOutput(t *testing.T) {
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

// verify makes the program fail, so it must find every fault.
func TestVerify(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	p, err := start(t.Context(), io.Discard, store)
	require.NoError(t, err)
	check := func() error { return verify(t.Context(), store, p) }
	require.EqualError(t, check(), "0 records exist, want 13")
	_, err = p.CreateSystem(t.Context(), "bank", nil)
	require.NoError(t, err)
	require.ErrorContains(t, check(), "lattice-system bank: state is")
	require.NoError(t, p.remove(t.Context(), "bank"))

	defer func(before map[string]string) { ends = before }(ends)
	ends = nil
	require.NoError(t, check())
	require.NoError(t, p.Actions().AcquireDeploy("shop", "d", lock.MustParse("/a")))
	require.EqualError(t, check(), "system shop has locks")
	require.NoError(t, p.Close(t.Context()))
}

// Every step returns the error of its request.
func TestErrors(t *testing.T) {
	p, err := start(t.Context(), io.Discard, lifecycle.NewMemoryStore(), "held")
	require.NoError(t, err)
	require.ErrorIs(t, p.remove(t.Context(), "none"), lifecycle.ErrNotFound)
	require.ErrorIs(t, p.deploy(t.Context(), "none", "d", "/a"), lifecycle.ErrNotFound)
	require.ErrorIs(t, p.tearDown(t.Context(), "none", "t"), lifecycle.ErrNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.answer(ctx, "held", nil), context.Canceled)
	require.NoError(t, p.Close(t.Context()))
}
