package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// List implements [lifecycle.Store]. Ids are in bytewise order; in an existing table whose ids
// have a [Type], in the order of the column. An After that no page ends with is
// [lifecycle.ErrInvalid]. In a column of text, and in any column of SQLite but the row id, a page
// may end with every text.
//
// Errors, in addition to those of the interface: [errors.ErrUnsupported] for a query by
// age of an existing table without a column for ChangedAt.
func (s *Store) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	l := s.of(q.Machine)
	o := &l.objects
	if q.UnchangedFor > 0 && o.col(vChangedAt) == "" {
		return nil, fmt.Errorf("%w: query by age: the table has no column for changed_at", errors.ErrUnsupported)
	}
	if err := s.e.checkCursor(&o.column[vID], q.After); err != nil {
		return nil, err
	}
	given := len(q.States)
	q.States = slices.DeleteFunc(slices.Clone(q.States), func(state string) bool {
		_, err := o.column[vState].write(state)
		return state == "" || err != nil
	})
	// An absent object is in no list. An existing table without a column for deadlines or
	// owners refuses every change that sets one.
	if given > 0 && len(q.States) == 0 || q.Overdue && o.col(vDeadline) == "" || q.NotOwnedBy != nil && o.col(vOwner) == "" {
		return nil, s.call(ctx, func() error { return nil }) // the store may be closed
	}
	list := slices.DeleteFunc(o.all(), func(v value) bool {
		return q.WithoutPayload && (v == vPayload || v == vSaved || v == vArgs || v >= values)
	})
	st := s.e.build(l, func(b *builder) string {
		if s.e.fence != "" && l.index(&q) == "_state" {
			return b.pagesByState(&q, list)
		}
		return b.page(&q, list)
	})
	return collect(ctx, s, st, nil, st.record)
}

// checkCursor refuses an id that no page ends with. The rows may have ids that its type does not
// read and, in a column of a type that is not definite, ids that it does not write.
func (e *engine) checkCursor(id *column, after string) error {
	_, err := id.write(after)
	if err == nil || !e.isDefinite(id.sqlType) {
		return nil
	}
	if _, unread := id.typ.Read(after); unread != nil {
		return nil
	}
	return err
}

// page returns the query of a page. All its arguments are literals.
func (b *builder) page(q *lifecycle.Query, list []value) string {
	o, index := &b.objects, b.index(q)
	id := b.ordered(o, vID, o.col(vID))
	text := b.record(list) + b.useIndex(o, index) + " WHERE "
	if machine := o.col(vMachine); machine != "" {
		text += machine + " = " + b.literal(q.Machine) + " AND "
	}
	if q.After != "" || !o.existing {
		text += id + " > " + b.placeIn(o, vID, q.After) + " AND "
	}
	text += b.inStates(q.States) + b.byTime(q) + b.byOwner(q)
	// PostgreSQL has no index hints. It would read the machine's rows in order of id,
	// in the hope that a page is full soon. A subquery of its own has no order.
	if b.fence != "" && (q.NotOwnedBy != nil || q.Unowned) && index != "" {
		text = "SELECT * FROM (" + text + b.fence + ") found"
	}
	return text + " ORDER BY " + id + " LIMIT " + b.literal(int64(q.Limit))
}

// pagesByState returns the query of one page per state, of which the first rows are the page
// of all. PostgreSQL has no index hints: it would read the machine's rows in order of id
// where it believes that a page is full soon. Only the index of states has the order of
// state and id, and only a range of both, not an equality, makes that order count.
func (b *builder) pagesByState(q *lifecycle.Query, list []value) string {
	o, limit := &b.objects, int64(q.Limit)
	order := o.list([]value{vState, vID})
	pages := make([]string, 0, len(q.States))
	for _, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
		pages = append(pages, "("+b.record(list)+" WHERE "+o.col(vMachine)+" = "+b.literal(q.Machine)+
			" AND ("+order+") > ("+b.literal(state)+", "+b.literal(q.After)+") AND "+o.col(vState)+" <= "+b.literal(state)+
			b.byTime(q)+b.byOwner(q)+" ORDER BY "+order+" LIMIT "+b.literal(limit)+")")
	}
	all := strings.Join(pages, " UNION ALL ")
	return "SELECT * FROM (" + all + ") found ORDER BY " + o.col(vID) + " LIMIT " + b.literal(limit)
}

// index returns the end of the name of the index of the store's own table that finds the fewest
// rows. MariaDB and SQLite would rather read all rows of a machine, which are in order.
func (l *layout) index(q *lifecycle.Query) string {
	switch {
	case l.objects.existing:
		return ""
	case q.Overdue:
		return "_deadline"
	case q.NotOwnedBy != nil, q.Unowned && q.NoDeadline && len(q.States) > 0:
		return "_owner"
	case len(q.States) > 0 && q.UnchangedFor > 0:
		return "_age"
	case len(q.States) > 0:
		return "_state"
	}
	return ""
}

