package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// lens is a store that changes the records that are read.
type lens struct {
	*lifecycle.MemoryStore
	see func(*lifecycle.StoredRecord)
}

func (s *lens) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	rec, err := s.MemoryStore.Get(ctx, key)
	if s.see != nil {
		s.see(&rec)
	}
	return rec, err
}

// TestStoreWithoutTokens: a store that keeps no tokens of operations compares only their
// numbers.
func TestStoreWithoutTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lens{MemoryStore: lifecycle.NewMemoryStore(), see: func(r *lifecycle.StoredRecord) {
			r.Admission, r.ChangeToken = lifecycle.Token{}, lifecycle.Token{}
		}}
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		require.EqualValues(t, "running", wait(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil)).State)
		rec := fire(t, m, "a", "stop", user, nil)
		verdict, err := m.Report(t.Context(), "a", rec.Operation, "done", "worker", &lifecycle.Change[size]{Admission: lifecycle.NewToken()})
		require.NoError(t, err)
		require.Equal(t, lifecycle.Applied, verdict)
	})
}

// TestTimeInState: the time that an object was in a state is zero if the store does not
// have the time of the last change, or if its clock has gone back.
func TestTimeInState(t *testing.T) {
	for name, c := range map[string]struct {
		changed func(time.Time) time.Time
		want    time.Duration
	}{
		"the store has the time":       {func(at time.Time) time.Time { return at }, time.Minute},
		"the store does not have it":   {func(time.Time) time.Time { return time.Time{} }, 0},
		"the store's clock went back":  {func(at time.Time) time.Time { return at.Add(time.Hour) }, 0},
		"the object was in no state":   {nil, 0},
		"the change was just before":   {func(at time.Time) time.Time { return at.Add(time.Minute) }, 0},
		"the clock went back a little": {func(at time.Time) time.Time { return at.Add(time.Minute + 1) }, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			var last time.Duration
			store := &lens{MemoryStore: lifecycle.NewMemoryStore()}
			m := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{Observer: lifecycle.Observer{
				Changed: func(_ context.Context, c lifecycle.CommittedChange) { last = c.InState },
			}})
			create(t, m, "a", "import", user, size{})
			if c.changed != nil {
				store.see = func(r *lifecycle.StoredRecord) { r.ChangedAt = c.changed(r.ChangedAt) }
				time.Sleep(time.Minute)
				fire(t, m, "a", "touch", user, nil)
			}
			require.Equal(t, c.want, last)
		})
	}
}

// TestUnreadablePayloadAtOutcome: the payload becomes unreadable while the work runs. The
// outcome with an edit is not written, and the payload stays as it is.
func TestUnreadablePayloadAtOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lens{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			lifecycle.EditOutcome(ctx, func(s *size) error { s.N = 2; return nil })
			store.see = func(r *lifecycle.StoredRecord) { r.Payload = []byte(`"text"`) }
			return nil
		}), nil)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Succeeded, failed.Outcome)
		require.ErrorIs(t, failed.Unwritten, lifecycle.ErrForeign)
		store.see = nil
		now := get(t, m, "a")
		require.EqualValues(t, "starting", now.State)
		require.Equal(t, size{N: 1}, now.Payload)
	})
}
