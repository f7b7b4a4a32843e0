package sqltest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// An order is in transition while it is being paid.
type (
	state string
	event string
)

const (
	none    state = "none"
	open    state = "open"
	paying  state = "paying"
	paid    state = "paid"
	place   event = "place"
	pay     event = "pay"
	settled event = "settled"
	reopen  event = "reopen"
	note    event = "note"
	drop    event = "drop"

	customer fsm.Actor = "customer"
	bank     fsm.Actor = "bank"
)

var order = fsm.Must[string](fsm.Spec[state, event]{
	Name: "order", Initial: none, Actors: []fsm.Actor{customer, bank},
	States: []fsm.State[state]{{Name: none, Kind: fsm.Absent}, {Name: open}, {Name: paying, Kind: fsm.Transitional}, {Name: paid}},
	Rows: fsm.Rows(
		fsm.Move(none, place, open).By(customer),
		fsm.Move(open, pay, paying).By(customer),
		fsm.Move(paying, settled, paid).By(bank),
		fsm.Move(paying, reopen, open).After(time.Minute),
		fsm.Move(open, note, open).By(customer),
		fsm.Move(paid, reopen, open).By(customer),
		fsm.Move(open, drop, none).By(customer),
		fsm.Move(paid, drop, none).By(customer),
	),
})

var orderA = lifecycle.Key{Machine: "order", ID: "a"}

type (
	orders = lifecycle.Manager[state, event, string]
	record = lifecycle.Record[state, string]
)

func manage(store lifecycle.Store) *orders { return lifecycle.Must(order, store, nil) }

// create makes an order for one lamp.
func create(t testing.TB, m *orders, id string) record {
	t.Helper()
	r, err := m.Create(t.Context(), id, place, customer, "one", nil)
	require.NoError(t, err)
	return r
}

func fire[T any](t testing.TB, m *lifecycle.Manager[state, event, T], id string, e event, by fsm.Actor) lifecycle.Record[state, T] {
	t.Helper()
	r, err := m.Fire(t.Context(), id, e, by, nil)
	require.NoError(t, err)
	return r
}

// fresh returns a store in a database of its own.
func fresh(t testing.TB, e engine) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db := pool(t, e.open(t))
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	store, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store, db
}

func exec(t testing.TB, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, query string, args ...any,
) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err, query)
}
