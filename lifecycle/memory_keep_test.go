package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

// KeepHistory rows are kept of each object, the newest, oldest first; and so far
// back a commit is known.
func TestMemoryStoreKeepsHistory(t *testing.T) {
	for _, test := range []struct{ keep, kept int }{{1, 1}, {2, 2}, {7, 7}, {0, 32}, {-1, 100}} {
		t.Run(fmt.Sprint(test.keep), func(t *testing.T) {
			ctx := t.Context()
			m := memory{&lifecycle.MemoryStore{KeepHistory: test.keep}, t}
			var commits []*lifecycle.Commit
			want := []uint64{}
			for n := uint64(1); n <= 100; n++ {
				c := m.to("a", fmt.Sprint("state ", n%3))
				require.NoError(t, m.Commit(ctx, c))
				commits = append(commits, c)
				want = append(want, n)
				if len(want) > test.kept {
					want = want[1:]
				}
				require.Equal(t, want, m.rows("a"))
				m.put("b", "idle") // has rows of its own
			}
			last := m.get("a")
			for i, c := range commits {
				twin := *c
				if i < 100-test.kept {
					require.ErrorIs(t, m.Commit(ctx, &twin), lifecycle.ErrConflict, "commit %d is forgotten", i+1)
				} else {
					require.NoError(t, m.Commit(ctx, &twin), "commit %d is known", i+1)
				}
			}
			require.Equal(t, last, m.get("a"))
		})
	}
}

// A request is known as long as its history row.
func TestMemoryStoreForgetsRequests(t *testing.T) {
	for name, test := range map[string]struct {
		keep   int
		forget func(m memory)
	}{
		"more history":    {1, func(m memory) { m.put("a", "moving") }},
		"removed objects": {2, func(m memory) { m.put("a", ""); m.put("b", "idle"); m.put("b", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			store := &lifecycle.MemoryStore{KeepHistory: test.keep}
			m := memory{store.KeepRemoved(1), t}
			requesting := func() error {
				c := m.to("a", "idle")
				c.Changes[0].Request = "r"
				return m.Commit(t.Context(), c)
			}
			require.NoError(t, requesting())
			require.ErrorIs(t, requesting(), lifecycle.ErrRepeated)
			test.forget(m)
			require.NoError(t, requesting())
		})
	}
}

// A commit of several changes is recognized while the history of each object has it.
func TestMemoryStoreForgetsCommitOfSeveral(t *testing.T) {
	ctx := t.Context()
	for forgetful := range 2 {
		m := memory{&lifecycle.MemoryStore{KeepHistory: 3}, t}
		ids := []string{"a", "b"}
		c := m.to(ids[0], "idle")
		c.Changes = append(c.Changes, m.to(ids[1], "idle").Changes...)
		require.NoError(t, m.Commit(ctx, c))
		twin := *c
		for range 2 {
			require.NoError(t, m.Commit(ctx, &twin))
			m.put(ids[forgetful], "moving")
		}
		m.put(ids[forgetful], "moving")
		require.ErrorIs(t, m.Commit(ctx, &twin), lifecycle.ErrConflict)
	}
}

// The objects of the last removals are known, with history and
// numbers. Those of others are as if they had never been, but for the numbers.
func TestMemoryStoreForgetsRemoved(t *testing.T) {
	const removed = 40
	for _, keep := range []int{-1, 1, 3, removed - 1, removed} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			m := memory{new(lifecycle.MemoryStore).KeepRemoved(keep), t}
			for i := range removed {
				id := fmt.Sprint(i)
				for range removed - i { // the first have the highest numbers
					m.put(id, "idle")
				}
				m.put(id, "")
			}
			m.put("there", "idle") // which removals never touch
			for i := range removed {
				left := m.get(fmt.Sprint(i))
				require.False(t, left.Exists())
				if known := i >= removed-max(keep, 0); known {
					require.Len(t, m.rows(left.ID), min(removed-i+1, 32))
					continue
				}
				require.Empty(t, m.rows(left.ID))
				require.GreaterOrEqual(t, left.Sequence, uint64(removed+1), "above every forgotten key")
			}
			require.Len(t, m.rows("there"), 1)
			recent, err := m.Recent(t.Context(), m.get("there").Machine, time.Hour, "", lifecycle.MaxPage)
			require.NoError(t, err)
			require.Len(t, recent, max(keep, 0)+1)
		})
	}
}

// An object that changes again is a recent one, however old the changes of others are.
func TestMemoryStoreRecentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory{lifecycle.NewMemoryStore(), t}
		m.put("a", "idle")
		m.put("b", "idle")
		time.Sleep(time.Hour)
		m.put("a", "moving")
		recent, err := m.Recent(t.Context(), m.get("a").Machine, time.Minute, "", lifecycle.MaxPage)
		require.NoError(t, err)
		require.Equal(t, []lifecycle.ChangedObject{{ID: "a", Sequence: 2}}, recent)
	})
}

