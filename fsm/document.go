package fsm

import (
	"errors"
	"fmt"
	"io"
)

// tableSchema is the value of the field "schema" of the documents that
// [ParseTable] reads and [WriteTable] writes.
const tableSchema = "lifecycle-table/1"

// Limits of a document. A document over a limit is refused. [MaxStates],
// [MaxEvents], [MaxRows] and [MaxName] are limits of documents too.
const (
	MaxDocument = 4 << 20  // bytes; WriteTable refuses a table that needs more
	maxNesting  = 32       // nested objects and arrays
	maxText     = 64 << 10 // bytes of one text of documentation, and of the source
)

const (
	maxFields = 256           // of one object
	maxList   = 2 * MaxStates // names or texts in one list
	maxActors = 1 << 10       // more than MaxActors: a table with too many actors loads and has a problem
)

// ReadTable reads r to its end and is [ParseTable] of the bytes. It reads at most
// MaxDocument+1 bytes. It returns an error of r wrapped; that error does not match
// [ErrInvalid].
func ReadTable(r io.Reader) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("fsm: reading a table: %w", err)
	}
	return ParseTable(data)
}

// ParseTable reads a table from a lifecycle-table/1 document, one JSON object:
//
//	{name, title?, schema?, confidence?, initial?, initials?, actors?+,
//	 states:      [{name, kind, absent?+, target?, manual?+, on_owner_death?, note?, code?}],
//	 transitions: [{from, event, actor?, actors?+, to?, guard?, return?+, ignore?, origin?+,
//	                forced?+, supersede?+, within?+, action?, section?, note?,
//	                any?+, except?+, row?+}],
//	 illegal?: [[state, event]], source?: {...}, notes?, known_anomalies?}
//
// Fields with ? are optional. Fields with + extend the published form; a reader
// without them sees an ordinary table.
//
//   - A kind is stable, transitional, final or error. The kind error is [Failed]. An
//     [Absent] state is stable and has the field absent.
//   - Only transitions with return or ignore may have no target.
//   - Transitions with the same number in row are one row with several sources.
//   - A transition with neither actor nor actors is for every actor.
//   - Without a list of actors, the actors of the transitions are declared, in order
//     of appearance. Events always are.
//   - [Sweeper] may fire a row with the field within, as in a [Spec].
//
// Every well-formed document gives a table, sound or not. [Table.Problems] reports
// the faults of the table. A document is well formed if it is one JSON object in
// UTF-8, is within the limits, repeats no field, and if every field of the form has
// its type, which is never null. Other fields are ignored. Case is significant.
//
// The error is a [*DocumentError] and matches [ErrInvalid].
func ParseTable(data []byte) (*Table, error) {
	r, f := newReader(data), &tableForm{}
	r.value(f)
	r.end()
	if r.err != nil {
		return nil, r.err
	}
	return f.table(data)
}

// UnmarshalJSON is [ParseTable] into a zero Table. It returns an error for the table
// of a machine, because that table is read only.
func (t *Table) UnmarshalJSON(data []byte) error {
	if t.compiled != nil {
		return errors.New("fsm: the table of a machine is read only")
	}
	if string(data) == "null" {
		return nil // as everywhere in encoding/json
	}
	read, err := ParseTable(data)
	if err == nil {
		*t = *read
	}
	return err
}
