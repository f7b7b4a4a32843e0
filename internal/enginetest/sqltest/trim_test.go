package sqltest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

const leastKept = 8 // rows of every object that Trim keeps at least

// onHistories runs a test on every engine, over the store's own history and over one of
// the user's.
func onHistories(t *testing.T, run func(t *testing.T, store lifecycle.Store, trim func(age time.Duration, keep int) (int, error), age func(d time.Duration))) {
	onEach(t, func(t *testing.T, e engine) {
		e = unhurried(e)
		t.Run("own", func(t *testing.T) {
			s := newStores(t, e, sqlstore.Config{})
			store := s.new(t).(*sqlstore.Store)
			run(t, store, func(age time.Duration, keep int) (int, error) { return store.Trim(t.Context(), age, keep) },
				func(d time.Duration) { s.age(t, store, d) })
		})
		t.Run("user's", func(t *testing.T) {
			s := usersStores{stores: *newStores(t, e, sqlstore.Config{})}
			store := s.new(t).(oneKind)
			run(t, store, func(age time.Duration, keep int) (int, error) { return store.Trim(t.Context(), age, keep) },
				func(d time.Duration) { s.age(t, store, d) })
		})
	})
}

// Trim removes old rows of several machines, oldest first, and keeps the newest rows of
// every object. The numbers of removed objects continue.
func TestTrim(t *testing.T) {
	onHistories(t, func(t *testing.T, store lifecycle.Store, trim func(time.Duration, int) (int, error), age func(time.Duration)) {
		sequences := func(key lifecycle.Key) (list []uint64) {
			rows, err := store.(lifecycle.Historian).History(t.Context(), key, 0, 10_000)
			require.NoError(t, err)
			for _, row := range rows {
				list = append(list, row.Sequence)
			}
			return list
		}
		upTo := func(from, to uint64) (list []uint64) {
			for n := from; n <= to; n++ {
				list = append(list, n)
			}
			return list
		}
		a, capital, b := lifecycle.Key{Machine: "crane", ID: "a"}, lifecycle.Key{Machine: "crane", ID: "A"}, lifecycle.Key{Machine: "truck", ID: "a"}
		move := func(key lifecycle.Key, times int) (last *lifecycle.Commit) {
			for range times {
				last = next(get(t, store, key), 0)
				require.NoError(t, store.Commit(t.Context(), last))
			}
			return last
		}
		move(a, 12)
		move(capital, 9)
		move(b, 20)
		gone := next(get(t, store, b), 0)
		gone.Changes[0].Remove, gone.Changes[0].To.State = true, "gone"
		require.NoError(t, store.Commit(t.Context(), gone))
		n, err := trim(time.Hour, 0)
		require.NoError(t, err)
		require.Zero(t, n, "nothing is old")
		age(2 * time.Hour)
		move(a, 3)

		n, err = trim(3*time.Hour, 0)
		require.NoError(t, err)
		require.Zero(t, n, "nothing is as old as that")
		n, err = trim(time.Hour, math.MaxInt)
		require.NoError(t, err)
		require.Zero(t, n, "all rows of every object stay")
		n, err = trim(time.Hour, 13)
		require.NoError(t, err)
		require.Equal(t, 2+8, n)
		require.Equal(t, upTo(3, 15), sequences(a))
		require.Equal(t, upTo(9, 21), sequences(b))
		n, err = trim(time.Hour, 1)
		require.NoError(t, err)
		require.Equal(t, 5+1+5, n, "eight of each stay")
		require.Equal(t, upTo(8, 15), sequences(a))
		require.Equal(t, upTo(2, 9), sequences(capital))
		require.Equal(t, upTo(14, 21), sequences(b))

		// Young rows stay, whatever their number.
		age(2 * time.Hour)
		move(a, 30)
		n, err = trim(time.Hour, 0)
		require.NoError(t, err)
		require.Equal(t, 8, n)
		require.Equal(t, upTo(16, 45), sequences(a))

		made := move(b, 1)
		require.EqualValues(t, 22, made.Changes[0].To.Sequence)
		require.NoError(t, store.Commit(t.Context(), made), "its row is there")
		_, err = trim(0, 100)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	})
}

