package sqlstore

import (
	"fmt"
	"strings"
)

// statements are those whose text is always the same.
type statements struct {
	get                  *statement // a record by key
	locked               *statement // the same, as it is now and not as a transaction has seen it
	insert               *statement // of an object that never existed, or whose row was deleted
	update               *statement
	metadata             *statement // of a MetadataOnly change without Timeout
	metadataWithDeadline *statement // of a MetadataOnly change with Timeout
	remove               *statement // where rows of removed objects are deleted
	row                  *statement // of the history; nil where the writes above do it, or there is none
	written              *statement // the row of the history at a change's place
	// The same, as it is now and not as a transaction has seen it.
	writtenNow *statement
	numbers    *statement // of an object without a row, from the history
	clock      *statement
}

// all returns those that are worth preparing.
func (s *statements) all() (list []*statement) {
	for _, st := range []*statement{s.get, s.insert, s.update, s.metadata, s.metadataWithDeadline, s.remove, s.row, s.written, s.numbers} {
		if st != nil {
			list = append(list, st)
		}
	}
	return list
}

// The columns that a MetadataOnly change writes.
var metadataColumns = []value{vOwner, vEpoch, vWork, vArgs, vWorkOptions, vRevision, vToken}

func (e *engine) compile(l *layout) *statements {
	s := &statements{
		insert: e.writing(l, l.history != "", func(b *builder) { b.insert(l) }),
		update: e.writing(l, l.history != "", func(b *builder) { b.update(l, written(l), true) }),
	}
	if l.column[vRevision] != "" {
		s.metadata = e.writing(l, false, func(b *builder) { b.update(l, metadataColumns, false) })
	}
	if l.column[vDeadline] != "" {
		s.metadataWithDeadline = e.writing(l, false, func(b *builder) { b.update(l, append(metadataColumns, vDeadline), false) })
	}
	if l.deletes {
		s.remove = e.writing(l, l.history != "", func(b *builder) {
			b.write("DELETE FROM ", l.table)
			b.condition(l)
		})
	}
	b := &builder{e: e}
	b.write("SELECT ")
	b.list(l, vState, false) // every column costs drivers something, and the key is known
	b.write(" FROM ", l.table, " WHERE ")
	b.key(l)
	s.get = b.statement()
	s.locked = s.get.locked(e)

	b = &builder{e: e}
	b.write("SELECT ", e.now)
	s.clock = b.statement()
	if l.history != "" {
		e.compileHistory(l, s)
	}
	return s
}

// written are the columns that a change writes that is not MetadataOnly.
func written(l *layout) (list []value) {
	for v := vState; v < columns; v++ {
		if l.column[v] != "" {
			list = append(list, v)
		}
	}
	return list
}

// writing is a statement that changes one row. Where the engine can, the row of
// the history is written by the same statement, which then returns the time.
func (e *engine) writing(l *layout, history bool, write func(*builder)) *statement {
	b := &builder{e: e}
	if !e.returning {
		write(b)
		return b.statement()
	}
	b.write("WITH changed AS (")
	write(b)
	b.write(" RETURNING ", b.now(), " AS at)")
	if history {
		b.write(", noted AS (")
		b.row(l, func(v value) string {
			if v == vNow {
				return "changed.at"
			}
			return b.arg(v)
		}, " FROM changed")
		b.write(")")
	}
	b.write(" SELECT at FROM changed")
	return b.statement()
}

// update writes the change of the row that has the expected revision and state.
// A row gets another revision every time, so that engines which count only
// rows that differ count it too.
func (b *builder) update(l *layout, list []value, timed bool) {
	b.write("UPDATE ", l.table, " SET ")
	comma := ""
	for _, v := range list {
		if l.column[v] == "" {
			continue
		}
		b.write(comma, l.column[v], " = ")
		if v == vDeadline && !timed { // nothing else here tells the time
			b.write(b.stored(l, b.told(b.now())+" + "+b.arg(vWithin)))
		} else {
			b.write(b.assigned(l, v))
		}
		comma = ", "
	}
	b.condition(l)
}

