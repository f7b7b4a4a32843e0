package sqltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// TestRecallOfTwoStores: two stores on one database move one object in turn and
// at once, each by what it remembers. Every success is one change, every change
// follows the one before, and a store never insists on what was a conflict.
func TestRecallOfTwoStores(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			db := pool(t, e.open(t))
			require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
			var stores []*sqlstore.Store
			for range 2 {
				store, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, store.Close()) })
				stores = append(stores, store)
			}
			ctx := t.Context()
			a, b := manage(stores[0]), manage(stores[1])
			made, err := a.Create(ctx, "two", place, customer, "one")
			require.NoError(t, err)
			key := lifecycle.Key{Machine: a.Machine().Table().Name, ID: "two"}

			for i := range 20 { // in turn, what either remembers is always over
				m := a
				if i%2 == 1 {
					m = b
				}
				rec, err := m.Fire(ctx, "two", note, customer, nil)
				require.NoError(t, err)
				require.Equal(t, made.Sequence+uint64(i)+1, rec.Sequence)
			}
			_, ok := stores[0].Recall(key)
			require.False(t, ok, "an object that is moved by others in turn is recalled")
			for range 1 + 3 { // the first finds it moved
				get(t, stores[0], key)
			}
			old, ok := stores[0].Recall(key)
			require.True(t, ok)
			_, err = b.Fire(ctx, "two", note, customer, nil)
			require.NoError(t, err)
			err = stores[0].Commit(ctx, next(old, 0))
			require.ErrorIs(t, err, lifecycle.ErrConflict)
			now := get(t, stores[0], key)
			require.NotEqual(t, old.Revision, now.Revision)
			_, ok = stores[0].Recall(key)
			require.False(t, ok, "after a conflict")
			for range 3 {
				get(t, stores[0], key)
			}
			r, ok := stores[0].Recall(key)
			require.True(t, ok)
			require.Equal(t, now, r)

			// Nothing of a transaction of the user's is remembered.
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			_, err = manage(stores[0].WithTx(tx)).Fire(ctx, "two", note, customer, nil)
			require.NoError(t, err)
			require.NoError(t, tx.Rollback())
			r, ok = stores[0].Recall(key)
			require.True(t, !ok || r.Revision == now.Revision)
			require.Equal(t, now, get(t, stores[0], key))

			var mu sync.Mutex
			won := map[uint64]bool{}
			var group sync.WaitGroup
			for w := range 8 {
				group.Go(func() {
					m := []*orders{a, b}[w%2]
					for range 25 {
						rec, err := m.Fire(ctx, "two", note, customer, nil)
						switch {
						case err == nil:
							mu.Lock()
							if won[rec.Sequence] {
								t.Errorf("two have won number %d", rec.Sequence)
							}
							won[rec.Sequence] = true
							mu.Unlock()
						case !errors.Is(err, lifecycle.ErrConflict):
							t.Error(fmt.Errorf("worker %d: %w", w, err))
						}
					}
				})
			}
			group.Wait()
			last := get(t, stores[1], key)
			require.Equal(t, now.Sequence+uint64(len(won)), last.Sequence)
			rows, err := stores[1].History(ctx, key, now.Sequence, 1000)
			require.NoError(t, err)
			require.Len(t, rows, len(won))
		})
	}
}
