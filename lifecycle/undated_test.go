package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestSweepUndated: a transitional object without a deadline, whose state has one in the
// table, gets the table's, whether its owner is alive or it has none. Explain names the
// same moment, and the same cause as the sweep.
func TestSweepUndated(t *testing.T) {
	for name, owner := range map[string]string{"without an owner": "", "its owner is alive": "p"} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			epoch := join(t, store, "p", time.Hour).Epoch()
			if owner == "" {
				epoch = 0
			}
			m := lifecycle.Must(lonely, store, nil)
			for id, state := range map[string]string{"minute": "moving", "hour": "stuck", "lost": "stuck"} {
				origin := "old"
				if id == "lost" { // the table has no deadline for its origin
					origin = "new"
				}
				plant(t, store, lifecycle.StoredRecord{
					Key: lifecycle.Key{Machine: "lonely", ID: id}, State: state, Origin: origin, Owner: owner, Epoch: epoch,
				})
			}
			expected := map[string]string{
				"minute": "deadline 2000-01-01T00:01:00Z has passed", "hour": "deadline 2000-01-01T01:00:00Z has passed",
			}
			sweeps := func() map[string]string {
				causes := map[string]string{}
				for _, r := range sweep(t, m) {
					if r.ID != "lost" {
						require.Equal(t, lifecycle.Moved, r.Resolution, "%v", r)
						causes[r.ID] = r.Cause
						rows := rowsOf(t, m, r.ID, 1, 0)
						require.Equal(t, r.Cause, rows[0].Reason)
					}
				}
				return causes
			}
			x := explain(t, m, "minute")
			require.Empty(t, x.Cause)
			require.Equal(t, time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC), x.Deadline)
			require.Equal(t, "after 1m0s the sweeper fires late: the object moves to old; "+
				"the record has no deadline, so it counts from the last change", x.Then)

			time.Sleep(time.Minute - 1)
			require.Empty(t, sweeps())
			time.Sleep(2 * time.Nanosecond)
			require.Equal(t, expected["minute"], explain(t, m, "minute").Cause)
			require.Equal(t, map[string]string{"minute": expected["minute"]}, sweeps())
			time.Sleep(time.Hour)
			require.Equal(t, expected["hour"], explain(t, m, "hour").Cause)
			require.Equal(t, map[string]string{"hour": expected["hour"]}, sweeps())
		})
	}
}

// TestSweepWaiting: an operation that waits for its turn has no deadline while its owner
// is alive. If the owner is dead, the sweep finds it at once.
func TestSweepWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner := join(t, store, "p", time.Hour)
		m := lifecycle.Must(lonely, store, nil)
		plant(t, store, lifecycle.StoredRecord{
			Key: lifecycle.Key{Machine: "lonely", ID: "a"}, State: "moving", Origin: "new",
			Owner: "p", Epoch: owner.Epoch(), WorkOptions: []byte(`{"waiting":true}`),
		})
		time.Sleep(time.Hour)
		require.NoError(t, owner.Heartbeat(t.Context()))
		require.Empty(t, sweep(t, m))
		x := explain(t, m, "a")
		require.Zero(t, x.Deadline)
		require.Empty(t, x.Cause)
		require.Equal(t, "the process p, which is alive; the work waits for its turn", x.NextMove)

		require.NoError(t, owner.Leave(t.Context()))
		x = explain(t, m, "a")
		require.Equal(t, `owner "p" of epoch 1 is dead`, x.Cause)
		require.Equal(t, "the next sweep fires late: the object moves to old", x.NextMove)
		require.False(t, x.Deadline.IsZero())
		found := sweep(t, m)
		require.Len(t, found, 1)
		require.Equal(t, lifecycle.Moved, found[0].Resolution)
		require.Equal(t, `owner "p" of epoch 1 is dead`, found[0].Cause)
	})
}

// timeless is a store that does not keep the time of changes, as an existing table without a
// column for it. With nulls it has the column, and other programs have left it empty.
type timeless struct {
	*lifecycle.MemoryStore
	nulls bool
}

func (s timeless) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, key)
	r.ChangedAt = time.Time{}
	return r, err
}

func (s timeless) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	switch {
	case q.UnchangedFor > 0 && s.nulls:
		return nil, nil
	case q.UnchangedFor > 0:
		return nil, errors.ErrUnsupported
	}
	found, err := s.MemoryStore.List(ctx, q)
	for i := range found {
		found[i].ChangedAt = time.Time{}
	}
	return found, err
}

// TestSweepUndatedWithoutAge: an object without a deadline whose last change has no time is
// stuck, by the same cause for Stuck, Sweep and Explain. A sweep moves it only once it has a
// deadline.
func TestSweepUndatedWithoutAge(t *testing.T) {
	for name, nulls := range map[string]bool{"no column for the time": false, "the time is NULL": true} {
		inBubble(t, name, func(t *testing.T) {
			store := timeless{lifecycle.NewMemoryStore(), nulls}
			m := lifecycle.Must(lonely, store, nil)
			plant(t, store, lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "lonely", ID: "a"}, State: "moving", Origin: "old"})
			time.Sleep(24 * time.Hour)

			x := explain(t, m, "a")
			require.Zero(t, x.Deadline)
			require.Empty(t, x.Then)
			require.Equal(t, "the operation has neither an owner nor a deadline", x.Cause)
			require.Equal(t, "an operator: the object has no deadline", x.NextMove)

			stuck, err := lifecycle.Stuck(t.Context(), m, 0)
			require.NoError(t, err)
			for what, found := range map[string][]lifecycle.SweepResult{"Stuck": stuck, "Sweep": sweep(t, m)} {
				require.Len(t, found, 1, what)
				require.Equal(t, `lonely "a" in moving, operation 1: needs an operator, because `+x.Cause, found[0].String(), what)
			}

			override(t, m, "a", "moving", "operator", "it gets a deadline", nil)
			require.Empty(t, sweep(t, m))
			time.Sleep(time.Minute + 1)
			found := sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, lifecycle.Moved, found[0].Resolution)
		})
	}
}

// TestSweepOfADeadOwnerWithoutAge: the owner of the operation is dead, and its last change has
// no time. Explain describes what the next sweep does.
func TestSweepOfADeadOwnerWithoutAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := timeless{lifecycle.NewMemoryStore(), false}
		m := lifecycle.Must(lonely, store, nil)
		plant(t, store, lifecycle.StoredRecord{
			Key: lifecycle.Key{Machine: "lonely", ID: "a"}, State: "moving", Origin: "old", Owner: "p", Epoch: 1,
		})
		x := explain(t, m, "a")
		require.Equal(t, "the next sweep fires late: the object moves to old", x.NextMove)
		require.Equal(t, "after 1m0s the sweeper fires late: the object moves to old", x.Then)
		require.Equal(t, lifecycle.Moved, sweep(t, m)[0].Resolution)
	})
}
