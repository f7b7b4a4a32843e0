package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The story, told in virtual time, so that nothing is too slow for it.
func TestStory(t *testing.T) {
	want, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		require.Equal(t, string(want), out.String())
	})
}

// verify is what makes the program fail, so it must see what is wrong.
func TestVerifySeesWhatIsWrong(t *testing.T) {
	s := &story{ctx: t.Context(), out: io.Discard, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	b := s.process()
	require.NoError(t, s.err)
	require.ErrorContains(t, s.verify(b), "0 objects are left, not 13")
	s.system(b, "bank")
	require.ErrorContains(t, s.verify(b), "lattice-system bank ended in stable")
	s.delete(b, "bank")
	s.system(b, "shop")
	require.ErrorContains(t, s.verify(b), "1 objects are left")

	s.deployed(b, "shop", "d1", "/a")
	require.ErrorContains(t, s.verify(b), "lattice-deploy shop/d1 ended in succeeded")
	_, err := b.Deploys().Override(t.Context(), "shop/d1", lattice.ActionFailed, "somebody", "to see whether it is seen", nil)
	require.NoError(t, err)
	require.ErrorContains(t, s.verify(b), "(override)")

	table := lattice.System.Table()
	require.NoError(t, path(table, history(lattice.Delete, lattice.User, "stable", "deleting")))
	require.ErrorIs(t, path(table, history(lattice.Delete, lattice.Backend, "stable", "deleting")), fsm.ErrWrongActor)
	require.ErrorContains(t, path(table, history(lattice.Delete, lattice.User, "stable", "failed")), "is no row of the table")
}

// A lock that nobody gives back makes the program fail.
func TestVerifySeesALock(t *testing.T) {
	var out strings.Builder
	s := &story{ctx: t.Context(), out: &out, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	b := s.process()
	require.NoError(t, s.err)
	defer func(before map[lifecycle.Key]string) { ends = before }(ends)
	ends = nil
	require.NoError(t, s.verify(b))
	require.NoError(t, b.Actions().AcquireDeploy("shop", "d", lock.MustParse("/a")))
	require.ErrorContains(t, s.verify(b), "locks of shop are left")
}

// A story that goes wrong ends there, with the first error.
func TestStoryEndsAtTheFirstError(t *testing.T) {
	var out strings.Builder
	s := &story{ctx: t.Context(), out: &out, store: &lifecycle.MemoryStore{}}
	b := s.process()
	s.delete(b, "nobody")
	require.ErrorIs(t, s.err, lifecycle.ErrNotFound)
	s.system(b, "shop")
	s.deployed(b, "shop", "d1", "/a")
	require.ErrorIs(t, s.verify(b), lifecycle.ErrNotFound)
	require.Empty(t, out.String())
}

// history is a history of one row.
func history(e lattice.Event, actor fsm.Actor, from, to string) []lifecycle.HistoryRow {
	return []lifecycle.HistoryRow{{From: from, FromOrigin: from, To: to, Event: string(e), Actor: actor}}
}