// condition is that of the compare-and-set: see layout.revision.
func (b *builder) condition(l *layout) {
	b.write(" WHERE ")
	b.key(l)
	if l.column[vRevision] != "" {
		b.write(" AND ", l.column[vRevision], " = ", b.arg(vExpect))
	}
	if token := l.column[vToken]; token != "" {
		if l.foreign { // see layout.noToken
			token = "CASE WHEN length(" + token + ") > 0 THEN " + token + " ELSE " + b.e.zero + " END"
		}
		b.write(" AND ", token, " = ", b.arg(vExpectToken))
	}
	b.write(" AND ")
	b.equal(l, vState, vFrom)
}

// insert writes the first row of an object. Where a row without numbers is there
// already, that one is changed, if the engine can say so.
func (b *builder) insert(l *layout) {
	var list []value
	for v := range columns {
		if l.column[v] != "" {
			list = append(list, v)
		}
	}
	b.write("INSERT INTO ", l.table, " (")
	for i, v := range list {
		if i > 0 {
			b.write(", ")
		}
		b.write(l.column[v])
	}
	b.write(") VALUES (")
	for i, v := range list {
		if i > 0 {
			b.write(", ")
		}
		b.write(b.assigned(l, v))
	}
	b.write(")")
	if !b.e.upsert {
		return
	}
	key := l.column[vID]
	if l.column[vMachine] != "" {
		key = l.column[vMachine] + ", " + key
	}
	b.write(" ON CONFLICT (", key, ") DO ")
	if l.deletes || l.column[vRevision] == "" {
		b.write("NOTHING")
		return
	}
	b.write("UPDATE SET ")
	for i, v := range list {
		if i > 0 {
			b.write(", ")
		}
		b.write(l.column[v], " = excluded.", l.column[v])
	}
	b.write(" WHERE ", l.table, ".", l.column[vRevision], " = ", b.arg(vExpect), " AND ", l.table, ".", l.column[vState], " = ", b.arg(vFrom))
}

// keys writes a condition on any of n objects.
func (b *builder) keys(l *layout, n int) {
	for i := range n {
		if i > 0 {
			b.write(" OR ")
		}
		b.write("(")
		b.key(l)
		b.write(")")
	}
}

// locking is a statement that locks the rows of n objects, in the order of their
// keys, and reads their numbers and states.
func (e *engine) locking(l *layout, n int, mode string) *statement {
	b := &builder{e: e}
	b.write("SELECT ", b.read(l, vMachine), ", ", l.column[vID], ", ", b.read(l, vState), ", ", b.read(l, vRevision), ", ", b.read(l, vToken), " FROM ", l.table, " WHERE ")
	b.keys(l, n)
	b.write(" ORDER BY ")
	if l.column[vMachine] != "" {
		b.write(l.column[vMachine], ", ")
	}
	b.write(b.id(l), mode)
	return b.statement()
}

// ghost makes a row without a state for an object that never existed, so that it
// can be locked. It changes nothing that anybody reads.
func (e *engine) ghost(l *layout) *statement {
	b := &builder{e: e}
	var names, list []string
	for v := range columns {
		if l.column[v] == "" || v == vDeadline || v == vArgs || v == vWorkOptions || v == vPayload || v == vSaved {
			continue
		}
		names = append(names, l.column[v])
		switch {
		case v <= vState || v == vToken:
			list = append(list, b.arg(v))
		case v == vChangedAt:
			list = append(list, b.stored(l, "0"))
		case v.kind() == ofNumber:
			list = append(list, "0")
		default:
			list = append(list, "''")
		}
	}
	b.write("INSERT INTO ", l.table, " (", strings.Join(names, ", "), ") VALUES (", strings.Join(list, ", "), ")")
	if e.upsert {
		b.write(" ON CONFLICT DO NOTHING")
	} else {
		b.write(fmt.Sprintf(" ON DUPLICATE KEY UPDATE %[1]s = %[1]s", l.column[vID]))
	}
	return b.statement()
}
