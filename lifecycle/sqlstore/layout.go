package sqlstore

import (
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// column is where a table keeps a value. Without a name the table has none.
type column struct {
	name    string // in quotes
	typ     *Type  // nil: the value is kept as it is
	sqlType string // that the engine reports, for a column with a type
	field   string // of the payload, which is a JSON object; empty: a value of the record
}

// table names a table and its columns.
type table struct {
	name        string   // in quotes
	column      []column // by value
	existing    bool     // the table is the caller's: it has any collation, and NULLs
	nativeTimes bool     // times have the engine's own type; otherwise they are microseconds
	key         []value  // of the unique index that the table must have
	// indexes are those that queries of the store need, with their columns in order. An
	// existing table needs none.
	indexes map[string][]value
}

// layout is where a store keeps the records of one existing table, or those of all other
// machines.
type layout struct {
	objects, history table
	st               *statements
	machine          string // the machine of all objects of an existing table
	// noToken is the token of a row that no commit has written: zeros in the store's own
	// table; in an existing table, where such a row has NULL or no bytes, a value that no
	// token equals.
	noToken []byte
	floor   uint64 // >= every number of a key that the tables did not have at the last AfterRestore
}

// own returns the layout of the store's own tables of a version.
func (e *engine) own(prefix string, version int) *layout {
	objects, history := prefix+"objects", prefix+"history"
	l := &layout{
		objects: table{name: e.quoted(objects), column: make([]column, values), key: []value{vMachine, vID}, indexes: map[string][]value{
			objects + "_state":    {vMachine, vState, vID},
			objects + "_age":      {vMachine, vState, vChangedAt},
			objects + "_deadline": {vMachine, vDeadline},
			objects + "_owner":    {vMachine, vOwner, vEpoch, vDeadline, vState, vID},
		}},
		history: table{name: e.quoted(history), column: make([]column, values), key: []value{vMachine, vID, vSequence}, indexes: map[string][]value{
			history + "_at":      {vNow},
			history + "_request": {vMachine, vRequest},
		}},
		noToken: make([]byte, len(lifecycle.Token{})),
	}
	for v, c := range columns {
		if c.objects != "" {
			l.objects.column[v].name = e.quoted(c.objects)
		}
		if c.history != "" {
			l.history.column[v].name = e.quoted(c.history)
		}
	}
	if version < 2 {
		l.objects.column[vFence].name = ""
	}
	return l
}

// col returns the name of the column of a value, or an empty string.
func (t *table) col(v value) string { return t.column[v].name }

// named returns the columns of a list that the table has.
func (t *table) named(list ...value) []value {
	return slices.DeleteFunc(slices.Clone(list), func(v value) bool { return t.col(v) == "" })
}

// all returns the columns of the table.
func (t *table) all() (list []value) {
	for v := range t.column {
		if t.col(value(v)) != "" {
			list = append(list, value(v))
		}
	}
	return list
}

// list returns the names of the columns of a list that the table has.
func (t *table) list(list []value) string { return literals(t.named(list...), t.col) }
