package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// value is what may stand in a statement: a column of a record, or what else a
// change says.
type value uint8

const (
	vMachine value = iota
	vID
	vState
	vOrigin
	vTarget
	vRevision
	vSequence
	vOperation
	vOwner
	vEpoch
	vWork
	vArgs
	vWorkOptions
	vDeadline
	vChangedAt
	vActor
	vEvent
	vReason
	vPayload
	vSaved
	vToken
	columns // how many columns there are

	vNow         = iota - 1 // the store's clock where it was read already, or nil
	vWithin                 // microseconds to the deadline, or nil
	vExpect                 // the number of the revision before
	vExpectToken            // and its token
	vFrom                   // the state before, as the table has it
	vWas                    // and as the history has it
	vFromOrigin             // the origin before
	vTo                     // the state after, by name also if it is absent
	vToOrigin

	values
)

var columnNames = [columns]string{
	"machine", "id", "state", "origin", "target", "revision", "sequence", "operation", "owner", "epoch",
	"work", "args", "work_options", "deadline", "changed_at", "actor", "event", "reason", "payload", "saved", "token",
}

func (v value) kind() kind {
	switch v {
	case vRevision, vSequence, vOperation, vEpoch, vDeadline, vChangedAt, vNow, vWithin, vExpect:
		return ofNumber
	case vArgs, vWorkOptions, vPayload, vSaved, vToken, vExpectToken:
		return ofBytes
	}
	return ofText
}

// layout is where records are kept. Names are quoted.
type layout struct {
	table          string
	indexes        string          // what their names begin with, of the store's own tables
	column         [columns]string // empty: there is none
	machine        string          // of all objects, if no column has it
	native         bool            // times are of the engine's own type, not microseconds
	removed        string          // the state of a row whose object was removed
	deletes        bool            // a removed object has no row
	foreign        bool            // the table is the user's: of any collation, and with NULLs
	history        string          // table; empty: none
	historyColumn  [historyColumns]string
	foreignHistory bool   // the history is the user's: of any collation, and with NULLs
	messages       string // table; empty: none
}

// own is the layout of the store's own tables.
func (e *engine) own(prefix string, history bool) *layout {
	l := &layout{table: e.quoted(prefix + "objects"), indexes: prefix + "objects", messages: e.quoted(prefix + "messages")}
	for i, name := range columnNames {
		l.column[i] = e.quoted(name)
	}
	if history {
		l.ownHistory(e, prefix)
	}
	return l
}

func (l *layout) ownHistory(e *engine, prefix string) {
	l.history = e.quoted(prefix + "history")
	for i, name := range historyNames {
		l.historyColumn[i] = e.quoted(name)
	}
}

// builder writes a statement and notes which values it takes.
type builder struct {
	e    *engine
	text strings.Builder
	args []value
}

// statement is a text and the values that its placeholders stand for.
type statement struct {
	text string
	args []value
}

func (b *builder) statement() *statement { return &statement{text: b.text.String(), args: b.args} }

// locked is a query that locks the row that it reads, in its present form.
func (s *statement) locked(e *engine) *statement {
	return &statement{text: s.text + e.forShare, args: s.args}
}

// join writes a list.
func (b *builder) join(list []string) { b.write(strings.Join(list, ", ")) }

func (b *builder) write(parts ...string) {
	for _, p := range parts {
		b.text.WriteString(p)
	}
}

// arg returns the placeholder of a value.
func (b *builder) arg(v value) string {
	b.args = append(b.args, v)
	return b.e.placeholder(len(b.args), v.kind())
}

// now is the store's clock in microseconds.
func (b *builder) now() string { return "COALESCE(" + b.arg(vNow) + ", " + b.e.now + ")" }

// stored is a time in the form in which the table has it.
func (b *builder) stored(l *layout, micros string) string {
	if l.native {
		return fmt.Sprintf(b.e.fromMicros, micros)
	}
	return micros
}

// assigned is what a change writes into a column.
func (b *builder) assigned(l *layout, v value) string {
	switch v {
	case vChangedAt:
		return b.stored(l, b.told(b.now()))
	case vDeadline: // NULL where vWithin is
		return b.stored(l, b.now()+" + "+b.arg(vWithin))
	}
	return b.arg(v)
}

// told has MySQL, which returns no rows from a write, tell a number beside the
// count of rows.
func (b *builder) told(micros string) string {
	if b.e.upsert {
		return micros
	}
	return "LAST_INSERT_ID(" + micros + ")"
}

// list writes the select list of a record: the columns in their order from one
// on, those that the table lacks as what they would be if nothing was ever
// written. Without payloads, Payload, Saved and Args are NULL.
func (b *builder) list(l *layout, from value, withoutPayload bool) {
	for v := from; v < columns; v++ {
		if v > from {
			b.write(", ")
		}
		if withoutPayload && (v == vPayload || v == vSaved || v == vArgs) {
			b.write("NULL")
		} else {
			b.write(b.read(l, v))
		}
	}
	// An empty blob and none are one thing to some drivers.
	if l.column[vSaved] == "" || withoutPayload {
		b.write(", 0")
	} else {
		b.write(", CASE WHEN ", l.column[vSaved], " IS NULL THEN 0 ELSE 1 END")
	}
}

func (b *builder) read(l *layout, v value) string {
	name := l.column[v]
	switch {
	case name == "" && v == vMachine:
		return b.arg(vMachine)
	case name == "" && v == vOrigin:
		return l.column[vState]
	case name == "" && v == vSequence:
		return b.read(l, vRevision)
	case name == "" && v.kind() == ofNumber && v != vDeadline:
		return "0"
	case name == "" && v.kind() == ofText:
		return "''"
	case name == "":
		return "NULL"
	case (v == vChangedAt || v == vDeadline) && l.native:
		return fmt.Sprintf(b.e.toMicros, name)
	case l.foreign && v.kind() == ofText:
		return "COALESCE(" + name + ", '')"
	case l.foreign && v.kind() == ofNumber && v != vDeadline && v != vChangedAt:
		return "COALESCE(" + name + ", 0)"
	}
	return name
}

// key writes the condition on the row of an object.
func (b *builder) key(l *layout) {
	if l.column[vMachine] != "" {
		b.write(l.column[vMachine], " = ", b.arg(vMachine), " AND ")
	}
	b.equal(l, vID, vID)
}

// equal writes a comparison byte by byte. In a table of the user's the first half
// of it is for the index.
func (b *builder) equal(l *layout, v, is value) {
	b.write(l.column[v], " = ", b.arg(is))
	if l.foreign && b.e.exact != "" {
		b.write(fmt.Sprintf(b.e.exact, l.column[v], b.arg(is)))
	}
}

// id is the id of a row for comparisons of order.
func (b *builder) id(l *layout) string {
	if l.foreign {
		return fmt.Sprintf(b.e.bytewise, l.column[vID])
	}
	return l.column[vID]
}

// one reports whether no more than one row can have a key: the tables are the
// store's own.
func (l *layout) one() bool { return l.column[vMachine] != "" }

// answers refuses a query by what the table does not keep.
func (l *layout) answers(q *lifecycle.Query) error {
	if q.UnchangedFor > 0 && l.column[vChangedAt] == "" {
		return fmt.Errorf("%w: the table has no column %s to select by", errors.ErrUnsupported, columnNames[vChangedAt])
	}
	return nil
}
