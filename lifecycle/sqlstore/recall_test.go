package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

func aRecord(id string, number int64, payload int) *remembered {
	return &remembered{lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: "m", ID: id}, State: "idle", Payload: lifecycle.RawPayload(make([]byte, payload)), Revision: lifecycle.Revision(fmt.Sprint(number)),
	}, number, 0}
}

// What is remembered is bounded, in records and in bytes, and what is used stays.
func TestRecentIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ records, payload, most int }{
		"records": {100, 0, 100},
		"bytes":   {1 << 20, 16 << 10, recallRoom / (16 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			recent := newRecent(c.records)
			used := aRecord("used", 1, 10)
			recent.keep(used, read)
			for i := range 1000 {
				recent.keep(aRecord(fmt.Sprint(i), 1, c.payload), read)
				_, ok := recent.recall(used.Key)
				require.True(t, ok, "after %d others", i)
			}
			require.LessOrEqual(t, len(recent.young)+len(recent.old), c.most+1)
			_, ok := recent.recall(aRecord("3", 1, 0).Key)
			require.False(t, ok)
			recent.keep(aRecord("used", 2, mostRecalled), read)
			_, ok = recent.recall(used.Key)
			require.False(t, ok, "a big record, and not the one before it")
			for i := range 1000 {
				recent.forget(aRecord(fmt.Sprint(i), 1, 0).Key)
			}
			require.Zero(t, recent.size)
		})
	}
}

// A reader does not bring an old record back, a conflict does.
func TestRecentKeepsTheNewer(t *testing.T) {
	recent := newRecent(10)
	number := func() int64 { return recent.young[aRecord("a", 0, 0).Key].number }
	recent.keep(aRecord("a", 2, 0), read)
	recent.keep(aRecord("a", 1, 0), read)
	require.EqualValues(t, 2, number())
	recent.keep(aRecord("a", 1, 0), lost)
	require.EqualValues(t, 1, number())
}

// What nobody can tell was written is not remembered, nor what was under way.
func TestUnknownIsForgotten(t *testing.T) {
	store := &Store{keeper: &keeper{l: MySQL.own("x", true)}, recent: newRecent(10)}
	store.recent.keep(&remembered{lifecycle.StoredRecord{Key: crane, State: "idle", Revision: "4-04000000000000000000000000000000"}, 4, 0}, read)
	c := moved()
	j := &job{c: c, steps: []step{{ch: &c.Changes[0], expect: 4}}}
	store.recallWritten(j, lifecycle.ErrUnknownOutcome)
	_, ok := store.Recall(crane)
	require.False(t, ok)
	store.recallWritten(j, nil) // written, but perhaps not by this call
	_, ok = store.Recall(crane)
	require.False(t, ok)
	j.made = true
	store.recallWritten(j, nil)
	r, ok := store.Recall(crane)
	require.True(t, ok)
	require.Equal(t, c.Changes[0].To, r)
}

// Where others move an object too, few attempts are made in vain; where they have
// stopped, and where it is only this process that is at it, none are for long.
func TestRecentDoubts(t *testing.T) {
	for name, c := range map[string]struct {
		turns string // whose, in a circle: o others, m mine
		vain  int    // attempts of a hundred of mine that come to nothing, at most
		saved int    // and reads that are saved, at least
	}{
		"mine alone":  {"m", 0, 99},
		"in turn":     {"om", 1, 0},
		"two of mine": {"omm", 26, 0},
		"runs":        {"o" + strings.Repeat("m", 20), 5, 75},
	} {
		t.Run(name, func(t *testing.T) {
			store := &Store{keeper: &keeper{l: MySQL.own("x", true)}, recent: newRecent(10)}
			now := lifecycle.StoredRecord{Key: crane, State: "idle", Revision: store.l.revision(1, []byte("sixteen bytes ok"))}
			next := func() *job {
				c := moved()
				n := store.l.number(now.Revision)
				c.Changes[0].Expect = now.Revision
				c.Changes[0].To.Revision = store.l.revision(n+1, []byte("sixteen bytes ok"))
				return &job{c: c, steps: []step{{ch: &c.Changes[0], expect: n}}, made: true}
			}
			mine, vain, saved := 0, 0, 0
			for i := 0; mine < 100; i++ {
				j := next()
				if c.turns[i%len(c.turns)] == 'o' {
					now = j.c.Changes[0].To
					continue
				}
				mine++
				switch r, ok := store.Recall(crane); {
				case !ok:
					store.recallRead(now)
				case r.Revision == now.Revision:
					saved++
				default:
					vain++
					late := next()
					late.made, late.c.Changes[0].Expect = false, r.Revision
					store.recallWritten(late, &lifecycle.ConflictError{Current: now})
				}
				store.recallWritten(j, nil)
				now = j.c.Changes[0].To
			}
			require.LessOrEqual(t, vain, c.vain)
			require.GreaterOrEqual(t, saved, c.saved)
		})
	}
}

