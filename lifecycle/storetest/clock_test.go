package storetest

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// clocked is a store with a clock of its own: the process' and how far it was
// moved.
type clocked struct {
	*bent
	ahead   time.Duration
	stamped map[stamp]time.Duration // how far it was at the commit
}

// stamp names a commit of one object.
type stamp struct {
	lifecycle.Key
	revision lifecycle.Revision
}

func newClocked() *clocked {
	c := &clocked{bent: newBent(), stamped: map[stamp]time.Duration{}}
	c.has.OwnClock = true
	c.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
		seen := *r
		c.show(&seen)
		return selects(q, &seen, now.Add(c.ahead))
	}, byID)
	c.eachChange(func(ch *lifecycle.StoredChange) {
		if ch.MetadataOnly { // what comes back was read from this clock, and is shown by it again
			ch.To.ChangedAt = ch.To.ChangedAt.Add(-c.ahead)
		}
	})
	history := c.history
	c.shown(func(r *lifecycle.StoredRecord) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.show(r)
	})
	c.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		rows, err := history(ctx, k, after, limit)
		for i := range rows {
			rows[i].At = rows[i].At.Add(c.stamped[stamp{k, rows[i].Revision}])
		}
		return rows, err
	}
	return c
}

func (c *clocked) show(r *lifecycle.StoredRecord) {
	if r.ChangedAt.IsZero() {
		return
	}
	at := stamp{r.Key, r.Revision}
	if _, known := c.stamped[at]; !known {
		c.stamped[at] = c.ahead
	}
	r.ChangedAt = r.ChangedAt.Add(c.stamped[at])
	if !r.Deadline.IsZero() {
		r.Deadline = r.Deadline.Add(c.stamped[at])
	}
}

func clockHarness() Harness {
	return Harness{
		New: func(testing.TB) lifecycle.Store { return newClocked() },
		Age: func(_ testing.TB, store lifecycle.Store, d time.Duration) {
			c := store.(*clocked)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ahead += d
		},
		Attempts: 20,
	}
}

func TestOwnClock(t *testing.T) {
	o := judge(t, clockHarness())
	require.Empty(t, o.failed)
	require.NotContains(t, o.skipped, "Time/filters_combine")
}

// A store whose clock stands still is found out.
func TestOwnClockIsAsked(t *testing.T) {
	h := clockHarness()
	h.Age = func(testing.TB, lifecycle.Store, time.Duration) {}
	o := judge(t, h, "Time/list_by_age", "Time/list_overdue", "Time/filters_combine")
	require.Equal(t, []string{"Time/filters_combine", "Time/list_by_age", "Time/list_overdue"}, slices.Sorted(maps.Keys(o.failed)))
}

// Where no clock can be moved, milliseconds and hours are all that is demanded.
func TestRealTime(t *testing.T) {
	real := func(f fault) outcome {
		h := f.harness(t)
		h.Synctest = false
		return judge(t, h, "Time/list_by_age", "Time/list_overdue", "Time/filters_combine",
			"Commit/fills_the_record", "Commit/deadline_counts_from_the_change")
	}
	o := real(fault{})
	require.Empty(t, o.failed)
	require.Equal(t, map[string]string{
		"Time/filters_combine": "An object is listed only if every filter of the query selects it, and pages are full nevertheless.\n" +
			"skipped: the store's clock cannot be moved",
	}, o.skipped)

	o = real(fault{plant: func(b *bent) {
		b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, _ time.Time) bool { return inStates(q, r) }, byID)
	}})
	require.Equal(t, []string{"Time/list_by_age", "Time/list_overdue"}, slices.Sorted(maps.Keys(o.failed)))
}
