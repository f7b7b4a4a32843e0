package sqlstore

import (
	"fmt"
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
