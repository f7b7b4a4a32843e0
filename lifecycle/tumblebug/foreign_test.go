package tumblebug_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// A record that cannot be read keeps the sweep of another process from no other MCI.
func TestSweepWithForeignRecord(t *testing.T) {
	for _, foreign := range []lifecycle.Key{{Machine: "mci", ID: "aa/x"}, {Machine: "vm", ID: "aa/x/a-1"}} {
		t.Run(foreign.Machine, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store, clouds := t.Context(), lifecycle.NewMemoryStore(), newCloud()
				start := starts(t, store, clouds, nil)
				first, process, stop := start()
				clouds.delay = time.Hour // the VM is Creating when the first process dies
				for _, ns := range []string{"aa", "ns"} {
					_, err := first.CreateMci(ctx, ns, tumblebug.MciReq{Name: "x", SubGroups: []tumblebug.SubGroup{{Name: "a", Provider: "aws", Region: "r"}}})
					require.NoError(t, err)
				}
				time.Sleep(time.Second)
				process.Die(0)
				stop()
				scripttest.MakeForeign(t, store, foreign)
				second, _, end := start()
				defer end()
				for range 3 {
					time.Sleep(time.Hour)
					results, err := second.Sweep(ctx)
					for _, r := range results {
						err = errors.Join(err, r.Err)
					}
					require.ErrorIs(t, err, lifecycle.ErrForeign)
				}
				mci, err := second.MCIs().Get(ctx, "ns/x")
				require.NoError(t, err)
				require.Equal(t, tumblebug.Running, mci.State)
				end()
				require.NoError(t, second.Close(ctx))
			})
		})
	}
}
