package sqlstore

import (
	"fmt"
	"strings"
)

// statements are the statements whose text never changes. Nil: the layout does not
// need it.
type statements struct {
	get       *statement // a record by key
	getLocked *statement // the same, with a lock that other writers wait for

	insert              *statement // the row of an object that has none
	update              *statement
	retire              *statement // the same for a removed object: the fields of its payload stay
	remove              *statement // where removed objects have no row
	setMetadata         *statement // a MetadataOnly change without Timeout
	setMetadataDeadline *statement // a MetadataOnly change with Timeout
	reserve             *statement // a row without a state for an object that never existed
	claim               *statement // the same, and a lock of the row that reserve waits for

	addRow        *statement // a history row; nil if the statements above write it
	findRow       *statement // the history row at the sequence number of a change
	findRowLocked *statement // the same, locked: the newest version in every isolation level
	lastRow       *statement // the numbers of an object without a row

	clock *statement
}

// prepared returns the statements that are executed often.
func (s *statements) prepared() (list []*statement) {
	for _, st := range []*statement{
		s.get, s.getLocked, s.insert, s.update, s.retire, s.remove, s.setMetadata, s.setMetadataDeadline, s.addRow, s.findRow, s.lastRow,
	} {
		if st != nil {
			list = append(list, st)
		}
	}
	return list
}

func (e *engine) compile(l *layout) *statements {
	build := func(write func(*builder)) *statement {
		b := &builder{e: e, l: l}
		write(b)
		return b.statement()
	}
	locked := func(st *statement) *statement { return &statement{st.text + e.forShare, st.args} }
	s := &statements{
		get: build(func(b *builder) {
			b.add("SELECT ")
			b.record(vState, false) // the caller has the key
			b.add(" FROM ", l.objects.name, " WHERE ", b.key(&b.l.objects))
		}),
		insert:      build(func(b *builder) { b.change(true, b.insert) }),
		update:      build(func(b *builder) { b.change(true, func() { b.update(l.objects.from(vState), true) }) }),
		setMetadata: build(func(b *builder) { b.change(false, func() { b.update(l.objects.named(metadata...), false) }) }),
		clock:       build(func(b *builder) { b.add("SELECT ", e.now) }),
	}
	s.getLocked, s.retire = locked(s.get), s.update
	if len(l.objects.fields) > 0 {
		s.retire = build(func(b *builder) { b.change(true, func() { b.update(l.objects.from(vState), false) }) })
	}
	if l.objects.column[vDeadline] != "" {
		s.setMetadataDeadline = build(func(b *builder) {
			b.change(false, func() { b.update(l.objects.named(append(metadata, vDeadline)...), false) })
		})
	}
	if l.deletes {
		s.remove = build(func(b *builder) {
			b.change(true, func() { b.add("DELETE FROM ", l.objects.name, " WHERE ", b.unchanged()) })
		})
	}
	if e.reserve != "" && !l.objects.existing {
		s.reserve = build(func(b *builder) { b.reserve(e.reserve) })
		s.claim = build(func(b *builder) { b.reserve(e.claim) })
	}
	if !e.returning {
		s.addRow = build(func(b *builder) { b.addRow(b.value, " VALUES (", ")") })
	}
	s.findRow = build(func(b *builder) {
		b.selectHistory(vToken, vNow)
		b.add(" AND ", l.history.column[vSequence], " = ", b.value(vSequence))
	})
	s.findRowLocked = locked(s.findRow)
	if l.deletes {
		s.lastRow = build((*builder).lastRow)
	}
	return s
}

// change writes a statement that changes one row. On PostgreSQL it also writes the
// history row and returns the time.
func (b *builder) change(history bool, write func()) {
	if !b.e.returning {
		write()
		return
	}
	b.add("WITH changed AS (")
	write()
	b.add(" RETURNING ", b.now(), " AS at)")
	if history {
		b.add(", noted AS (")
		b.addRow(func(v value) string {
			if v == vNow {
				return "changed.at"
			}
			return b.value(v)
		}, " SELECT ", " FROM changed)")
	}
	b.add(" SELECT at FROM changed")
}

