package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// with is a change of a client's request.
func with(request string) *lifecycle.Change[string] {
	return &lifecycle.Change[string]{Request: lifecycle.RequestID{ID: request}}
}

// repeatedRow returns what a repeated request has done.
func repeatedRow(t *testing.T, err error) lifecycle.HistoryRow {
	t.Helper()
	require.ErrorIs(t, err, lifecycle.ErrRepeated)
	again, ok := errors.AsType[*lifecycle.RepeatedError](err)
	require.True(t, ok)
	return again.Row
}

// Two processes receive the same requests at the same moment: one of them does what is
// requested, once, and every other answer is that of this one. So is the answer of a
// process that starts later, until the history is trimmed.
func TestRequestsOfTwoProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		s := newStores(t, e, sqlstore.Config{})
		first := s.new(t)
		processes := []*orders{manage(first), manage(s.second(t, first))}
		all := func(call func(m *orders, i int) error) []error {
			errs := make([]error, 12)
			var calls sync.WaitGroup
			for i := range errs {
				calls.Go(func() { errs[i] = call(processes[i%2], i) })
			}
			calls.Wait()
			return errs
		}
		for round := range 5 {
			request := fmt.Sprint("r", round)
			require.Len(t, oneRow(t, all(func(m *orders, i int) error {
				_, err := m.Create(t.Context(), fmt.Sprint(request, "-", i), place, customer, "", with(request))
				return err
			})), 1)
		}
		list, err := first.List(t.Context(), lifecycle.Query{Machine: "order", Limit: 100})
		require.NoError(t, err)
		require.Len(t, list, 5)

		id := list[0].ID
		rows := oneRow(t, all(func(m *orders, _ int) error {
			_, err := m.Fire(t.Context(), id, note, customer, with("note"))
			return err
		}))
		require.Len(t, rows, 1)
		history, err := first.(*sqlstore.Store).History(t.Context(), list[0].Key, 0, 100)
		require.NoError(t, err)
		require.Len(t, history, 2)

		_, err = processes[1].Fire(t.Context(), id, drop, customer, nil)
		require.NoError(t, err)
		later := manage(s.second(t, first))
		_, err = later.Fire(t.Context(), id, note, customer, with("note"))
		require.Equal(t, history[1], repeatedRow(t, err))
		for range leastKept { // and the row of the request is none of the newest
			_, err = later.Create(t.Context(), id, place, customer, "", nil)
			require.NoError(t, err)
			_, err = later.Fire(t.Context(), id, drop, customer, nil)
			require.NoError(t, err)
		}
		s.age(t, first, time.Hour)
		_, err = first.(*sqlstore.Store).Trim(t.Context(), time.Minute, 1)
		require.NoError(t, err)
		_, err = processes[0].Create(t.Context(), id, place, customer, "", with("note"))
		require.NoError(t, err, "the row of the request was deleted")
	})
}

// oneRow requires that one call has succeeded, and returns the rows that the others had as
// answers, each once.
func oneRow(t *testing.T, errs []error) map[lifecycle.Token]bool {
	t.Helper()
	rows, accepted := map[lifecycle.Token]bool{}, 0
	for _, err := range errs {
		if err == nil {
			accepted++
			continue
		}
		rows[repeatedRow(t, err).Token] = true
	}
	require.Equal(t, 1, accepted)
	return rows
}

// A request in a transaction of the caller that another process makes meanwhile is written
// once. The transaction is rolled back if it does not see the row, and finds it when it runs again.
func TestRequestWithTx(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
		t.Run(level.String(), func(t *testing.T) {
			onEach(t, func(t *testing.T, e engine) {
				if !e.networked() {
					t.Skip("skipped: a transaction locks the database")
				}
				store, db := fresh(t, e)
				begin := func() *sql.Tx {
					tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
					require.NoError(t, err)
					return tx
				}
				tx := begin()
				m := lifecycle.Must(order, store.WithTx(tx), &lifecycle.Config[event]{BeforeCommit: func(ctx context.Context, _ *lifecycle.StoredChange) (*lifecycle.Tx, error) {
					_, err := manage(store).Create(ctx, "b", place, customer, "", with("r1"))
					return nil, err
				}})
				_, err := m.Create(t.Context(), "a", place, customer, "", with("r1"))
				if level == sql.LevelRepeatableRead {
					require.ErrorIs(t, err, sqlstore.ErrRollback)
					require.NoError(t, tx.Rollback())
					tx = begin()
				} else {
					require.Equal(t, "b", repeatedRow(t, err).ID)
				}
				_, err = manage(store.WithTx(tx)).Create(t.Context(), "a", place, customer, "", with("r1"))
				require.Equal(t, "b", repeatedRow(t, err).ID)
				_, err = manage(store.WithTx(tx)).Create(t.Context(), "a", place, customer, "", with("r2"))
				require.NoError(t, err, "the transaction can still be used")
				require.NoError(t, tx.Commit())
			})
		})
	}
}

// In a transaction of the caller, too, the row that has the request is the answer, if the
// transaction sees it. The transaction goes on.
func TestRequestOfAnotherRowWithTx(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		_, err := manage(store).Create(t.Context(), "a", place, customer, "", with("r1"))
		require.NoError(t, err)
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		view := store.WithTx(tx)
		c := next(get(t, view, lifecycle.Key{Machine: "order", ID: "b"}), 0)
		c.Changes[0].Request = "r1"
		require.Equal(t, "a", repeatedRow(t, view.Commit(t.Context(), c)).ID)
		c.Changes[0].Request = "r2"
		require.NoError(t, view.Commit(t.Context(), c))
		require.NoError(t, tx.Commit())
		require.Equal(t, "open", get(t, store, c.Changes[0].To.Key).State)
	})
}

// A history without its record is found in a transaction of the caller too, which would not end
// well if it ran again.
func TestHistoryWithoutRecordWithTx(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		create(t, manage(store), "a")
		exec(t, db, "DELETE FROM interlock_objects")
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		view := store.WithTx(tx)
		require.ErrorIs(t, view.Commit(t.Context(), next(get(t, view, orderA), 0)), sqlstore.ErrHistory)
	})
}
