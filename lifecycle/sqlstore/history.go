package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// historyColumn is a column of the history.
type historyColumn uint8

const (
	hMachine historyColumn = iota
	hID
	hSequence
	hRevision
	hToken
	hOperation
	hFrom
	hFromOrigin
	hTo
	hOrigin
	hEvent
	hActor
	hReason
	hAt
	historyColumns // how many columns there are
)

// What the columns are called in the store's own table, and what stands in them.
var (
	historyNames = [historyColumns]string{
		"machine", "id", "sequence", "revision", "token", "operation", "from_state", "from_origin", "to_state", "origin",
		"event", "actor", "reason", "at",
	}
	historyValues = [historyColumns]value{
		vMachine, vID, vSequence, vRevision, vToken, vOperation, vWas, vFromOrigin, vTo, vToOrigin, vEvent, vActor, vReason, vNow,
	}
)

// row writes the insertion of a row of the history.
func (b *builder) row(l *layout, arg func(value) string, from string) {
	var names, list []string
	for p, name := range l.historyColumn {
		if name == "" {
			continue
		}
		is := arg(historyValues[p])
		if historyColumn(p) == hAt && l.foreignHistory {
			is = b.stored(l, is)
		}
		names, list = append(names, name), append(list, is)
	}
	b.write("INSERT INTO ", l.history, " (")
	b.join(names)
	if from == "" {
		b.write(") VALUES (")
		b.join(list)
		b.write(")")
		return
	}
	b.write(") SELECT ")
	b.join(list)
	b.write(from)
}

// historyOf writes the condition on the rows of an object.
func (b *builder) historyOf(l *layout) {
	for _, p := range []historyColumn{hMachine, hID} {
		if name := l.historyColumn[p]; name != "" {
			b.write(name, " = ", b.arg(historyValues[p]))
			if l.foreignHistory && b.e.exact != "" {
				b.write(fmt.Sprintf(b.e.exact, name, b.arg(historyValues[p])))
			}
			b.write(" AND ")
		}
	}
}

// readHistory is a column of the history as it is read.
func (b *builder) readHistory(l *layout, p historyColumn) string {
	name, k := l.historyColumn[p], historyValues[p].kind()
	switch {
	case name == "" && p == hFromOrigin:
		return b.readHistory(l, hFrom)
	case name == "" && p == hOrigin:
		return b.readHistory(l, hTo)
	case name == "" && k == ofNumber:
		return "0"
	case name == "":
		return "''"
	case p == hAt && l.foreignHistory && l.native:
		return fmt.Sprintf(b.e.toMicros, name)
	case l.foreignHistory && k == ofText:
		return "COALESCE(" + name + ", '')"
	case l.foreignHistory && k == ofNumber:
		return "COALESCE(" + name + ", 0)"
	}
	return name
}

// selectHistory writes a select list from the history.
func (b *builder) selectHistory(l *layout, columns ...historyColumn) {
	list := make([]string, len(columns))
	for i, p := range columns {
		list[i] = b.readHistory(l, p)
	}
	b.write("SELECT ")
	b.join(list)
	b.write(" FROM ", l.history, " WHERE ")
	b.historyOf(l)
}

// numbers writes the query of the newest row of an object, and of whether the
// object is there at that same moment.
func (b *builder) numbers(l *layout) {
	b.write("SELECT h.*, CASE WHEN EXISTS (SELECT 1 FROM ", l.table, " WHERE ")
	b.key(l)
	b.write(") THEN 1 ELSE 0 END FROM (")
	b.selectHistory(l, hRevision, hSequence, hOperation, hActor, hEvent, hReason, hAt, hToken)
	b.write("1 = 1 ORDER BY ", l.historyColumn[hSequence], " DESC LIMIT 1) h")
}

// compileHistory makes the statements of the history.
func (e *engine) compileHistory(l *layout, s *statements) {
	if !e.returning {
		b := &builder{e: e}
		b.row(l, b.arg, "")
		s.row = b.statement()
	}
	b := &builder{e: e}
	b.selectHistory(l, hToken, hAt)
	b.write(l.historyColumn[hSequence], " = ", b.arg(vSequence))
	s.written = b.statement()
	s.writtenNow = s.written.locked(e)
	if l.deletes {
		b = &builder{e: e}
		b.numbers(l)
		s.numbers = b.statement()
	}
}

// History implements [lifecycle.Historian]. Rows are kept until somebody deletes
// them: see [Store.Trim].
func (s *Store) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) (list []lifecycle.HistoryRow, err error) {
	err = s.call(ctx, func(in *session) error {
		list, err = in.history(ctx, key, after, limit)
		return err
	})
	return list, err
}

func (s *session) history(ctx context.Context, key lifecycle.Key, after uint64, limit int) (list []lifecycle.HistoryRow, err error) {
	l := s.l
	if l.history == "" {
		return nil, fmt.Errorf("%w: this store keeps no history", errors.ErrUnsupported)
	}
	if err := s.checkKey(key); err != nil || limit <= 0 || after > maxNumber {
		return nil, err
	}
	b := &builder{e: s.e}
	b.selectHistory(l, hSequence, hRevision, hToken, hOperation, hFrom, hFromOrigin, hTo, hOrigin, hEvent, hActor, hReason, hAt)
	b.write(l.historyColumn[hSequence], " > ", b.arg(vSequence), " ORDER BY ", l.historyColumn[hSequence], " LIMIT ", b.arg(vNow))
	vals := vector{vMachine: key.Machine, vID: key.ID, vSequence: int64(after), vNow: int64(limit)}
	st := b.statement()
	rows, err := s.q.QueryContext(ctx, st.text, vals.of(st)...)
	err = each(rows, err, func(rows *sql.Rows) error {
		h := lifecycle.HistoryRow{Key: key}
		var sequence, rev, operation, at int64
		var token []byte
		err := rows.Scan(&sequence, &rev, &token, &operation, &h.From, &h.FromOrigin, &h.To, &h.Origin,
			&h.Event, (*string)(&h.Actor), &h.Reason, &at)
		h.Sequence, h.Operation, h.At = uint64(sequence), lifecycle.OpID(operation), clock(at)
		if l.historyColumn[hRevision] != "" {
			h.Revision = l.revision(rev, token)
		}
		copy(h.Token[:], token)
		list = append(list, h)
		return err
	})
	if err != nil {
		return nil, failed(ctx, err)
	}
	return list, nil
}