// insert writes the first row of an object.
func (b *builder) insert() {
	key := b.l.objects.column[vID]
	if machine := b.l.objects.column[vMachine]; machine != "" {
		key = machine + ", " + key
	}
	var names, assigned []string
	for _, v := range b.l.objects.from(vMachine) {
		names, assigned = append(names, b.l.objects.column[v]), append(assigned, b.assigned(v))
	}
	fields, values := b.fields()
	names, assigned = append(names, fields...), append(assigned, values...)
	b.add("INSERT INTO ", b.l.objects.name, " (", strings.Join(names, ", "), ") VALUES (", strings.Join(assigned, ", "), ")")
	if b.e.insertNew != "" {
		b.add(fmt.Sprintf(b.e.insertNew, key))
	}
}

// update writes columns of a row that has the expected revision and state. Every
// update writes another revision, so that an engine which counts only rows that
// differ counts the row. payload: the fields of the payload are among them.
func (b *builder) update(list []value, payload bool) {
	assigned := make([]string, len(list))
	for i, v := range list {
		assigned[i] = b.l.objects.column[v] + " = " + b.assigned(v)
	}
	if payload {
		fields, values := b.fields()
		for i, column := range fields {
			assigned = append(assigned, column+" = "+values[i])
		}
	}
	b.add("UPDATE ", b.l.objects.name, " SET ")
	b.list(assigned)
	b.add(" WHERE ", b.unchanged())
}

// unchanged returns the condition of the compare-and-set: see layout.revision.
func (b *builder) unchanged() string {
	conditions := []string{b.key(&b.l.objects), b.l.objects.column[vRevision] + " = " + b.value(vExpect)}
	if token := b.l.objects.column[vToken]; token != "" {
		if b.l.objects.existing { // see layout.noToken
			token = "CASE WHEN length(" + token + ") > 0 THEN " + token + " ELSE " + b.e.zeroByte + " END"
		}
		conditions = append(conditions, token+" = "+b.value(vExpectToken))
	}
	return strings.Join(append(conditions, b.same(&b.l.objects, vState, vFrom)), " AND ")
}

// reserve writes a row without a state, unless the key has a row. Readers see an absent
// object, as before.
func (b *builder) reserve(end string) {
	var names, list []string
	for _, v := range b.l.objects.from(vMachine) {
		is := "''"
		switch {
		case v == vMachine || v == vID:
			is = b.value(v)
		case v == vToken:
			is = b.literal(b.l.noToken)
		case v == vDeadline || v.kind() == ofBytes:
			is = "NULL"
		case v == vRevision || v == vSequence || v == vOperation: // see layout.floor
			is = b.literal(int64(b.l.floor))
		case v.kind() == ofNumber:
			is = "0"
		}
		names, list = append(names, b.l.objects.column[v]), append(list, is)
	}
	b.add("INSERT INTO ", b.l.objects.name, " (", strings.Join(names, ", "), ") VALUES (", strings.Join(list, ", "), ")", end)
}

// addRow writes a history row. Arg returns the expression of a value; before and
// after stand around the list of expressions.
func (b *builder) addRow(arg func(value) string, before, after string) {
	h := &b.l.history
	var names, list []string
	for _, v := range h.from(vMachine) {
		is := ""
		switch {
		case v == vNow:
			is = b.time(h, arg(v))
		case h.types[v] != nil:
			is = b.valueIn(h, v, v)
		default:
			is = arg(v)
		}
		names, list = append(names, h.column[v]), append(list, is)
	}
	b.add("INSERT INTO ", h.name, " (", strings.Join(names, ", "), ")", before, strings.Join(list, ", "), after)
}

// lastRow writes a query of the newest history row of an object, and of whether the
// object has a row at the same moment.
func (b *builder) lastRow() {
	b.add("SELECT h.*, CASE WHEN EXISTS (SELECT 1 FROM ", b.l.objects.name, " WHERE ", b.key(&b.l.objects), ") THEN 1 ELSE 0 END FROM (")
	b.selectHistory(vRevision, vSequence, vOperation, vActor, vEvent, vReason, vNow, vToken)
	b.add(" ORDER BY ", b.l.history.column[vSequence], " DESC LIMIT 1) h")
}
