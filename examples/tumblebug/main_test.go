package main

import (
	"context"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// A canceled program returns an error and leaves no goroutine.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(ctx, io.Discard))
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOutput(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile("testdata/output.txt", []byte(out.String()), 0o666))
	}
	want, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func start(t *testing.T) *demo {
	c := newCloud()
	system, err := tumblebug.New(lifecycle.NewMemoryStore(), c, &tumblebug.Config{Poll: time.Millisecond})
	require.NoError(t, err)
	server := httptest.NewServer(tumblebug.Handler(system))
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, system.Close(context.WithoutCancel(t.Context())))
	})
	return &demo{out: io.Discard, clouds: c, system: system, url: server.URL}
}

// An unexpected result ends the program with an error.
func TestUnexpectedResults(t *testing.T) {
	d := start(t)
	d.createMci(t.Context(), "m", false, group("a", 1, "aws", "r"))
	d.rests(t.Context(), "m", "Running:1 (R:1/1)")
	require.NoError(t, d.err)
	d.rests(t.Context(), "m", "Suspended:1 (R:0/1)")
	require.EqualError(t, d.err, "m: status is Running:1 (R:1/1), want Suspended:1 (R:0/1)")
	d.err = nil
	d.post(t.Context(), "m?action=resume", 200)
	require.ErrorContains(t, d.err, "HTTP 403, want 200")
	d.err = nil
	d.rests(t.Context(), "none", "Failed")
	require.ErrorIs(t, d.err, lifecycle.ErrNotFound)
	d.err = nil
	d.verify()
	require.EqualError(t, d.err, "3 resources are left in the clouds")
	d = &demo{out: io.Discard, url: "http://%"}
	d.post(t.Context(), "m", 200)
	require.ErrorContains(t, d.err, "invalid URL")
}