// Who is late among the callers of one process is no reason to doubt, whoever of
// them is the first to tell.
func TestOwnConflictIsNoDoubt(t *testing.T) {
	for name, order := range map[string][]string{"winner first": {"won", "lost"}, "loser first": {"lost", "won"}} {
		t.Run(name, func(t *testing.T) {
			store := &Store{keeper: &keeper{l: MySQL.own("x", true)}, recent: newRecent(10)}
			before := lifecycle.StoredRecord{Key: crane, State: "idle", Revision: store.l.revision(4, []byte("sixteen bytes ok"))}
			store.recallRead(before)
			c := moved()
			c.Changes[0].Expect = before.Revision
			c.Changes[0].To.Revision = store.l.revision(5, []byte("sixteen bytes ok"))
			j := &job{c: c, steps: []step{{ch: &c.Changes[0], expect: 4}}, made: true}
			for _, what := range order {
				if what == "won" {
					store.recallWritten(j, nil)
				} else {
					store.recallWritten(j, &lifecycle.ConflictError{Current: c.Changes[0].To})
				}
			}
			r, ok := store.Recall(crane)
			require.True(t, ok)
			require.Equal(t, c.Changes[0].To.Revision, r.Revision)
		})
	}
}

// A database that was put back to an earlier time is believed.
func TestRecentOfAnOlderDatabase(t *testing.T) {
	recent := newRecent(10)
	key := aRecord("a", 0, 0).Key
	recent.keep(aRecord("a", 9, 0), wrote)
	back := aRecord("a", 4, 0)
	back.doubt = doubts
	recent.keep(back, lost)
	recent.keep(aRecord("a", 3, 0), read) // and then once more
	for range doubts {
		_, ok := recent.recall(key)
		require.False(t, ok)
		recent.keep(aRecord("a", 3, 0), read)
	}
	r, ok := recent.recall(key)
	require.True(t, ok)
	require.Equal(t, aRecord("a", 3, 0).StoredRecord, r)
}

// Of a quiet change nothing is remembered, whose record is written in part only;
// and an origin that was not said is read as the state.
func TestWrittenIsRememberedAsRead(t *testing.T) {
	store := &Store{keeper: &keeper{l: MySQL.own("x", true)}, recent: newRecent(10)}
	c := moved()
	c.Changes[0].To.Origin, c.Changes[0].Quiet = "", true
	j := &job{c: c, steps: []step{{ch: &c.Changes[0], expect: 4}}, made: true}
	store.recallWritten(j, nil)
	_, ok := store.Recall(crane)
	require.False(t, ok)
	c.Changes[0].Quiet = false
	store.recallWritten(j, nil)
	r, ok := store.Recall(crane)
	require.True(t, ok)
	require.Equal(t, "moving", r.Origin)
}

// Doubt outlasts the conflicts of this process' own callers.
func TestDoubtOutlastsConflicts(t *testing.T) {
	recent := newRecent(10)
	doubted := aRecord("a", 3, 0)
	doubted.doubt = doubts
	recent.keep(doubted, lost)
	recent.keep(aRecord("a", 4, 0), lost)
	_, ok := recent.recall(doubted.Key)
	require.False(t, ok)
}
