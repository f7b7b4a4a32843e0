package sqltest

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// vmSpec is a payload with fields that have columns of their own.
type vmSpec struct {
	Region string         `json:"region"`
	CPUs   int            `json:"cpus"`
	Spot   bool           `json:"spot"`
	Labels map[string]any `json:"labels,omitempty"`
	Note   *string        `json:"note,omitempty"`
	Tenant string         `json:"tenant,omitempty"`
}

const resize event = "resize"

var errQuota = errors.New("more than 8 CPUs")

var vms = fsm.Must[vmSpec](fsm.Spec[state, event]{
	Name: "vm", Initial: none, Actors: []fsm.Actor{customer, bank},
	States: []fsm.State[state]{{Name: none, Kind: fsm.Absent}, {Name: open}, {Name: paying, Kind: fsm.Transitional}, {Name: paid}},
	Rows: fsm.Rows(
		fsm.Move(none, place, open).By(customer),
		fsm.Move(open, pay, paying).By(customer),
		fsm.Move(paying, settled, paid).By(bank),
		fsm.Move(paying, reopen, open).After(time.Minute),
		fsm.Move(open, resize, open).By(customer).If(fsm.When("quota", func(_ context.Context, _, after *vmSpec) error {
			if after.CPUs > 8 {
				return errQuota
			}
			return nil
		})),
		fsm.Move(open, drop, none).AlsoFrom(paid).By(customer),
	),
})

// typedTable makes a table as a user would: a key, a status and a payload with types of the
// engine, and fields of the payload as columns.
func typedTable(t testing.TB, db *sql.DB, e engine, key, status sqlstore.Type) sqlstore.ExistingTable {
	t.Helper()
	tenant := sqlstore.Text
	tenant.Postgres = "uuid"
	region := sqlstore.Text
	region.Postgres, region.MySQL = "char(2)", "char(2)"
	cpus := sqlstore.Integer
	cpus.Postgres, cpus.MySQL = "integer", "int"
	table := sqlstore.ExistingTable{
		Machine: "vm", Table: "vms",
		Columns: sqlstore.ColumnMap{
			ID: "id", State: "status", Origin: "was", Revision: "rev", Sequence: "seq", Operation: "op", Deadline: "due", ChangedAt: "touched",
			Payload: "spec", Saved: "spec_before", Token: "token",
		},
		ExistingHistory: sqlstore.ExistingHistory{
			Table: "vms_log", ID: "id", Sequence: "n", Token: "token", Revision: "rev", Operation: "op", From: "was", To: "status", At: "at",
		},
		Fields: map[string]string{"region": "region", "cpus": "cpus", "spot": "spot", "note": "note", "tenant": "tenant"},
		Types: map[string]sqlstore.Type{
			"id": key, "status": status, "was": status, "spec": sqlstore.JSON, "spec_before": sqlstore.JSON,
			"region": region, "cpus": cpus, "spot": sqlstore.Bool, "tenant": tenant,
		},
	}
	text, err := table.Schema(e.dialect)
	require.NoError(t, err)
	execAll(t, db, text)
	return table
}

// vmCodes is the type of a status that is a number.
var vmCodes = sqlstore.Codes(map[string]int64{"none": 0, "open": 1, "paying": 2, "paid": 3})

