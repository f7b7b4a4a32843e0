package blazar_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// counting is a store that counts the records that are read.
type counting struct {
	*watched
	read atomic.Int64
}

func (c *counting) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	list, err := c.watched.List(ctx, q)
	c.read.Add(int64(len(list)))
	return list, err
}

func (c *counting) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	c.read.Add(1)
	return c.watched.Get(ctx, key)
}

// What a look reads does not depend on how many leases have time; and what others
// do to events is seen by the next look.
func TestWhatALookReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{watched: watch()}
		s, other := blazar.New(store, nil), blazar.New(store, nil)
		look := func() (reads int64, handled []string) {
			before := store.read.Load()
			for _, h := range must(s.Process(t.Context()))(t) {
				handled = append(handled, fmt.Sprintf("%s %s %s", h.Lease, h.Type, h.Status))
			}
			return store.read.Load() - before, handled
		}
		_, none := look()
		require.Empty(t, none)
		day := 24 * time.Hour
		begin := time.Now()
		make := func(id string, start, end time.Duration) {
			must(other.CreateLease(t.Context(), id, blazar.LeaseSpec{Start: begin.Add(start), End: begin.Add(end)}))(t)
		}
		var idle, busy [2]int64
		for i, n := range []int{70, 140} { // both more than a page
			for j := range n {
				make(fmt.Sprintf("far %d %d", i, j), 300*day, 400*day)
			}
			idle[i], none = look()
			require.Empty(t, none)
			make(fmt.Sprint("now ", i), 0, 300*day)
			var got []string
			busy[i], got = look()
			require.Equal(t, []string{fmt.Sprintf("now %d start_lease DONE", i)}, got)
		}
		require.Equal(t, idle[0], idle[1])
		require.Equal(t, busy[0], busy[1])
		require.Less(t, busy[0], int64(200))

		// Put off, and brought forward.
		must(other.UpdateLease(t.Context(), "now 0", blazar.LeaseUpdate{End: begin.Add(time.Minute)}))(t)
		must(other.UpdateLease(t.Context(), "now 1", blazar.LeaseUpdate{End: begin.Add(time.Minute)}))(t)
		must(other.UpdateLease(t.Context(), "now 0", blazar.LeaseUpdate{End: begin.Add(2 * time.Minute)}))(t)
		time.Sleep(time.Minute)
		_, got := look()
		require.Equal(t, []string{"now 1 end_lease DONE"}, got)
		time.Sleep(time.Minute)
		_, got = look()
		require.Equal(t, []string{"now 0 end_lease DONE"}, got)
		store.ends(t)
	})
}

// A person overrides an event: it is tried again, or not at all.
func TestOverriddenEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := watch()
		s := blazar.New(store, nil)
		must(s.Process(t.Context()))(t)
		lease := must(s.CreateLease(t.Context(), "l", blazar.LeaseSpec{
			Start: time.Now().Add(time.Minute), End: time.Now().Add(time.Hour),
		}))(t)
		start := lease.Events[0].ID
		for _, to := range []blazar.EventState{blazar.EventError, blazar.EventUndone, blazar.EventDone, blazar.EventUndone} {
			must(s.Events.Override(t.Context(), start, to, blazar.Manager, "it is known better", nil))(t)
			noted, undone := store.calendar()
			require.Equal(t, undone, noted)
		}
		time.Sleep(time.Minute)
		handled := must(s.Process(t.Context()))(t)
		require.Len(t, handled, 1)
		require.Equal(t, blazar.EventDone, handled[0].Status)
		noted, undone := store.calendar()
		require.Equal(t, undone, noted)
	})
}

// Somebody has moved events past the service, whose calendar is wrong then. Within
// an hour every event that is due is found all the same, and what is not due is left.
func TestEventsThatHaveNoNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lifecycle.MemoryStore{}
		s := blazar.New(store, nil)
		must(s.Process(t.Context()))(t)
		begin := time.Now()
		for _, id := range []string{"sooner", "later"} {
			must(s.CreateLease(t.Context(), id, blazar.LeaseSpec{Start: begin.Add(10 * time.Minute), End: begin.Add(3 * time.Hour)}))(t)
		}
		past := lifecycle.Must(blazar.EventRecord, store, nil)
		set := func(lease string, at time.Duration) {
			for _, e := range must(s.GetLease(t.Context(), lease))(t).Events {
				if e.Type == blazar.StartLease {
					must(past.Fire(t.Context(), e.ID, blazar.Update, blazar.Manager, &lifecycle.Change[blazar.EventSpec]{
						Force: true, Edit: func(e *blazar.EventSpec) error { e.Time = begin.Add(at); return nil },
					}))(t)
				}
			}
			must(lifecycle.Must(blazar.Lease, store, nil).Override(t.Context(), lease, blazar.LeasePending, blazar.User, "moved by hand",
				&lifecycle.Change[blazar.LeaseSpec]{Edit: func(l *blazar.LeaseSpec) error { l.Start = begin.Add(at); return nil }}))(t)
		}
		set("sooner", 5*time.Minute)
		set("later", 20*time.Minute)
		when := map[string]time.Duration{}
		for range 90 {
			time.Sleep(time.Minute)
			for _, h := range must(s.Process(t.Context()))(t) {
				require.Equal(t, blazar.EventDone, h.Status, "%v", h.Err)
				when[h.Lease] = time.Since(begin)
			}
		}
		require.Equal(t, map[string]time.Duration{"sooner": time.Hour, "later": time.Hour}, when)
		notes := must(store.List(t.Context(), lifecycle.Query{Machine: "calendar", Limit: 10}))(t)
		for _, n := range notes {
			require.True(t, strings.HasSuffix(n.ID, blazar.EndLease), "%s is left", n.ID)
		}
		require.Len(t, notes, 2)
	})
}

// The longest id that a lease can have is not too long for what is made with it.
func TestLongestID(t *testing.T) {
	s := blazar.New(watch(), &blazar.Config{Notice: time.Minute})
	spec := blazar.LeaseSpec{End: time.Now().Add(time.Hour)}
	long := strings.Repeat("x", lifecycle.MaxID)
	for {
		_, err := s.CreateLease(t.Context(), long, spec)
		if err == nil {
			break
		}
		require.ErrorContains(t, err, "blazar: id: ")
		long = long[1:]
	}
	require.Greater(t, len(long), 150)
	require.NoError(t, s.DeleteLease(t.Context(), long))
}
