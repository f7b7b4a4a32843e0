package main

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	if err := run(context.Background(), os.Stdout, 100, time.Second/2); err != nil {
		panic(err)
	}
	// Output:
	// 100 VMs are deployed, by whichever process is asked
	// ann stops every fifth, and bob reboots the next
	// ann pauses some at beta, bob stops some at gamma; the hypervisor takes its time
	// bob asks for what ann is at, and for what has been stopped
	//   HTTP 409: lifecycle: do ovc-vm "vm-002": reboot by api in PAUSING: lifecycle: cannot execute action at this time
	//   HTTP 409: lifecycle: do ovc-vm "vm-000": pause by api in HALTED: fsm: not allowed
	// the agent does the rest by itself, and says so twice; once about an operation of yesterday
	//   its reports: 20 applied, 20 repeated, 20 stale
	// beta is killed, and gamma is paused, both in the middle
	//   vm-002 is PAUSING; the next move is owed by the process beta, which is alive
	// alpha finds 20 of beta and 20 of gamma, and puts them back
	// gamma comes back, and finishes what it was at
	//   20 of its outcomes are refused: the operations are not its own any more
	// in the end: 60 are RUNNING, 20 HALTED and 20 PAUSED, and every history is a path of the table
}

// verify is what makes the program fail, so it must see what is wrong.
func TestVerifySeesWhatIsWrong(t *testing.T) {
	ctx := t.Context()
	s := &story{ctx: ctx, out: io.Discard, n: 1, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	vms := lifecycle.New(ovc.VM, s.store, nil)
	_, err := vms.Add(ctx, id(0), ovc.API, struct{}{})
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(), "vm-000 ended in VIRTUAL, not in HALTED")
	_, err = vms.Override(ctx, id(0), ovc.Halted, "somebody", "to see whether it is seen", nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(), "(override)")
	require.NoError(t, path(history(ovc.Stop, ovc.API, "RUNNING", "STOPPING")))
	require.ErrorIs(t, path(history(ovc.Stop, ovc.Worker, "RUNNING", "STOPPING")), fsm.ErrWrongActor)
	require.ErrorContains(t, path(history(ovc.Stop, ovc.API, "RUNNING", "HALTED")), "is no row of the table")
}

// history is a history of an addition and one row.
func history(e ovc.Event, actor fsm.Actor, from, to string) []lifecycle.HistoryRow {
	return []lifecycle.HistoryRow{{}, {From: from, FromOrigin: from, To: to, Event: string(e), Actor: actor}}
}
