package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// tableSchema is the value of the field "schema" of the documents that
// [ParseTable] reads and [WriteTable] writes.
const tableSchema = "lifecycle-table/1"

// MaxDocument is the largest document in bytes. [MaxStates], [MaxEvents], [MaxRows]
// and [MaxName] are limits of documents too. [ParseTable] and [WriteTable] refuse a
// document over a limit.
const MaxDocument = 4 << 20

const (
	maxNesting = 32            // nested objects and arrays
	maxText    = 64 << 10      // bytes of one text of documentation
	maxFields  = 256           // of one object
	maxList    = 2 * MaxStates // names in one list
)

// ReadTable reads r to its end and is [ParseTable] of the bytes. It reads at most
// MaxDocument+1 bytes. It returns an error of r wrapped; that error does not match
// [ErrInvalid].
func ReadTable(r io.Reader) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("fsm: read table: %w", err)
	}
	return ParseTable(data)
}

// ParseTable reads a table from a lifecycle-table/1 document, one JSON object:
//
//	{name, title?, schema?, confidence?, initial?, initials?, actors?+,
//	 states:      [{name, kind, absent?+, target?, manual?+, note?}],
//	 transitions: [{from, event, actor?, actors?+, to?, guard?, return?+, ignore?, origin?+,
//	                forced?+, supersede?+, within?+, note?, any?+, except?+, row?+}]}
//
// Fields with ? are optional. Fields with + extend the published form; a reader
// without them sees an ordinary table.
//
//   - A kind is stable, transitional, final or error. The kind error is [Failed]. An
//     [Absent] state is stable and has the field absent.
//   - Only transitions with return or ignore may have no target. The target of one with
//     ignore has no effect.
//   - Transitions with the same number in row are one row with several sources.
//   - A transition with neither actor nor actors is for every actor, or for the sweeper
//     alone if it has a timeout.
//   - Without a list of actors, the actors of the transitions are declared, in order
//     of appearance. Events always are.
//   - The field within is the timeout, a duration such as "1m30s". [Sweeper] may fire the
//     row, as in a [Spec].
//   - The fields origin and except are lists of states. A row of [FromAny] has the field
//     any, and a transition for each of its sources.
//
// Every well-formed document gives a table, sound or not. [Table.Problems] reports
// the faults of the table. A document is well formed if it is one JSON object in
// UTF-8, is within the limits, repeats no field, and if every field of the form has
// its type, which is never null. Other fields are ignored, misspelt ones too. Case is
// significant.
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

// WriteTable writes a table as a lifecycle-table/1 document, with one state and one
// transition a line. [ReadTable] returns the table again, without the code of
// guards, and with the events in the order in which the rows name them. A table with
// faults is written too.
//
// WriteTable refuses a table that [ParseTable] would not return, and then writes
// nothing: a text is not UTF-8 or over a limit, a row has no source, a row with a timeout
// is not for [Sweeper], an index is out of range, or a list is too long. That error is a
// [*DocumentError] and matches [ErrInvalid]. WriteTable returns an error of w wrapped.
func WriteTable(w io.Writer, t *Table) error {
	doc := &writer{t: t}
	doc.layout(doc.form())
	if doc.err != nil {
		return doc.err
	}
	_, err := ParseTable(doc.out.Bytes())
	if fault, ok := errors.AsType[*DocumentError](err); ok {
		return &DocumentError{Path: fault.Path, Offset: -1, Text: fault.Text}
	}
	if _, err := w.Write(doc.out.Bytes()); err != nil {
		return fmt.Errorf("fsm: write table: %w", err)
	}
	return nil
}

// DocumentError is the fault for which [ParseTable] refuses a document, or
// [WriteTable] a table. It matches [ErrInvalid].
type DocumentError struct {
	Path   string // such as "transitions[123].actor"; empty for the whole document
	Offset int64  // in bytes from the start of the document; -1 when writing
	Line   int    // from 1; 0 when writing
	Column int    // from 1, in bytes; 0 when writing
	Text   string // the fault
}

// Error returns path, fault and position in one line.
func (e *DocumentError) Error() string {
	text := e.Text
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Line > 0 {
		text += fmt.Sprintf(" (line %d, column %d, offset %d)", e.Line, e.Column, e.Offset)
	}
	return "fsm: invalid table: " + text
}

// Is matches [ErrInvalid].
func (e *DocumentError) Is(target error) bool { return target == ErrInvalid }

// faultAt returns the error at an offset of a document.
func faultAt(data []byte, offset int, path, text string) *DocumentError {
	before := data[:offset]
	return &DocumentError{
		Path: path, Offset: int64(offset), Text: text,
		Line: 1 + bytes.Count(before, []byte("\n")), Column: offset - bytes.LastIndexByte(before, '\n'),
	}
}

// clip shortens a long string of a document for texts and paths.
func clip(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
