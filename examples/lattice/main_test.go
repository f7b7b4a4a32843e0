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
	b, err := newBackend(t.Context(), store)
	require.NoError(t, err)
	d := &demo{io.Discard, b}
	check := func() error { return verify(t.Context(), store, d) }
	require.EqualError(t, check(), "0 records exist, want 13")
	_, err = d.CreateSystem(t.Context(), "bank", nil)
	require.NoError(t, err)
	require.ErrorContains(t, check(), "lattice-system bank: state is")
	require.NoError(t, d.remove(t.Context(), "bank"))

	defer func(before map[string]string) { ends = before }(ends)
	ends = nil
	require.NoError(t, check())
	require.NoError(t, d.Actions().AcquireDeploy("shop", "d", lock.MustParse("/a")))
	require.EqualError(t, check(), "system shop has locks")
	require.NoError(t, d.Close(t.Context()))
}

// Every step returns the error of its request.
func TestErrors(t *testing.T) {
	b, err := newBackend(t.Context(), lifecycle.NewMemoryStore(), "held")
	require.NoError(t, err)
	d := &demo{io.Discard, b}
	require.ErrorIs(t, d.remove(t.Context(), "none"), lifecycle.ErrNotFound)
	require.ErrorIs(t, d.deploy(t.Context(), "none", "d", "/a"), lifecycle.ErrNotFound)
	require.ErrorIs(t, d.tearDown(t.Context(), "none", "t"), lifecycle.ErrNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.answer(ctx, "held", nil), context.Canceled)
	require.NoError(t, d.Close(t.Context()))
}
