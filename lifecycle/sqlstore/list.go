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
func (s *Store) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	l := s.of(q.Machine)
	o := &l.objects
	if q.UnchangedFor > 0 && o.col(vChangedAt) == "" {
		return nil, fmt.Errorf("%w: query by age: the table has no column for changed_at", errors.ErrUnsupported)
	}
	if _, err := o.column[vID].write(q.After); err != nil {
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
		return nil, s.call(ctx, func() error { return nil })
	}
	list := slices.DeleteFunc(o.all(), func(v value) bool {
		return q.WithoutPayload && (v == vPayload || v == vSaved || v == vArgs || v >= values)
	})
	b := &builder{engine: s.e, layout: l}
	if s.e.fence != "" && l.index(&q) == "_state" {
		b.pagesByState(&q, list)
	} else {
		b.page(&q, list)
	}
	return collect(ctx, s, b.statement(), nil, func(rows *sql.Rows) (lifecycle.StoredRecord, error) {
		return l.scan(rows, list)
	})
}

// page writes the query of a page. All its arguments are literals.
func (b *builder) page(q *lifecycle.Query, list []value) {
	o, index := &b.objects, b.index(q)
	id := b.ordered(o, vID, o.col(vID))
	// PostgreSQL has no index hints. It would read the machine's rows in order of id,
	// in the hope that a page is full soon. A subquery of its own has no order.
	fenced := b.fence != "" && (q.NotOwnedBy != nil || q.Unowned) && index != ""
	if fenced {
		b.add("SELECT * FROM (")
	}
	b.record(list)
	b.add(b.useIndex(o, index), " WHERE ")
	if machine := o.col(vMachine); machine != "" {
		b.add(machine, " = ", b.literal(q.Machine), " AND ")
	}
	if q.After != "" || !o.existing {
		b.add(id, " > ", b.placeIn(o, vID, param{name: q.After}), " AND ")
	}
	b.inStates(q.States)
	b.byTime(q)
	b.byOwner(q)
	if fenced {
		b.add(b.fence, ") found")
	}
	b.add(" ORDER BY ", id, " LIMIT ", b.literal(int64(q.Limit)))
}

// pagesByState writes a query of one page per state, of which the first rows are the page
// of all. PostgreSQL has no index hints: it would read the machine's rows in order of id
// where it believes that a page is full soon. Only the index of states has the order of
// state and id, and only a range of both, not an equality, makes that order count.
func (b *builder) pagesByState(q *lifecycle.Query, list []value) {
	o, limit := &b.objects, int64(q.Limit)
	pair := "(" + o.list([]value{vState, vID}) + ")"
	b.add("SELECT * FROM (")
	for i, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
		if i > 0 {
			b.add(" UNION ALL ")
		}
		b.add("(")
		b.record(list)
		b.add(" WHERE ", o.col(vMachine), " = ", b.literal(q.Machine),
			" AND ", pair, " > (", b.literal(state), ", ", b.literal(q.After), ") AND ", o.col(vState), " <= ", b.literal(state))
		b.byTime(q)
		b.byOwner(q)
		b.add(" ORDER BY ", o.list([]value{vState, vID}), " LIMIT ", b.literal(limit), ")")
	}
	b.add(") found ORDER BY ", o.col(vID), " LIMIT ", b.literal(limit))
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

// inStates writes the condition on the state. Without states the object exists: in an existing
// table, removed objects have no row.
func (b *builder) inStates(states []string) {
	in := func() string {
		return " IN (" + literals(states, func(state string) string { return b.placeIn(&b.objects, vState, param{name: state}) }) + ")"
	}
	switch {
	case len(states) == 0 && b.objects.existing:
		b.add("1 = 1")
	case len(states) == 0:
		b.add(b.objects.col(vState), " <> ''")
	default:
		b.add(b.objects.col(vState), in())
		if b.objects.existing && b.objects.column[vState].typ == nil {
			b.add(" AND ", b.ordered(&b.objects, vState, b.objects.col(vState)), in())
		}
	}
}

// byTime writes the conditions on age and deadline.
func (b *builder) byTime(q *lifecycle.Query) {
	if q.UnchangedFor > 0 {
		b.add(" AND ", b.objects.col(vChangedAt), " <= ", b.ago(&b.objects, q.UnchangedFor))
	}
	if q.Overdue {
		b.add(" AND ", b.objects.col(vDeadline), " < ", b.time(&b.objects, b.clock()))
	}
	if q.NoDeadline && b.objects.col(vDeadline) != "" {
		b.add(" AND ", b.objects.col(vDeadline), " IS NULL")
	}
}

// maxRanges is the number of owners up to which a query reads the ranges between
// them, and none of their objects. The time that SQLite and PostgreSQL take to plan
// grows with the square of the number of ranges, to seconds for 1,000 owners. A
// query with more owners reads all owned objects.
const maxRanges = 20

// byOwner writes the conditions on the owner.
func (b *builder) byOwner(q *lifecycle.Query) {
	owner, epoch := b.objects.col(vOwner), b.objects.col(vEpoch)
	if owner == "" {
		return
	}
	if b.objects.existing {
		owner, epoch = "COALESCE("+owner+", '')", "COALESCE("+epoch+", 0)"
	}
	if q.Unowned {
		b.add(" AND ", owner, " = ''")
		if !b.objects.existing {
			b.add(" AND ", epoch, " = 0") // always true: it lets the index find the deadline too
		}
	}
	if q.NotOwnedBy == nil {
		return
	}
	owners := sorted(q.NotOwnedBy)
	if !b.objects.existing && len(owners) <= maxRanges {
		b.between(owners)
		return
	}
	b.add(" AND ", owner, " > ''") // a range of the index
	if len(owners) > 0 {
		b.add(" AND (", b.ordered(&b.objects, vOwner, owner), ", ", epoch, ") NOT IN (", b.pairs, literals(owners, func(o lifecycle.OwnerRef) string {
			return "(" + b.literal(o.Name) + ", " + b.literal(int64(o.Epoch)) + ")"
		}), ")")
	}
}

// between writes a condition on the ranges of the index between sorted owners. The
// empty name, of no owner, is in no range.
func (b *builder) between(owners []lifecycle.OwnerRef) {
	owner := func(op, name string) string { return b.objects.col(vOwner) + op + b.literal(name) }
	epoch := func(op string, epoch uint64) string { return b.objects.col(vEpoch) + op + b.literal(int64(epoch)) }
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
