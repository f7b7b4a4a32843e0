package main

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// vm-1: DESTROYING, migrate runs, destroy waits
	// vm-1: stop refused: vm-1 is DESTROYING; migrate runs, 1 waiting
	// vm-1: DESTROYED
	// disk-1: detach from vm-2, attach to vm-3
	// seoul: 3 VMs created, at most 2 at once
	// tokyo: 3 VMs created, at most 2 at once
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, io.Discard), context.Canceled)
}

// The program is a test of the queue only if it detects faults.
func TestDetectsFaults(t *testing.T) {
	s := &service{}
	s.state.Store("vm-1", "RUNNING")
	require.NoError(t, s.verify("vm-1", "RUNNING"))
	require.EqualError(t, s.verify("vm-1", "STOPPED"), "vm-1 ended in RUNNING, not in STOPPED")
	detach := s.exclusive("detach", []string{"disk-1"}, func() {})
	var during error
	attach := s.exclusive("attach", []string{"disk-1", "vm-1"}, func() { during = detach(t.Context()) })
	require.NoError(t, attach(t.Context()))
	require.EqualError(t, during, "disk-1: detach runs during attach")
	require.NoError(t, detach(t.Context()))
}