// Keys, statuses and payloads have the types that real tables have. SELECT by the columns
// finds what the library has written, and the library sees what SQL has written.
func TestExistingTableTypes(t *testing.T) {
	status := sqlstore.Enum("vm_status", "none", "open", "paying", "paid")
	for name, c := range map[string]struct {
		key, status sqlstore.Type
		ids, bad    []string
	}{
		"uuid, enum": {
			sqlstore.UUID, status,
			[]string{"0b0e7a5c-5f0e-4c7b-9f6e-0d1c5a3b2e10", "f00e7a5c-5f0e-4c7b-9f6e-0d1c5a3b2e10"},
			[]string{"0B0E7A5C-5F0E-4C7B-9F6E-0D1C5A3B2E10", "0b0e7a5c5f0e4c7b9f6e0d1c5a3b2e10", "x"},
		},
		"integer, code": {sqlstore.Integer, vmCodes, []string{"9", "10"}, []string{"09", "+9", "9.0", "x", "9223372036854775808"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, e engine) {
				db := pool(t, e.open(t))
				if e.name == "postgres" {
					exec(t, db, "CREATE TYPE vm_status AS ENUM ('none', 'open', 'paying', 'paid')")
				}
				store := existing(t, db, e, typedTable(t, db, e, c.key, c.status))
				m := lifecycle.Must(vms, store, nil)
				note := "it's \"new\""
				spec := vmSpec{Region: "eu", CPUs: 4, Labels: map[string]any{"b": "x", "a": []any{1.5}}, Note: &note, Tenant: "0b0e7a5c-5f0e-4c7b-9f6e-0d1c5a3b2e10"}
				for _, id := range c.ids {
					_, err := m.Create(t.Context(), id, place, customer, spec, nil)
					require.NoError(t, err)
				}
				for _, id := range c.bad {
					_, err := m.Create(t.Context(), id, place, customer, spec, nil)
					require.ErrorIs(t, err, lifecycle.ErrInvalid, id)
					_, err = m.Get(t.Context(), id)
					require.ErrorIs(t, err, lifecycle.ErrInvalid, id)
					if _, err = m.List(t.Context(), lifecycle.Select[state]{After: id}); e.name == "postgres" || name == "integer, code" {
						require.ErrorIs(t, err, lifecycle.ErrInvalid, id)
					}
				}
				a := c.ids[0]
				got, err := m.Get(t.Context(), a)
				require.NoError(t, err)
				require.Equal(t, spec, got.Payload)

				// SQL sees the columns, and the guard sees what SQL has written.
				var n int
				require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM vms WHERE region = 'eu' AND cpus = 4 AND NOT spot").Scan(&n))
				require.Equal(t, 2, n)
				exec(t, db, "UPDATE vms SET cpus = 7, rev = rev + 1 WHERE region = 'eu'")
				more := func(p *vmSpec) error { p.CPUs += 2; return nil }
				_, err = m.Fire(t.Context(), a, resize, customer, &lifecycle.Change[vmSpec]{Edit: more})
				require.ErrorIs(t, err, errQuota)
				spot := func(p *vmSpec) error { p.Spot, p.Note = true, nil; return nil }
				after, err := m.Fire(t.Context(), a, resize, customer, &lifecycle.Change[vmSpec]{Edit: spot})
				require.NoError(t, err)
				require.Equal(t, vmSpec{Region: "eu", CPUs: 7, Spot: true, Labels: spec.Labels, Tenant: spec.Tenant}, after.Payload)
				require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM vms WHERE spot AND note IS NULL AND cpus = 7").Scan(&n))
				require.Equal(t, 1, n)

				// The cursor of a page is an id of the page before, in the order of the column.
				var ids []string
				for r, err := range m.All(t.Context(), lifecycle.Select[state]{Limit: 1, States: []state{open}}) {
					require.NoError(t, err)
					ids = append(ids, r.ID)
				}
				require.Equal(t, c.ids, ids)

				// So is that of Recent, over the history.
				var recent []string
				for after := ""; len(recent) <= len(c.ids); after = recent[len(recent)-1] {
					page, err := store.Recent(t.Context(), "vm", time.Minute, after, 1)
					require.NoError(t, err)
					if len(page) == 0 {
						break
					}
					recent = append(recent, page[0].ID)
				}
				require.Equal(t, c.ids, recent)

				paying := fire(t, m, a, pay, customer)
				list, err := m.List(t.Context(), lifecycle.Select[state]{States: []state{"paying"}})
				require.NoError(t, err)
				require.Len(t, list, 1)
				require.Equal(t, open, list[0].Origin)
				_, err = m.Report(t.Context(), a, paying.Operation, settled, bank, nil)
				require.NoError(t, err)
				_, err = m.Fire(t.Context(), c.ids[1], drop, customer, nil)
				require.NoError(t, err)
				_, err = m.Create(t.Context(), c.ids[1], place, customer, vmSpec{}, nil)
				require.NoError(t, err)
				rows, err := m.History(t.Context(), a, 0, 0)
				require.NoError(t, err)
				require.Len(t, rows, 4)
				require.Equal(t, [2]string{"paying", "paid"}, [2]string{rows[3].From, rows[3].To})
				_, err = store.Trim(t.Context(), time.Microsecond, 0)
				require.NoError(t, err)
			})
		})
	}
}