func TestMemoryStoreKeepsRemovedByDefault(t *testing.T) {
	m := memory{lifecycle.NewMemoryStore(), t}
	for i := range 1024 {
		m.put(fmt.Sprint(i), "idle")
		m.put(fmt.Sprint(i), "")
	}
	require.Equal(t, []uint64{1, 2}, m.rows("0"))
	m.put("one more", "idle")
	require.Equal(t, []uint64{1, 2}, m.rows("0"))
	m.put("one more", "")
	require.Empty(t, m.rows("0"))
	require.Equal(t, []uint64{1, 2}, m.rows("1"))
}

// An object that is removed again and again is one removed object.
func TestMemoryStoreCountsRemovedObjects(t *testing.T) {
	m := memory{new(lifecycle.MemoryStore).KeepRemoved(2), t}
	for _, id := range []string{"a", "b"} {
		m.put(id, "idle")
		m.put(id, "")
	}
	for range 10 {
		m.put("b", "idle")
		m.put("b", "")
		m.put("b", "") // created and removed at once
	}
	require.Equal(t, []uint64{1, 2}, m.rows("a"))
	m.put("a", "idle")
	m.put("a", "")
	m.put("c", "")
	require.Len(t, m.rows("a"), 4)
	require.Empty(t, m.rows("b"), "its removal is the oldest")
}

// A commit may create and remove at once.
func TestMemoryStoreRemovesWhatWasNot(t *testing.T) {
	m := memory{lifecycle.NewMemoryStore(), t}
	m.put("b", "idle")
	m.put("a", "")
	require.Equal(t, []uint64{1}, m.rows("a"))
	list, err := m.List(t.Context(), lifecycle.Query{Machine: "m", Limit: 2})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "b", list[0].ID)
}

// An object that was made again is not forgotten for its old removal.
func TestMemoryStoreRemembersTheRisen(t *testing.T) {
	m := memory{new(lifecycle.MemoryStore).KeepRemoved(2), t}
	m.put("a", "idle")
	m.put("a", "")
	m.put("a", "idle")
	for i := range 10 {
		m.put(fmt.Sprint(i), "idle")
		m.put(fmt.Sprint(i), "")
	}
	require.Equal(t, []uint64{1, 2, 3}, m.rows("a"))
	m.put("a", "")
	m.put("b", "idle")
	m.put("b", "")
	require.Equal(t, []uint64{1, 2, 3, 4}, m.rows("a"), "its second removal is one of the last two")
}

// Operation numbers go on too, where they are ahead of the sequence.
func TestMemoryStoreForgetsNoOperation(t *testing.T) {
	m := memory{new(lifecycle.MemoryStore).KeepRemoved(-1), t}
	c := m.to("a", "idle")
	c.Changes[0].To.Operation = 1000
	require.NoError(t, m.Commit(t.Context(), c))
	m.put("a", "")
	require.Equal(t, lifecycle.OpID(1000), m.get("a").Operation)
	require.Equal(t, lifecycle.OpID(1001), m.put("a", "idle").Operation)
}

// Whatever is forgotten when: no sequence or operation number and no revision of
// a key comes twice, and what was decided on an old record is refused.
func TestMemoryStoreNeverRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := &lifecycle.MemoryStore{KeepHistory: rapid.SampledFrom([]int{1, 2, 0}).Draw(t, "history")}
		m := memory{store.KeepRemoved(rapid.SampledFrom([]int{-1, 1, 2, 3}).Draw(t, "removed")), t}
		type past struct {
			last      lifecycle.StoredRecord
			revisions map[lifecycle.Revision]bool // of all commits
			commits   []*lifecycle.Commit
		}
		pasts := map[string]*past{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")
			p := pasts[id]
			if p == nil {
				p = &past{revisions: map[lifecycle.Revision]bool{}}
				pasts[id] = p
			}
			c := m.to(id, rapid.SampledFrom([]string{"idle", "moving", ""}).Draw(t, "state"))
			ch := &c.Changes[0]
			if ch.From == "" && ch.Remove {
				continue
			}
			require.NoError(t, m.Commit(context.Background(), c))
			require.Greater(t, ch.To.Sequence, p.last.Sequence)
			require.GreaterOrEqual(t, ch.To.Operation, p.last.Operation)
			if ch.From == "" {
				require.Greater(t, ch.To.Operation, p.last.Operation)
			}
			require.False(t, p.revisions[ch.To.Revision], "revision %q", ch.To.Revision)
			p.revisions[ch.To.Revision] = true
			p.last = ch.To
			p.commits = append(p.commits, c)

			old := *rapid.SampledFrom(p.commits).Draw(t, "old")
			old.Token = lifecycle.NewToken()
			require.ErrorIs(t, m.Commit(context.Background(), &old), lifecycle.ErrConflict)
		}
	})
}
