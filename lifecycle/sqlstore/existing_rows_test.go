package sqlstore

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// existingCranes opens a store whose cranes are in a table of another program, without the
// checks of that table.
func existingCranes(t *testing.T, types map[string]Type, answer func(string, []driver.NamedValue) reply) *Store {
	store, _, _ := opened(t, MySQL, nil, answer)
	cranes := ExistingTable{Machine: "crane", Table: "cranes", Micros: true, Types: types, Columns: ColumnMap{
		ID: "id", State: "state", Revision: "revision", Sequence: "sequence", Operation: "operation", Payload: "payload",
	}}
	l, err := cranes.layout(store.e, store.own)
	require.NoError(t, err)
	l.st = store.e.compile(l)
	store.layouts = append(store.layouts, l)
	return store
}

// Another program may have written negative numbers into a history. A new record then begins
// with the numbers of a record that never existed.
func TestNegativeNumbers(t *testing.T) {
	store := existingCranes(t, nil, func(query string, _ []driver.NamedValue) reply {
		if !strings.Contains(query, "EXISTS") {
			return reply{} // the table has no row
		}
		return reply{rows: [][]driver.Value{{
			"crane", "a", int64(-1), int64(2), int64(-1), "", "", "", "", nil, "on", "on", "off", "off", int64(5), nil, nil, int64(0),
		}}}
	})
	r, err := store.Get(t.Context(), crane)
	require.NoError(t, err)
	require.Equal(t, lifecycle.Revision("0"), r.Revision)
	require.EqualValues(t, 0, r.Operation)
	require.EqualValues(t, 2, r.Sequence)
}

// An empty text in a payload column with a type is no payload.
func TestEmptyTypedPayload(t *testing.T) {
	store := existingCranes(t, map[string]Type{"payload": JSON}, func(string, []driver.NamedValue) reply {
		return reply{rows: [][]driver.Value{{"a", "on", int64(5), int64(2), int64(1), "", int64(0)}}}
	})
	r, err := store.Get(t.Context(), crane)
	require.NoError(t, err)
	require.Nil(t, r.Payload)
}

// Close waits for a call that reads the schema, because the engine did not know a name.
func TestCloseWaitsForTheSchema(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Store) error{
		"get":    func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, crane); return err },
		"commit": func(ctx context.Context, s *Store) error { return s.Commit(ctx, moved()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads, answer := make(chan struct{}), make(chan struct{})
				store, _, db := opened(t, Postgres, nil, func(query string, _ []driver.NamedValue) reply {
					switch {
					case strings.Contains(query, "pg_attribute"):
						reads <- struct{}{}
						<-answer
						return reply{}
					case query == "BEGIN", query == "ROLLBACK":
						return reply{}
					}
					return reply{err: stateError("42P01")}
				})
				failed, closed := make(chan error, 1), make(chan error, 1)
				go func() { failed <- call(t.Context(), store) }()
				<-reads
				go func() { closed <- store.Close() }()
				synctest.Wait()
				require.Empty(t, closed)
				close(answer)
				require.ErrorIs(t, <-failed, ErrSchema)
				require.NoError(t, <-closed)
				require.NoError(t, db.Close())
			})
		})
	}
}