// A code that the type does not know is not a state, and a word is not a number: the object is
// listed with an error, and the others without one. A payload that is not an object, and fields without a column, are
// refused.
func TestExistingTableTypesRefuse(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := typedTable(t, db, e, sqlstore.Integer, vmCodes)
		store, err := openTable(t, db, e, table)
		require.NoError(t, err)
		m := lifecycle.Must(vms, store, nil)
		lesser := table
		lesser.Types = maps.Clone(table.Types)
		for missing, codes := range map[string]map[string]int64{"none": {"open": 1, "paying": 2, "paid": 3}, "paid": {"none": 0, "open": 1, "paying": 2}} {
			t.Run("without "+missing, func(t *testing.T) {
				lesser.Types["status"] = sqlstore.Codes(codes)
				cannot, err := openTable(t, db, e, lesser)
				require.NoError(t, err)
				_, err = lifecycle.New(vms, cannot, nil)
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				require.ErrorContains(t, err, missing)
				require.NoError(t, cannot.Close())
			})
		}
		for _, id := range []string{"1", "2"} {
			_, err = m.Create(t.Context(), id, place, customer, vmSpec{Region: "eu"}, nil)
			require.NoError(t, err)
		}
		exec(t, db, "UPDATE vms SET status = 17 WHERE id = 1")
		list, err := m.List(t.Context(), lifecycle.Select[state]{})
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.ErrorIs(t, list[0].Err, lifecycle.ErrForeign)
		require.ErrorContains(t, list[0].Err, "17")
		require.NoError(t, list[1].Err)
		if e.name == "sqlite" { // which keeps any text in an integer column
			exec(t, db, "UPDATE vms SET status = 1, cpus = 'four' WHERE id = 1")
			_, err = m.Fire(t.Context(), "1", resize, customer, nil)
			require.ErrorIs(t, err, lifecycle.ErrForeign)
			require.ErrorContains(t, err, "vmSpec.cpus")
		}

		c := next(get(t, store, lifecycle.Key{Machine: "vm", ID: "2"}), 0)
		for _, payload := range []string{"[1]", "7", `{"cpus": "four"}`, `{"cpus": 1.5}`, `{"spot": 1}`, "{"} {
			c.Changes[0].To.Payload = []byte(payload)
			require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid, payload)
		}
		if e.name != "sqlite" { // whose integers have 64 bits
			c.Changes[0].To.Payload = []byte(`{"cpus": 5000000000}`) // of the column's 32 bits
			require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid)
		}
		c.Changes[0].To.Payload, c.Changes[0].To.State = nil, "unknown"
		require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid)
		require.NoError(t, store.Close())

		table.Columns.Payload = ""
		delete(table.Types, "spec")
		store = existing(t, db, e, table)
		c.Changes[0].To.Payload, c.Changes[0].To.State = []byte(`{"labels": 1}`), "open"
		err = store.Commit(t.Context(), c)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, `field "labels"`)

		table.Types["rev"] = sqlstore.Integer
		_, err = openTable(t, db, e, table)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, `column "rev"`)
		delete(table.Types, "rev")
		table.Fields["labels"] = "region"
		_, err = openTable(t, db, e, table)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, `column "region" is named twice`)
	})
}

// A Type that panics on a value leaves no transaction open, and the panic reaches the caller
// of the commit.
func TestTypeThatPanics(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		status, read := vmCodes, vmCodes.Read
		status.Read = func(code string) (string, error) {
			if code == "17" {
				panic("unknown code 17")
			}
			return read(code)
		}
		store := existing(t, db, e, typedTable(t, db, e, sqlstore.Integer, status))
		m := lifecycle.Must(vms, store, nil)
		_, err := m.Create(t.Context(), "1", place, customer, vmSpec{}, nil)
		require.NoError(t, err)
		exec(t, db, "UPDATE vms SET status = 17 WHERE id = 1") // by another program

		c := next(get(t, store, orderA), 0)
		c.Require = []lifecycle.Precondition{{Key: lifecycle.Key{Machine: "vm", ID: "1"}, States: []string{"open"}}}
		require.PanicsWithValue(t, "unknown code 17", func() { _ = store.Commit(context.Background(), c) })
		require.Zero(t, db.Stats().InUse)

		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		in := store.WithTx(tx)
		require.PanicsWithValue(t, "unknown code 17", func() { _ = in.Commit(t.Context(), c) })
		c.Require = nil
		require.ErrorIs(t, in.Commit(t.Context(), c), sqlstore.ErrRollback, "half of a commit may be in the transaction")
		require.NoError(t, tx.Rollback())
		require.NoError(t, store.Commit(t.Context(), c))
	})
}

