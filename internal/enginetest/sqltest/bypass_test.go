package sqltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// bypasses are what somebody writes into a row past the library, who knows nothing
// of revisions: every column that a decision is made of, or that a change of the
// object writes back as it was.
var bypasses = []string{
	"state = 'paid', origin = 'paid'",
	"origin = 'paid'",
	"target = 'paid'",
	"sequence = sequence + 40",
	"operation = operation + 40",
	"owner = 'somebody'",
	"epoch = 40",
	"work = 'something'",
	"args = 'something'",
	"steps = '[]'",
	"payload = '\"by hand\"'",
	"payload = NULL",
	"saved = '\"by hand\"'",
}

// TestBypassIsNoticed: who writes to a row of the store's by hand, under its old
// revision, is not overwritten by a process that remembers the row: what it does
// next is decided on the row as it is.
func TestBypassIsNoticed(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, unhurried(e), nil)
		m := manage(store)
		other, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
		require.NoError(t, err)
		defer other.Close()
		for i, bypass := range bypasses {
			for _, with := range []string{"alone", "with a precondition"} {
				id := fmt.Sprint(with, i)
				k := lifecycle.Key{Machine: "order", ID: id}
				_, err := m.Create(t.Context(), id, place, customer, "from the library")
				require.NoError(t, err)
				_, ok := store.Recall(k)
				require.True(t, ok)
				exec(t, db, "UPDATE interlock_objects SET "+bypass+" WHERE id = '"+id+"'")
				now := get(t, other, k)
				var seen []string
				change := &lifecycle.Change[string]{Edit: func(payload *string) error {
					seen = append(seen, *payload)
					return nil
				}}
				if with != "alone" {
					change.Require = []lifecycle.Precondition{m.Require("nobody")}
				}
				event := note
				if now.State == "paid" {
					event = reopen // which the row that is remembered refuses
				}
				rec, err := m.Fire(t.Context(), id, event, customer, change)
				if bypass == "origin = 'paid'" { // which no open order has
					require.ErrorIs(t, err, lifecycle.ErrForeign)
					require.Equal(t, now, get(t, other, k))
					continue
				}
				require.NoError(t, err, bypass)
				require.Equal(t, open, rec.State, bypass)
				after := get(t, store, k)
				require.Equal(t, now.Sequence+1, after.Sequence, bypass)
				require.GreaterOrEqual(t, after.Operation, now.Operation, bypass)
				var payload string
				if now.Payload != nil {
					require.NoError(t, lifecycle.JSON{}.Unmarshal(now.Payload.(lifecycle.RawPayload), &payload))
				}
				require.Equal(t, payload, rec.Payload, bypass)
				require.Equal(t, payload, seen[len(seen)-1], bypass)
			}
		}
	})
}

// TestBypassOfWork: nor by the outcome of work that began before.
func TestBypassOfWork(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, unhurried(e), nil)
		m := lifecycle.New(order, store, &lifecycle.Config[event]{Worker: bank, Done: []event{settled}, Failed: []event{reopen}})
		for i, payload := range []string{"'\"by hand\"'", "NULL"} {
			id := fmt.Sprint("o", i)
			_, err := m.Create(t.Context(), id, place, customer, "from the library")
			require.NoError(t, err)
			h, err := m.Do(t.Context(), id, pay, customer, lifecycle.Func(func(context.Context) error {
				exec(t, db, "UPDATE interlock_objects SET payload = "+payload+" WHERE id = '"+id+"'")
				return nil
			}), nil)
			require.NoError(t, err)
			rec, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, paid, rec.State)
			require.Equal(t, map[string]string{"'\"by hand\"'": "by hand", "NULL": ""}[payload], rec.Payload)
		}
	})
}

// TestBypassOfSweep: nor by a sweep that has listed the row before.
func TestBypassOfSweep(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, unhurried(e), nil)
		looks := 0
		m := lifecycle.New(order, store, &lifecycle.Config[event]{
			Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				if looks++; looks == 1 {
					exec(t, db, "UPDATE interlock_objects SET payload = '\"by hand\"'")
				}
				return "", "", nil
			},
		})
		_, err := m.Create(t.Context(), "a", place, customer, "from the library")
		require.NoError(t, err)
		_, err = m.Fire(t.Context(), "a", pay, customer, nil)
		require.NoError(t, err)
		exec(t, db, "UPDATE interlock_objects SET deadline = 1")
		cases, err := m.Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, cases, 1)
		require.Equal(t, lifecycle.Overtaken, cases[0].Remedy)
		cases, err = m.Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, cases, 1)
		require.Equal(t, lifecycle.Moved, cases[0].Remedy)
		rec, err := m.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, open, rec.State)
		require.Equal(t, "by hand", rec.Payload)
	})
}

// TestBypassOfSteps: nor by the next step of a chain, which is decided on what the
// one before has written. It goes on with the payload as it is; who has taken the
// steps out of the record has ended the chain.
func TestBypassOfSteps(t *testing.T) {
	const empty, filling, filled, fill, full, late event = "empty", "filling", "filled", "fill", "full", "late"
	jug := fsm.Must[string](fsm.Spec[event, event]{
		Name: "jug", Initial: empty, Actors: []fsm.Actor{customer, bank},
		States: []fsm.State[event]{{Name: empty}, {Name: filling, Kind: fsm.Transitional}, {Name: filled}},
		Rows: fsm.Rows(
			fsm.Move(empty, fill, filling).AlsoFrom(filled).By(customer),
			fsm.Move(filling, full, filled).By(bank),
			fsm.Move(filling, late, empty).After(time.Minute),
		),
	})
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, unhurried(e), nil)
		for id, c := range map[string]struct {
			bypass, payload string
			goesOn          bool
		}{
			"a": {"payload = '\"by hand\"'", "by hand", true},
			"b": {"payload = NULL", "", true},
			"c": {"steps = NULL, payload = '\"by hand\"'", "by hand", false},
		} {
			rows := 0
			m := lifecycle.New(jug, store, &lifecycle.Config[event]{
				Worker: bank, Done: []event{full}, Failed: []event{late},
				Handlers: map[string]lifecycle.Handler{"nothing": func(context.Context, []byte) error { return nil }},
				Observer: lifecycle.Observer{Changed: func(row lifecycle.HistoryRow) {
					if row.To == string(filled) {
						if rows++; rows == 1 {
							exec(t, db, "UPDATE interlock_objects SET "+c.bypass+" WHERE id = '"+id+"'")
						}
					}
				}},
			})
			_, err := m.Add(t.Context(), id, customer, "from the library")
			require.NoError(t, err)
			step := lifecycle.Step[event]{Event: fill, Work: lifecycle.Named("nothing", nil)}
			h, err := m.DoSteps(t.Context(), id, customer, []lifecycle.Step[event]{step, step}, nil)
			require.NoError(t, err)
			rec, err := h.Wait(t.Context())
			if c.goesOn {
				require.NoError(t, err, c.bypass)
				require.Equal(t, 2, rows, c.bypass)
			} else {
				require.ErrorIs(t, err, lifecycle.ErrConflict, c.bypass)
				require.Equal(t, 1, rows, c.bypass)
				rec, err = m.Get(t.Context(), id)
				require.NoError(t, err)
			}
			require.Equal(t, filled, rec.State, c.bypass)
			require.Equal(t, c.payload, rec.Payload, c.bypass)
		}
	})
}