// inStates returns the condition on the state. Without states the object exists: in an existing
// table, removed objects have no row.
func (b *builder) inStates(states []string) string {
	o := &b.objects
	in := func() string {
		return " IN (" + literals(states, func(state string) string { return b.placeIn(o, vState, state) }) + ")"
	}
	switch {
	case len(states) == 0 && o.existing:
		return "1 = 1"
	case len(states) == 0:
		return o.col(vState) + " <> ''"
	case o.existing && o.column[vState].typ == nil:
		return o.col(vState) + in() + " AND " + b.ordered(o, vState, o.col(vState)) + in()
	}
	return o.col(vState) + in()
}

// byTime returns the conditions on age and deadline.
func (b *builder) byTime(q *lifecycle.Query) (text string) {
	if q.UnchangedFor > 0 {
		text += " AND " + b.objects.col(vChangedAt) + " <= " + b.ago(&b.objects, q.UnchangedFor)
	}
	if q.Overdue {
		text += " AND " + b.objects.col(vDeadline) + " < " + b.time(&b.objects, b.clock())
	}
	if q.NoDeadline && b.objects.col(vDeadline) != "" {
		text += " AND " + b.objects.col(vDeadline) + " IS NULL"
	}
	return text
}

// maxRanges is the number of owners up to which a query reads the ranges between
// them, and none of their objects. The time that SQLite and PostgreSQL take to plan
// grows with the square of the number of ranges, to seconds for 1,000 owners. A
// query with more owners reads all owned objects.
const maxRanges = 20

// byOwner returns the conditions on the owner.
func (b *builder) byOwner(q *lifecycle.Query) (text string) {
	owner, epoch, existing := b.objects.col(vOwner), b.objects.col(vEpoch), b.objects.existing
	if owner == "" {
		return ""
	}
	if existing {
		owner, epoch = "COALESCE("+owner+", '')", "COALESCE("+epoch+", 0)"
	}
	if q.Unowned {
		text += " AND " + owner + " = ''"
		if !existing {
			text += " AND " + epoch + " = 0" // always true: it lets the index find the deadline too
		}
	}
	owners := sorted(q.NotOwnedBy)
	switch {
	case q.NotOwnedBy == nil:
		return text
	case !existing && len(owners) <= maxRanges:
		return text + b.between(owners)
	}
	text += " AND " + b.objects.col(vOwner) + " > ''" // a range of the index; NULL is not in it
	if len(owners) > 0 {
		pairs := literals(owners, func(o lifecycle.OwnerRef) string {
			return "(" + b.literal(o.Name) + ", " + b.literal(int64(o.Epoch)) + ")"
		})
		text += " AND (" + b.ordered(&b.objects, vOwner, owner) + ", " + epoch + ") NOT IN (" + b.pairs + pairs + ")"
	}
	return text
}

// between returns a condition on the ranges of the index between sorted owners. The
// empty name, of no owner, is in no range.
func (b *builder) between(owners []lifecycle.OwnerRef) string {
	owner := func(op, name string) string { return b.objects.col(vOwner) + op + b.literal(name) }
	epoch := func(op string, epoch uint64) string { return b.objects.col(vEpoch) + op + b.literal(int64(epoch)) }
	var ranges []string
	add := func(conditions ...string) { ranges = append(ranges, "("+strings.Join(conditions, " AND ")+")") }
	var last lifecycle.OwnerRef
	endName := func() { // later epochs of the last name
		if last.Name != "" {
			add(owner(" = ", last.Name), epoch(" > ", last.Epoch))
		}
	}
	for _, o := range owners {
		if o.Name == last.Name {
			add(owner(" = ", o.Name), epoch(" > ", last.Epoch), epoch(" < ", o.Epoch))
		} else {
			endName()
			add(owner(" > ", last.Name), owner(" < ", o.Name))
			add(owner(" = ", o.Name), epoch(" < ", o.Epoch))
		}
		last = o
	}
	endName()
	add(owner(" > ", last.Name))
	return " AND (" + strings.Join(ranges, " OR ") + ")"
}

// sorted returns the owners in order of name and epoch, each once. An owner with an epoch that
// no column holds owns nothing.
func sorted(owners []lifecycle.OwnerRef) []lifecycle.OwnerRef {
	list := slices.DeleteFunc(slices.Clone(owners), func(o lifecycle.OwnerRef) bool { return o.Epoch > maxNumber })
	slices.SortFunc(list, func(a, b lifecycle.OwnerRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Epoch, b.Epoch))
	})
	return slices.Compact(list)
}