// A payload is read as another program has written it.
func TestTypesOfPayloads(t *testing.T) {
	half := sqlstore.Type{
		Write:    func(text string) (any, error) { var x float64; _, err := fmt.Sscan(text, &x); return x, err },
		Read:     func(value string) (string, error) { return value, nil },
		Postgres: "double precision", MySQL: "double", SQLite: "REAL",
	}
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := sqlstore.ExistingTable{
			Machine: "order", Table: "priced",
			Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq", Payload: "body", Saved: "before"},
			Types:   map[string]sqlstore.Type{"body": sqlstore.JSON, "before": sqlstore.JSON, "price": half},
			Fields:  map[string]string{"price": "price", "name": "name"},
		}
		text, err := table.Schema(e.dialect)
		require.NoError(t, err)
		execAll(t, db, text)
		store := existing(t, db, e, table)

		// The columns keep numbers exactly, and an empty payload that was saved.
		c := next(get(t, store, orderA), 0)
		c.Changes[0].To.Payload, c.Changes[0].To.Saved = []byte(`{"name":"a","price":0.30000000000000004}`), []byte{}
		require.NoError(t, store.Commit(t.Context(), c))
		now := get(t, store, orderA)
		require.JSONEq(t, `{"name":"a","price":0.30000000000000004}`, string(now.Payload))
		require.NotNil(t, now.Saved)
		require.Empty(t, now.Saved)

		// What is no JSON, or no text, is refused.
		for _, saved := range []string{"{", "{}{}"} {
			c = next(now, 0)
			c.Changes[0].To.Saved = []byte(saved)
			require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid, saved)
		}
		c = next(now, 0)
		c.Changes[0].To.Payload = []byte(`{"name":7}`)
		err = store.Commit(t.Context(), c)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, `field "name" of the payload`)

		// Another program writes what is no object: the payload is that, and does not decode.
		exec(t, db, "UPDATE priced SET body = '[1]', rev = rev + 1")
		require.JSONEq(t, "[1]", string(get(t, store, orderA).Payload))
		exec(t, db, "UPDATE priced SET body = 'null', rev = rev + 1")
		require.JSONEq(t, `{"name":"a","price":0.30000000000000004}`, string(get(t, store, orderA).Payload))
	})
}

// A commit writes the value that it has read into the column of a field, which the change does
// not concern: also if the engine shows fewer digits than a float of 32 bits has.
func TestFieldOfFewerBits(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		load := sqlstore.Text
		load.Postgres, load.MySQL, load.SQLite = "real", "float", "REAL"
		table := sqlstore.ExistingTable{
			Machine: "order", Table: "loaded",
			Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
			Fields:  map[string]string{"load": "load_1"},
			Types:   map[string]sqlstore.Type{"load_1": load},
		}
		text, err := table.Schema(e.dialect)
		require.NoError(t, err)
		execAll(t, db, text)
		exec(t, db, "INSERT INTO loaded (id, state, load_1) VALUES ('a', 'open', 1.2345678), ('b', 'open', 16777215)")
		store := existing(t, db, e, table)
		for _, id := range []string{"a", "b"} {
			require.NoError(t, store.Commit(t.Context(), next(get(t, store, lifecycle.Key{Machine: "order", ID: id}), 0)))
		}
		var n int
		exec(t, db, "INSERT INTO loaded (id, state, load_1) VALUES ('c', 'open', 1.2345678), ('d', 'open', 16777215)")
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM loaded x JOIN loaded y ON x.load_1 = y.load_1 AND x.id < y.id").Scan(&n))
		require.Equal(t, 2, n)
	})
}

// MySQL gives the bits of a column, and not their number, as text.
func TestFieldOfABit(t *testing.T) {
	e := engines()[2]
	require.Equal(t, "mysql", e.name)
	db := pool(t, e.open(t))
	exec(t, db, "CREATE TABLE lit (id varchar(9) NOT NULL PRIMARY KEY, state varchar(9) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL, lamp bit(1), colour bit(8))")
	exec(t, db, "INSERT INTO lit VALUES ('a', 'open', 0, 0, 1, 65)")
	store := existing(t, db, e, sqlstore.ExistingTable{
		Machine: "order", Table: "lit",
		Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
		Fields:  map[string]string{"lamp": "lamp", "colour": "colour"},
		Types:   map[string]sqlstore.Type{"lamp": sqlstore.Bool, "colour": sqlstore.Integer},
	})
	require.JSONEq(t, `{"lamp": true, "colour": 65}`, string(get(t, store, orderA).Payload))
	c := next(get(t, store, orderA), 0)
	c.Changes[0].To.Payload = []byte(`{"lamp": false, "colour": 66}`)
	require.NoError(t, store.Commit(t.Context(), c))
	require.JSONEq(t, `{"lamp": false, "colour": 66}`, string(get(t, store, orderA).Payload))
}