// During Trim, other callers commit and get true answers.
func TestTrimWhileWriting(t *testing.T) {
	onHistories(t, func(t *testing.T, store lifecycle.Store, trim func(time.Duration, int) (int, error), _ func(time.Duration)) {
		done := make(chan struct{})
		var trimming, writers errgroup.Group
		trimming.Go(func() error {
			for {
				if _, err := trim(time.Microsecond, 0); err != nil {
					return fmt.Errorf("Trim: %w", err)
				}
				select {
				case <-done:
					return nil
				default:
				}
			}
		})
		for w := range 4 {
			writers.Go(func() error {
				key := lifecycle.Key{Machine: "crane", ID: fmt.Sprint(w / 2)}
				for won := 0; won < 60; {
					r, err := store.Get(t.Context(), key)
					if err == nil {
						err = store.Commit(t.Context(), next(r, 0))
					}
					switch {
					case err == nil:
						won++
					case !errors.Is(err, lifecycle.ErrConflict):
						return fmt.Errorf("Commit: %w", err)
					}
				}
				return nil
			})
		}
		require.NoError(t, writers.Wait())
		close(done)
		require.NoError(t, trimming.Wait())
		_, err := trim(time.Microsecond, 0)
		require.NoError(t, err)
		for _, id := range []string{"0", "1"} {
			key := lifecycle.Key{Machine: "crane", ID: id}
			rows, err := store.(lifecycle.Historian).History(t.Context(), key, 0, 1000)
			require.NoError(t, err)
			require.Len(t, rows, leastKept)
			require.EqualValues(t, 120, rows[len(rows)-1].Sequence)
			require.EqualValues(t, 120, get(t, store, key).Sequence)
		}
	})
}

const historyColumns = "machine, id, sequence, revision, token, operation, from_state, from_origin, to_state, origin, event, actor, reason, at"

// A Trim that has nothing to do reads neither the rows that are kept nor the young ones:
// only what has changed since the last Trim.
func TestTrimReadsWhatIsNew(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		way := unhurried(e).open(t)
		db := pool(t, way)
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		const objects, each = 1000, 2 * leastKept
		old, young := time.Now().Add(-240*time.Hour), time.Now().Add(-time.Hour)
		var rows []string
		for i := range objects {
			for n := range each { // half of the rows are old
				at := old
				if n >= each/2 {
					at = young
				}
				rows = append(rows, fmt.Sprintf("('order', 'id %d', %d, %d, 'sixteen bytes ok', 0, '', '', '', '', '', '', '', %d)", i, n+1, n+1, at.UnixMicro()))
			}
		}
		insert(t, e, db, "interlock_history", historyColumns, rows)
		o, heard := overhear(t, db, way.dsn)
		store, err := sqlstore.Open(t.Context(), heard, e.dialect, nil)
		require.NoError(t, err)
		defer store.Close()
		trim := func(age time.Duration) (deleted, read int) {
			o.all = nil
			deleted, err = store.Trim(t.Context(), age, 0)
			require.NoError(t, err)
			for _, q := range o.all {
				if strings.Contains(q.query, "older") {
					text := plan(t, e, db, q.query, q.args)
					require.True(t, deleted > 0 || strings.Contains(text, "history_at"), text)
					read += rowsRead(t, e, db, q.query, q.args)
				}
			}
			return deleted, read
		}
		deleted, read := trim(24 * time.Hour)
		require.Equal(t, objects*each/2, deleted)
		t.Logf("the first Trim: %d rows deleted, %d rows read to find them", deleted, read)
		deleted, read = trim(24 * time.Hour)
		require.Zero(t, deleted)
		require.Less(t, read, 50)
		t.Logf("the next Trim: %d rows read", read)
		// New rows push out the oldest ones, once these are old.
		for n := range 3 {
			exec(t, db, fmt.Sprintf("INSERT INTO interlock_history ("+historyColumns+") VALUES ('order', 'id 7', %d, 1, 'sixteen bytes ok', 0, '', '', '', '', '', '', '', %d)",
				each+n+1, time.Now().UnixMicro()))
		}
		deleted, read = trim(30 * time.Minute)
		require.Equal(t, 3, deleted)
		t.Logf("with three rows to delete: %d rows read", read)
		deleted, read = trim(30 * time.Minute)
		require.Zero(t, deleted)
		require.Less(t, read, 50)
	})
}

// A trigger, or another rule of the engine, may keep rows that Trim deletes. Trim then ends.
func TestTrimOfRowsThatStay(t *testing.T) {
	e := onSQLite()
	store, db := fresh(t, e)
	exec(t, db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"+
		" INSERT INTO interlock_history (machine, id, sequence, revision, token, operation, from_state, from_origin, to_state, origin, event, actor, reason, at)"+
		" SELECT 'order', n.i, s.i, s.i, x'00', 0, '', '', '', '', '', '', '', 1 FROM n JOIN n s ON s.i <= 9")
	exec(t, db, "CREATE TRIGGER keep BEFORE DELETE ON interlock_history BEGIN SELECT RAISE(IGNORE); END")
	deleted, err := store.Trim(t.Context(), time.Hour, 0)
	require.NoError(t, err)
	require.Zero(t, deleted)
}
