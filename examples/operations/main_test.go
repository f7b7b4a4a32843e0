package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
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
			require.NoError(t, os.WriteFile("testdata/story.txt", []byte(out.String()), 0o666))
		}
		want, err := os.ReadFile("testdata/story.txt")
		require.NoError(t, err)
		require.Equal(t, string(want), out.String())
	})
}

// verify makes the program fail, so it must find every fault.
func TestVerifyDetectsFaults(t *testing.T) {
	ctx := t.Context()
	s := &service{out: io.Discard, n: 1, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	vms := lifecycle.Must(ovc.VM, s.store, nil)
	_, err := vms.Add(ctx, id(0), ovc.API, struct{}{})
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(ctx), "vm-000 ended in VIRTUAL, not in HALTED")
	_, err = vms.Override(ctx, id(0), ovc.Halted, "operator", "test", nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(ctx), "(override)")
	require.NoError(t, path(history(ovc.Stop, ovc.API, "RUNNING", "STOPPING")))
	require.ErrorIs(t, path(history(ovc.Stop, ovc.Worker, "RUNNING", "STOPPING")), fsm.ErrWrongActor)
	require.ErrorContains(t, path(history(ovc.Stop, ovc.API, "RUNNING", "HALTED")), "is no row of the table")
}

// history returns a history of an addition and one row.
func history(e ovc.Event, actor fsm.Actor, from, to string) []lifecycle.HistoryRow {
	return []lifecycle.HistoryRow{{}, {From: from, FromOrigin: from, To: to, Event: string(e), Actor: actor}}
}