// MySQL shows a number with zeros before it, if the column is to show them. It is the same number
// for a Type.
func TestNumbersWithZeros(t *testing.T) {
	e := engines()[2]
	require.Equal(t, "mysql", e.name)
	db := pool(t, e.open(t))
	exec(t, db, "CREATE TABLE filled (id int(8) zerofill NOT NULL PRIMARY KEY, state smallint(3) zerofill NOT NULL,"+
		" rev bigint NOT NULL, seq bigint NOT NULL, size bigint(9) zerofill, price decimal(8,2) zerofill, mass double(9,3) zerofill)")
	exec(t, db, "INSERT INTO filled VALUES (7, 1, 0, 0, 65, 7.5, 0.5), (12, 1, 0, 0, 66, 7.5, 0.5)")
	exec(t, db, "CREATE TABLE filled_log (id int(8) zerofill NOT NULL, state smallint(3) zerofill, rev bigint, seq bigint NOT NULL,"+
		" token binary(16) NOT NULL, at datetime(6), PRIMARY KEY (id, seq))")
	store := existing(t, db, e, sqlstore.ExistingTable{
		Machine: "order", Table: "filled",
		Columns:         sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
		ExistingHistory: sqlstore.ExistingHistory{Table: "filled_log", ID: "id", To: "state", Revision: "rev", Sequence: "seq", Token: "token", At: "at"},
		Fields:          map[string]string{"size": "size", "price": "price", "mass": "mass"},
		Types:           map[string]sqlstore.Type{"id": sqlstore.Integer, "state": vmCodes, "size": sqlstore.Integer},
	})
	for id, size := range map[string]string{
		"7": `{"size": 65, "price": "7.50", "mass": "0.500"}`, "12": `{"size": 66, "price": "7.50", "mass": "0.500"}`,
	} {
		r := get(t, store, lifecycle.Key{Machine: "order", ID: id})
		require.Equal(t, "open", r.State)
		require.JSONEq(t, size, string(r.Payload))
		require.NoError(t, store.Commit(t.Context(), next(r, 0)))
	}
	require.Equal(t, []string{"7", "12"}, onePerPage(t, store))
	var after string
	for _, id := range []string{"7", "12"} {
		recent, err := store.Recent(t.Context(), "order", time.Hour, after, 1)
		require.NoError(t, err)
		require.Equal(t, []lifecycle.ChangedObject{{ID: id, Sequence: 1}}, recent)
		after = id
		for range 8 {
			require.NoError(t, store.Commit(t.Context(), next(get(t, store, lifecycle.Key{Machine: "order", ID: id}), 0)))
		}
	}
	deleted, err := store.Trim(t.Context(), time.Microsecond, 0)
	require.NoError(t, err)
	require.Equal(t, 2, deleted)
}

// The Type of a column of bytes reads the bytes on MySQL, which are not text in its character set.
func TestIdsOfBytes(t *testing.T) {
	e := engines()[2]
	require.Equal(t, "mysql", e.name)
	db := pool(t, e.open(t))
	exec(t, db, "CREATE TABLE keyed (id binary(4) NOT NULL PRIMARY KEY, state varchar(9) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL)")
	exec(t, db, "INSERT INTO keyed VALUES (x'00f0ff27', 'open', 0, 0), (x'e97f5c01', 'open', 0, 0)")
	store := existing(t, db, e, sqlstore.ExistingTable{
		Machine: "order", Table: "keyed",
		Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
		Types: map[string]sqlstore.Type{"id": {
			Write: func(text string) (any, error) { id, err := hex.DecodeString(text); return string(id), err },
			Read:  func(id string) (string, error) { return hex.EncodeToString([]byte(id)), nil },
		}},
	})
	ids := onePerPage(t, store)
	require.Equal(t, []string{"00f0ff27", "e97f5c01"}, ids)
	for _, id := range ids {
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, lifecycle.Key{Machine: "order", ID: id}), 0)))
	}
}

