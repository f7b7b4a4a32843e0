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
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The output is compared in virtual time, so that nothing is late because the
// computer is busy.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, 30*time.Second))
		if os.Getenv("UPDATE_DOCS") != "" {
			require.NoError(t, os.WriteFile("testdata/story.txt", []byte(out.String()), 0o666))
		}
		want, err := os.ReadFile("testdata/story.txt")
		require.NoError(t, err)
		require.Equal(t, string(want), out.String())
	})
}

// verify makes the program fail, so it must find every fault.
func TestVerifySeesWhatIsWrong(t *testing.T) {
	ctx := t.Context()
	s := &story{
		ctx: ctx, out: io.Discard, store: &lifecycle.MemoryStore{KeepHistory: -1},
		clock: &clock{now: time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)},
		hosts: &hosts{has: map[string]string{}, does: map[string]string{}, wake: make(chan struct{})},
	}
	defer s.end()
	p := s.process("alpha", time.Minute)
	require.NoError(t, s.verify(p))
	s.create(p, "l", 0, 1, "host")
	require.ErrorContains(t, s.verify(p), "l ended as PENDING")
	_, err := p.service.StartLease(ctx, "l")
	require.NoError(t, err)
	_, err = p.service.EndLease(ctx, "l")
	require.NoError(t, err)
	require.NoError(t, s.verify(p))

	s.hosts.has["host"] = "l"
	require.ErrorContains(t, s.verify(p), "l still has the host")
	s.hosts.wrong = []string{"l gets the host of k"}
	require.ErrorContains(t, s.verify(p), "l gets the host of k")
	s.hosts.has, s.hosts.wrong = map[string]string{}, nil

	_, err = p.service.Leases.Override(ctx, "l", blazar.LeaseActive, "operator", "test", nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(p), "l ended as ACTIVE")
	s.create(p, "k", 2, 3)
	require.NoError(t, p.service.DeleteLease(ctx, "l"))
	_, err = p.service.Leases.Override(ctx, "k", blazar.LeaseTerminated, "operator", "test", nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(p), "k is TERMINATED, and its reservations and events lead to PENDING")

	row := lifecycle.HistoryRow{From: "PENDING", FromOrigin: "PENDING", To: "STARTING", Event: "start", Actor: blazar.Manager}
	require.NoError(t, allowed(row))
	row.Actor = blazar.User
	require.ErrorIs(t, allowed(row), fsm.ErrWrongActor)
	row.Actor, row.To = blazar.Manager, "ACTIVE"
	require.ErrorIs(t, allowed(row), fsm.ErrNotAllowed)
}
