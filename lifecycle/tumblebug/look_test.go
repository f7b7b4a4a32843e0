package tumblebug_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
	"github.com/interlock-go/interlock/queue"
)

// lookCloud is a cloud that calls a function before every request for a status. An error is
// the answer.
type lookCloud struct {
	*cloud
	look func(context.Context) error
}

func (c *lookCloud) Status(ctx context.Context, vm tumblebug.VMRef) (tumblebug.State, error) {
	if c.look != nil {
		if err := c.look(ctx); err != nil {
			return "", err
		}
	}
	return c.cloud.Status(ctx, vm)
}

// A request for the status of an MCI is cancelled before the provider has answered. That is
// not an answer that is missing: the VM is Undefined only after three of those.
func TestCancelledStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), &lookCloud{cloud: newCloud()}
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		createOne(t, s, 1)
		for range 4 {
			time.Sleep(5 * time.Second)
			impatient, cancel := context.WithCancel(ctx)
			clouds.look = func(ctx context.Context) error { cancel(); return ctx.Err() }
			_, err := s.GetMciStatus(impatient, "ns", "m")
			require.ErrorIs(t, err, context.Canceled)
		}
		clouds.look = func(context.Context) error { return errNoAnswer }
		for _, want := range []tumblebug.State{tumblebug.Running, tumblebug.Running, tumblebug.Undefined} {
			time.Sleep(5 * time.Second)
			status, err := s.GetMciStatus(ctx, "ns", "m")
			require.NoError(t, err)
			require.Equal(t, want, status.Vm[0].Status)
		}
		require.NoError(t, s.Close(ctx))
	})
}

// An action of a VM starts while its provider is requested for its status. The status of
// the VM is that of the action.
func TestActionDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), &lookCloud{cloud: newCloud()}
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		createOne(t, s, 1)
		clouds.shows["a-1"] = []tumblebug.State{tumblebug.Suspended}
		clouds.look = func(context.Context) error {
			clouds.look = nil
			_, err := s.HandleMciVmAction(ctx, "ns", "m", "a-1", "reboot", false)
			require.NoError(t, err)
			return nil
		}
		status, err := s.GetMciStatus(ctx, "ns", "m")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Rebooting, status.Vm[0].Status)
		require.Equal(t, "Running:1 (R:1/1)", wait(ctx, t, s).Status)
		require.NoError(t, s.Close(ctx))
	})
}

// A panic of the provider in a request for a status continues in the caller, and so does
// runtime.Goexit as a panic.
func TestStatusPanics(t *testing.T) {
	for name, end := range map[string]func(){
		"provider is broken": func() { panic("provider is broken") }, "runtime.Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, clouds := t.Context(), &lookCloud{cloud: newCloud()}
				s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
				createOne(t, s, 2)
				clouds.look = func(context.Context) error { end(); return nil }
				func() {
					defer func() {
						panicked, ok := recover().(*queue.PanicError)
						require.True(t, ok)
						require.ErrorContains(t, panicked, name)
					}()
					_, _ = s.GetMciStatus(ctx, "ns", "m")
				}()
				clouds.look = nil
				require.Equal(t, "Running:2 (R:2/2)", wait(ctx, t, s).Status)
				require.NoError(t, s.Close(ctx))
			})
		})
	}
}