// A Text cannot keep bytes that are not UTF-8: a commit does not overwrite them with other ones.
// PostgreSQL converts them to text and back.
func TestFieldOfBytes(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		blob, _ := types(e)
		table := fourColumns(t, db, "keyed", ", secret "+blob)
		table.Fields = map[string]string{"secret": "secret"}
		bytes := map[string]string{"postgres": `'\xf0ff27e9'`}[e.name]
		exec(t, db, "INSERT INTO keyed (id, state, rev, seq, secret) VALUES ('a', 'open', 0, 0, "+cmp.Or(bytes, "x'f0ff27e9'")+")")
		store := existing(t, db, e, table)
		err := store.Commit(t.Context(), next(get(t, store, orderA), 0))
		if e.name == "postgres" {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		}
		var secret []byte
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT secret FROM keyed").Scan(&secret))
		require.Equal(t, "f0ff27e9", hex.EncodeToString(secret))
	})
}

// A column has numbers that its type does not read. A page after one of them has the other
// objects.
func TestIdsThatNoTypeReads(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE numbered (id bigint NOT NULL PRIMARY KEY, state varchar(9) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL)")
		exec(t, db, "INSERT INTO numbered VALUES (-7, 'open', 0, 0), (-3, 'open', 0, 0), (5, 'open', 0, 0)")
		store := existing(t, db, e, sqlstore.ExistingTable{
			Machine: "order", Table: "numbered",
			Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
			Types: map[string]sqlstore.Type{"id": {
				Write: func(text string) (any, error) {
					number, named := strings.CutPrefix(text, "order-")
					if !named {
						return nil, errors.New("no order")
					}
					return strconv.ParseInt(number, 10, 64)
				},
				Read: func(number string) (string, error) {
					if strings.HasPrefix(number, "-") {
						return "", errors.New("a negative number")
					}
					return "order-" + number, nil
				},
			}},
		})
		require.Equal(t, []string{"-7", "-3", "order-5"}, onePerPage(t, store))
		if e.name != "sqlite" { // whose column may have any id
			_, err := store.List(t.Context(), lifecycle.Query{Machine: "order", Limit: 1, After: "5"})
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		}
	})
}

// SQLite keeps any value in a column of integers that is not the row id. A page after an id that is
// no integer has the other objects.
func TestIdsThatAreNoIntegers(t *testing.T) {
	e := engines()[0]
	require.Equal(t, "sqlite", e.name)
	for key, rowid := range map[string]bool{
		"(id int NOT NULL PRIMARY KEY, %s)": false, "(id INTEGER NOT NULL PRIMARY KEY, %s) WITHOUT ROWID": false,
		"(id INTEGER PRIMARY KEY DESC, %s)": false, "(%s, id integer, PRIMARY KEY (id ASC))": true,
	} {
		t.Run(key, func(t *testing.T) {
			db := pool(t, e.open(t))
			exec(t, db, "CREATE TABLE numbered "+fmt.Sprintf(key, "state text NOT NULL, rev int NOT NULL, seq int NOT NULL"))
			insert := "INSERT INTO numbered (state, rev, seq, id) VALUES ('open', 0, 0, ?)"
			exec(t, db, insert, 5)
			exec(t, db, insert, 9)
			store := existing(t, db, e, sqlstore.ExistingTable{
				Machine: "order", Table: "numbered",
				Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
				Types:   map[string]sqlstore.Type{"id": sqlstore.Integer},
			})
			if rowid {
				_, err := db.ExecContext(t.Context(), insert, "x")
				require.Error(t, err)
				_, err = store.List(t.Context(), lifecycle.Query{Machine: "order", Limit: 1, After: "x"})
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				return
			}
			exec(t, db, insert, 7.5)
			exec(t, db, insert, "x")
			require.Equal(t, []string{"5", "7.5", "9", "x"}, onePerPage(t, store))
		})
	}
}

// onePerPage returns the ids of all orders, which it lists in pages of one.
func onePerPage(t *testing.T, store *sqlstore.Store) (ids []string) {
	t.Helper()
	for after := ""; ; {
		page, err := store.List(t.Context(), lifecycle.Query{Machine: "order", Limit: 1, After: after})
		require.NoError(t, err)
		if len(page) == 0 {
			return ids
		}
		after = page[0].ID
		require.NotContains(t, ids, after)
		ids = append(ids, after)
	}
}

