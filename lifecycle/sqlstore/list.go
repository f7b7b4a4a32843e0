package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// List implements [lifecycle.Store]. Ids are in bytewise order; in an existing table whose ids
// have a [Type], in the order of the column.
//
// Errors, in addition to those of the interface: [errors.ErrUnsupported] for a query by
// age of an existing table without a column for ChangedAt.
func (s *Store) List(ctx context.Context, q lifecycle.Query) (records []lifecycle.StoredRecord, err error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	l := s.of(q.Machine)
	if q.UnchangedFor > 0 && l.objects.column[vChangedAt] == "" {
		return nil, fmt.Errorf("%w: query by age: the table has no column for %s", errors.ErrUnsupported, columnNames[vChangedAt])
	}
	if err := l.objects.checkTyped(vID, q.After); err != nil {
		return nil, err
	}
	given := len(q.States)
	q.States = slices.DeleteFunc(slices.Clone(q.States), func(state string) bool {
		return state == "" || state == l.removed || l.objects.checkTyped(vState, state) != nil
	})
	onlyAbsent := given > 0 && len(q.States) == 0 // an absent object is in no list
	err = s.call(ctx, func(in *session) error {
		records = nil
		if onlyAbsent || l.selectsNone(&q) {
			return nil
		}
		st := s.listing(l, &q)
		return in.query(ctx, st, st.args, func(rows *sql.Rows) error {
			r, err := l.scan(rows, nil)
			records = append(records, r.StoredRecord)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// selectsNone reports whether no record can match. An existing table without a
// column for deadlines or owners refuses every change that sets one.
func (l *layout) selectsNone(q *lifecycle.Query) bool {
	return q.Overdue && l.objects.column[vDeadline] == "" ||
		q.NotOwnedBy != nil && l.objects.column[vOwner] == ""
}

// listing returns the statement of a query. All its arguments are literals.
func (s *shared) listing(l *layout, q *lifecycle.Query) *statement {
	b := &builder{e: s.e, l: l}
	id := b.ordered(&l.objects, vID, l.objects.column[vID])
	index := l.index(q)
	if s.e.fence != "" && index == l.indexes+"_state" {
		return b.pagesByState(q)
	}
	// PostgreSQL has no index hints. It would read the machine's rows in order of id,
	// in the hope that a page is full soon. A subquery of its own has no order.
	fenced := s.e.fence != "" && (q.NotOwnedBy != nil || q.Unowned) && index != ""
	if fenced {
		b.add("SELECT * FROM (")
	}
	b.add("SELECT ")
	b.record(vMachine, q.WithoutPayload)
	b.add(" FROM ", l.objects.name)
	if index != "" && s.e.hint != "" {
		b.add(fmt.Sprintf(s.e.hint, s.e.quoted(index)))
	}
	b.add(" WHERE ")
	if machine := l.objects.column[vMachine]; machine != "" {
		b.add(machine, " = ", b.literal(q.Machine), " AND ")
	}
	if q.After != "" || !l.objects.existing {
		b.add(id, " > ", b.literalIn(&l.objects, vID, q.After), " AND ")
	}
	b.inStates(q.States)
	b.byTime(q)
	b.byOwner(q)
	if fenced {
		b.add(s.e.fence, ") found")
	}
	b.add(" ORDER BY ", id, " LIMIT ", b.literal(int64(q.Limit)))
	return b.statement()
}

// pagesByState returns a query of one page per state, of which the first rows are the page
// of all. PostgreSQL has no index hints: it would read the machine's rows in order of id
// where it believes that a page is full soon. Only the index of states has the order of
// state and id, and only a range of both, not an equality, makes that order count.
func (b *builder) pagesByState(q *lifecycle.Query) *statement {
	o, limit := &b.l.objects, int64(q.Limit)
	pair := "(" + o.column[vState] + ", " + o.column[vID] + ")"
	b.add("SELECT * FROM (")
	for i, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
		if i > 0 {
			b.add(" UNION ALL ")
		}
		b.add("(SELECT ")
		b.record(vMachine, q.WithoutPayload)
		b.add(" FROM ", o.name, " WHERE ", o.column[vMachine], " = ", b.literal(q.Machine),
			" AND ", pair, " > (", b.literal(state), ", ", b.literal(q.After), ") AND ", o.column[vState], " <= ", b.literal(state))
		b.byTime(q)
		b.byOwner(q)
		b.add(" ORDER BY ", o.column[vState], ", ", o.column[vID], " LIMIT ", b.literal(limit), ")")
	}
	b.add(") found ORDER BY ", o.column[vID], " LIMIT ", b.literal(limit))
	return b.statement()
}

// index returns the index of the store's own table that finds the fewest rows.
// MariaDB and SQLite would rather read all rows of a machine, which are in order.
func (l *layout) index(q *lifecycle.Query) string {
	switch {
	case l.objects.existing:
		return ""
	case q.Overdue:
		return l.indexes + "_deadline"
	case q.NotOwnedBy != nil, q.Unowned && q.NoDeadline && len(q.States) > 0:
		return l.indexes + "_owner"
	case len(q.States) > 0 && q.UnchangedFor > 0:
		return l.indexes + "_age"
	case len(q.States) > 0:
		return l.indexes + "_state"
	}
	return ""
}

// inStates writes the condition on the state. Without states the object exists.
func (b *builder) inStates(states []string) {
	column := b.l.objects.column[vState]
	switch {
	case len(states) == 0 && b.l.deletes: // removed objects have no row
		b.add("1 = 1")
		return
	case len(states) == 0:
		b.add(column, " <> ", b.literalIn(&b.l.objects, vState, b.l.removed))
		return
	}
	list := func() string {
		places := make([]string, len(states))
		for i, state := range states {
			places[i] = b.literalIn(&b.l.objects, vState, state)
		}
		return " IN (" + strings.Join(places, ", ") + ")"
	}
	b.add(column, list())
	if b.l.objects.existing && b.l.objects.types[vState] == nil {
		b.add(" AND ", b.ordered(&b.l.objects, vState, column), list())
	}
}

// byTime writes the conditions on age and deadline.
func (b *builder) byTime(q *lifecycle.Query) {
	if q.UnchangedFor > 0 {
		b.add(" AND ", b.l.objects.column[vChangedAt], " <= ", b.time(&b.l.objects, b.clock()+" - "+b.literal(micros(q.UnchangedFor))))
	}
	if q.Overdue {
		b.add(" AND ", b.l.objects.column[vDeadline], " < ", b.time(&b.l.objects, b.clock()))
	}
	if q.NoDeadline && b.l.objects.column[vDeadline] != "" {
		b.add(" AND ", b.l.objects.column[vDeadline], " IS NULL")
	}
}

// maxRanges is the number of owners up to which a query reads the ranges between
// them, and none of their objects. The time that SQLite and PostgreSQL take to plan
// grows with the square of the number of ranges, to seconds for 1,000 owners. A
// query with more owners reads all owned objects.
const maxRanges = 20

// byOwner writes the conditions on the owner.
func (b *builder) byOwner(q *lifecycle.Query) {
	if b.l.objects.column[vOwner] == "" {
		return
	}
	if q.Unowned {
		b.add(" AND ", b.read(&b.l.objects, vOwner), " = ''")
		if !b.l.objects.existing {
			b.add(" AND ", b.read(&b.l.objects, vEpoch), " = 0") // always true: it lets the index find the deadline too
		}
	}
	if q.NotOwnedBy == nil {
		return
	}
	owners := sorted(q.NotOwnedBy)
	switch {
	case b.l.objects.existing:
		b.add(" AND ", b.read(&b.l.objects, vOwner), " <> ''")
		b.notIn(b.ordered(&b.l.objects, vOwner, b.read(&b.l.objects, vOwner)), owners)
	case len(owners) > maxRanges:
		b.add(" AND ", b.l.objects.column[vOwner], " > ''") // a range of the index
		b.notIn(b.l.objects.column[vOwner], owners)
	default:
		b.between(owners)
	}
}

func (b *builder) notIn(owner string, owners []lifecycle.OwnerRef) {
	if len(owners) == 0 {
		return
	}
	pairs := make([]string, len(owners))
	for i, o := range owners {
		pairs[i] = "(" + b.literal(o.Name) + ", " + b.literal(int64(o.Epoch)) + ")"
	}
	b.add(" AND (", owner, ", ", b.read(&b.l.objects, vEpoch), ") NOT IN (", b.e.pairs, strings.Join(pairs, ", "), ")")
}

// between writes a condition on the ranges of the index between sorted owners. The
// empty name, of no owner, is in no range.
func (b *builder) between(owners []lifecycle.OwnerRef) {
	owner := func(op, name string) string { return b.l.objects.column[vOwner] + op + b.literal(name) }
	epoch := func(op string, epoch uint64) string { return b.l.objects.column[vEpoch] + op + b.literal(int64(epoch)) }
	var ranges []string
	add := func(conditions ...string) { ranges = append(ranges, "("+strings.Join(conditions, " AND ")+")") }
	var last lifecycle.OwnerRef
	for _, o := range owners {
		if o.Name == last.Name {
			add(owner(" = ", o.Name), epoch(" > ", last.Epoch), epoch(" < ", o.Epoch))
		} else {
			if last.Name != "" {
				add(owner(" = ", last.Name), epoch(" > ", last.Epoch))
			}
			add(owner(" > ", last.Name), owner(" < ", o.Name))
			add(owner(" = ", o.Name), epoch(" < ", o.Epoch))
		}
		last = o
	}
	if last.Name != "" {
		add(owner(" = ", last.Name), epoch(" > ", last.Epoch))
	}
	add(owner(" > ", last.Name))
	b.add(" AND (", strings.Join(ranges, " OR "), ")")
}

// sorted returns the owners in order of name and epoch, each once. An owner without
// a name, or with an epoch that no column holds, owns nothing.
func sorted(owners []lifecycle.OwnerRef) []lifecycle.OwnerRef {
	list := slices.DeleteFunc(slices.Clone(owners), func(o lifecycle.OwnerRef) bool { return o.Name == "" || o.Epoch > maxNumber })
	slices.SortFunc(list, func(a, b lifecycle.OwnerRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Epoch, b.Epoch))
	})
	return slices.Compact(list)
}
