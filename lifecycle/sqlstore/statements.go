package sqlstore

import (
	"fmt"
	"slices"
)

// statements are the statements whose text never changes. Nil: the layout does not
// need it.
type statements struct {
	get       *statement // a record by key
	getLocked *statement // the same, with a lock that other writers wait for

	insert      *statement // the row of an object that has none
	update      *statement
	remove      *statement // where removed objects have no row
	setMetadata *statement // a MetadataOnly change
	claim       *statement // a row without a state, unless the key has a row, and a lock of the row

	addRow        *statement // a history row; nil if the statements above write it
	findRow       *statement // the history row at the sequence number of a change
	findRowLocked *statement // the same, locked: the newest version in every isolation level
	lastRow       *statement // the newest history row, for an object without a row
}

// prepared returns the statements that are executed often.
func (s *statements) prepared() []*statement {
	return slices.DeleteFunc([]*statement{
		s.get, s.getLocked, s.insert, s.update, s.remove, s.setMetadata, s.addRow, s.findRow, s.lastRow,
	}, func(st *statement) bool { return st == nil })
}

func (e *engine) compile(l *layout) *statements {
	build := func(write func(*builder) string) *statement { return e.build(l, write) }
	locked := func(st *statement) *statement {
		with := *st
		with.text += e.forShare
		return &with
	}
	o, h := &l.objects, &l.history
	s := &statements{
		get:         build(func(b *builder) string { return b.record(o.all()) + " WHERE " + b.key(o) }),
		insert:      build(func(b *builder) string { return b.change(true, b.insert()) }),
		update:      build(func(b *builder) string { return b.change(true, b.update(false)) }),
		setMetadata: build(func(b *builder) string { return b.change(false, b.update(true)) }),
		findRow: build(func(b *builder) string {
			return "SELECT " + b.read(h, []value{vToken, vNow}) + " FROM " + h.name + " WHERE " + b.key(h) + " AND " +
				h.col(vSequence) + " = " + b.value(vSequence)
		}),
	}
	s.getLocked, s.findRowLocked = locked(s.get), locked(s.findRow)
	if !e.returning {
		s.addRow = build(func(b *builder) string { return b.addRow(" VALUES (", ")", b.value) })
	}
	switch {
	case o.existing:
		s.remove = build(func(b *builder) string { return b.change(true, "DELETE FROM "+o.name+" WHERE "+b.unchanged()) })
		s.lastRow = build((*builder).lastRow)
	case e.claim != "":
		s.claim = build((*builder).claim)
	}
	return s
}

// record returns a query of records: a list of columns, and whether Saved is kept, because
// some drivers return an empty blob as nil. See statement.record.
func (b *builder) record(list []value) string {
	saved := "0"
	if slices.Contains(list, vSaved) {
		saved = "CASE WHEN " + b.objects.col(vSaved) + " IS NULL THEN 0 ELSE 1 END"
	}
	return "SELECT " + b.read(&b.objects, list) + ", " + saved + " FROM " + b.objects.name
}

// change returns a statement that changes one row by a text that was written. On PostgreSQL it
// also writes the history row and returns the time.
func (b *builder) change(history bool, text string) string {
	if !b.returning {
		return text
	}
	text = "WITH changed AS (" + text + " RETURNING " + b.now() + " AS at)"
	if history {
		text += ", noted AS (" + b.addRow(" SELECT ", " FROM changed", func(v value) string {
			if v == vNow {
				return "changed.at"
			}
			return b.value(v)
		}) + ")"
	}
	return text + " SELECT at FROM changed"
}

// insert returns the statement that writes the first row of an object.
func (b *builder) insert() string {
	text := b.insertInto(&b.objects, " VALUES (", ")", b.assigned)
	if b.insertNew != "" {
		text += fmt.Sprintf(b.insertNew, b.objects.list(b.objects.key))
	}
	return text
}

// insertInto returns an INSERT of all columns of a table. before and after stand around the list of
// their expressions.
func (b *builder) insertInto(t *table, before, after string, expression func(value) string) string {
	list := t.all()
	return "INSERT INTO " + t.name + " (" + t.list(list) + ")" + before + literals(list, expression) + after
}

// update returns a statement that writes the columns of a row that has the expected revision and
// state, or those of its metadata: the deadline then stays without a new one. Every update
// writes another revision, so that an engine which counts only rows that differ counts the row.
func (b *builder) update(onlyMetadata bool) string {
	list := slices.DeleteFunc(b.objects.all(), func(v value) bool {
		return v == vMachine || v == vID || onlyMetadata && !slices.Contains(metadata, v)
	})
	return "UPDATE " + b.objects.name + " SET " + literals(list, func(v value) string {
		assigned := b.assigned(v)
		if v == vDeadline && onlyMetadata {
			assigned = "COALESCE(" + assigned + ", " + b.objects.col(v) + ")"
		}
		return b.objects.col(v) + " = " + assigned
	}) + " WHERE " + b.unchanged()
}

// unchanged returns the condition of the compare-and-set: see layout.revision.
func (b *builder) unchanged() string {
	text := b.key(&b.objects) + " AND " + b.objects.col(vRevision) + " = " + b.value(vExpect)
	if token := b.objects.col(vToken); token != "" {
		if b.objects.existing { // see layout.noToken
			token = "CASE WHEN length(" + token + ") > 0 THEN " + token + " ELSE " + b.zeroByte + " END"
		}
		text += " AND " + token + " = " + b.value(vExpectToken)
	}
	return text + " AND " + b.same(&b.objects, vState, vFromState)
}

// claim returns a statement that writes a row without a state, unless the key has a row. Readers
// see an absent object, as before.
func (b *builder) claim() string {
	return b.insertInto(&b.objects, " VALUES (", ")", func(v value) string {
		switch {
		case v == vMachine || v == vID:
			return b.value(v)
		case v == vToken:
			return b.literal(b.noToken)
		case v.emptied():
			return "NULL"
		case v == vRevision || v == vSequence || v == vOperation: // see layout.floor
			return b.literal(int64(b.floor))
		case v.kind() == ofNumber:
			return "0"
		}
		return "''"
	}) + b.engine.claim
}

// addRow returns a statement that writes a history row. expression returns that of a value;
// before and after stand around the list of expressions.
func (b *builder) addRow(before, after string, expression func(value) string) string {
	h := &b.history
	return b.insertInto(h, before, after, func(v value) string {
		switch {
		case v == vNow:
			return b.time(h, expression(v))
		case h.column[v].typ != nil:
			return b.placeIn(h, v, param{v: v})
		}
		return expression(v)
	})
}

// lastRow returns a query of the newest history row of an object, and of whether the
// object has a row at the same moment.
func (b *builder) lastRow() string {
	o, h := &b.objects, &b.history
	return "SELECT " + b.read(h, h.all()) +
		", CASE WHEN EXISTS (SELECT 1 FROM " + o.name + " WHERE " + b.key(o) + ") THEN 1 ELSE 0 END" +
		" FROM " + h.name + " WHERE " + b.key(h) + " ORDER BY " + h.col(vSequence) + " DESC LIMIT 1"
}