// A table of text has ids in another spelling than their type writes. None is that of another
// object, and a page after one of them has the other objects.
func TestIdsInAnotherSpelling(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		types := map[string][]string{
			"sqlite":   {"char(36) COLLATE NOCASE", "nvarchar(36) COLLATE NOCASE", "int COLLATE NOCASE", "COLLATE NOCASE"},
			"mysql":    {"char(36)"},
			"postgres": {"text", "varchar(36) COLLATE any_case", "char(40) COLLATE any_case", "citext", "any_spelling", "uuid_spelling"},
		}
		for _, typ := range types[e.name] {
			t.Run(typ, func(t *testing.T) { idsInAnotherSpelling(t, e, typ) })
		}
	})
}

// A history keeps the rows from before the library of an id in another spelling. Trim deletes those
// of the others.
func TestTrimOfIdsInAnotherSpelling(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := fourColumns(t, db, "spelt", "")
		blob, moment := types(e)
		exec(t, db, "CREATE TABLE spelt_log (id varchar(36) NOT NULL, n bigint NOT NULL, rev bigint, token "+blob+" NOT NULL,"+
			" state varchar(9), at "+moment+", PRIMARY KEY (id, n))")
		const other, id = "0B0E7A5C-5F0E-4C7B-9F6E-0D1C5A3B2E10", "2b0e7a5c-5f0e-4c7b-9f6e-0d1c5a3b2e10"
		table.ExistingHistory = sqlstore.ExistingHistory{Table: "spelt_log", ID: "id", Sequence: "n", Revision: "rev", Token: "token", To: "state", At: "at"}
		table.Types = map[string]sqlstore.Type{"id": sqlstore.UUID}
		store := existing(t, db, e, table)
		for range 9 {
			require.NoError(t, store.Commit(t.Context(), next(get(t, store, lifecycle.Key{Machine: "order", ID: id}), 0)))
		}
		exec(t, db, "INSERT INTO spelt_log (id, n, rev, token, state, at) SELECT '"+other+"', n - 9, rev, token, state, at FROM spelt_log")
		deleted, err := store.Trim(t.Context(), time.Microsecond, 0)
		require.NoError(t, err)
		require.Equal(t, 1, deleted)
	})
}

func idsInAnotherSpelling(t *testing.T, e engine, typ string) {
	db := pool(t, e.open(t))
	if e.name == "postgres" {
		exec(t, db, "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		exec(t, db, "CREATE EXTENSION citext")
		exec(t, db, "CREATE DOMAIN any_spelling AS citext")
		exec(t, db, "CREATE DOMAIN uuid_spelling AS citext")
	}
	exec(t, db, "CREATE TABLE spelt (id "+typ+" NOT NULL PRIMARY KEY, state varchar(20) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL, op bigint)")
	table := sqlstore.ExistingTable{
		Machine: "lamp", Table: "spelt",
		Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq", Operation: "op"},
		Types:   map[string]sqlstore.Type{"id": sqlstore.UUID},
	}
	const first, second, last = "0B0E7A5C-5F0E-4C7B-9F6E-0D1C5A3B2E10", "1B0E7A5C-5F0E-4C7B-9F6E-0D1C5A3B2E10", "2b0e7a5c-5f0e-4c7b-9f6e-0d1c5a3b2e10"
	exec(t, db, "INSERT INTO spelt (id, state, rev, seq) VALUES ('"+first+"', 'open', 0, 0), ('"+second+"', 'open', 0, 0), ('"+last+"', 'open', 0, 0)")
	m := lifecycle.Must(lamps, existing(t, db, e, table), nil)
	_, err := m.Get(t.Context(), strings.ToLower(first))
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	var ids []string
	for r, err := range m.All(t.Context(), lifecycle.Select[state]{Limit: 1}) {
		require.NoError(t, err)
		ids = append(ids, r.ID)
	}
	require.Equal(t, []string{first, second, last}, ids)
	adopted, unplaced, err := lifecycle.Adopt(t.Context(), m, "migration", "ticket 7")
	require.NoError(t, err)
	require.Equal(t, 1, adopted)
	require.Len(t, unplaced, 2)
	require.ErrorContains(t, unplaced[1].Err, `"`+second+`" is not a uuid in lower case with hyphens`)
}
