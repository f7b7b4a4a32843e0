package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// List implements [lifecycle.Store].
func (s *Store) List(ctx context.Context, q lifecycle.Query) (list []lifecycle.StoredRecord, err error) {
	err = s.call(ctx, func(in *session) error {
		list, err = in.list(ctx, q)
		return err
	})
	return list, err
}

func (s *session) list(ctx context.Context, q lifecycle.Query) (records []lifecycle.StoredRecord, err error) {
	if q.Limit <= 0 {
		return nil, fmt.Errorf("%w: limit %d of a query", lifecycle.ErrInvalid, q.Limit)
	}
	if err := s.l.answers(&q); err != nil {
		return nil, err
	}
	if len(q.States) > 0 { // an absent object is in no state
		q.States = slices.DeleteFunc(slices.Clone(q.States), func(state string) bool { return state == "" || state == s.l.removed })
		if len(q.States) == 0 {
			return nil, nil
		}
	}
	if s.l.selectsNothing(&q) {
		return nil, nil
	}
	query, args := s.listing(&q)
	rows, err := s.q.QueryContext(ctx, query, args...)
	err = each(rows, err, func(rows *sql.Rows) error {
		r, err := s.scan(rows, nil)
		records = append(records, r.StoredRecord)
		return err
	})
	if err != nil {
		return nil, failed(ctx, err)
	}
	return records, nil
}

// selectsNothing reports whether no record of the layout can match a query. A
// table without a column for deadlines or owners refuses every change that sets
// one, so that no record has one.
func (l *layout) selectsNothing(q *lifecycle.Query) bool {
	return l.machine != "" && q.Machine != l.machine ||
		q.Overdue && l.column[vDeadline] == "" ||
		q.NotOwnedBy != nil && l.column[vOwner] == ""
}

// lister writes the statement of a query, with its arguments.
type lister struct {
	*builder
	l    *layout
	args []any
}

// arg returns the placeholder of an argument. The value v gives its type.
func (w *lister) arg(v value, x any) string {
	w.args = append(w.args, x)
	return w.builder.arg(v)
}

func (s *session) listing(q *lifecycle.Query) (string, []any) {
	l, w := s.l, &lister{builder: &builder{e: s.e}, l: s.l}
	index := l.index(q)
	// PostgreSQL takes no hint. It would read the machine's rows in order of id and
	// expect to find a page soon. Planned by itself, the inner query has no order.
	fenced := s.e.fence != "" && (q.NotOwnedBy != nil || q.Unowned) && index != ""
	if fenced {
		w.write("SELECT * FROM (")
	}
	w.write("SELECT ")
	w.list(l, vMachine, q.WithoutPayload)
	if l.column[vMachine] == "" {
		w.args = append(w.args, q.Machine)
	}
	w.write(" FROM ", l.table)
	if index != "" && s.e.hint != "" {
		w.write(fmt.Sprintf(s.e.hint, s.e.quoted(index)))
	}
	w.write(" WHERE ")
	if l.column[vMachine] != "" {
		w.write(l.column[vMachine], " = ", w.arg(vMachine, q.Machine), " AND ")
	}
	if q.After != "" || !l.foreign {
		w.write(w.id(l), " > ", w.arg(vID, q.After), " AND ")
	}
	w.states(q.States)
	w.times(q)
	w.owners(q)
	if fenced {
		w.write(s.e.fence, ") found")
	}
	w.write(" ORDER BY ", w.id(l), " LIMIT ", w.arg(vNow, int64(q.Limit)))
	return w.text.String(), w.args
}

// states writes the condition on the state. Without states, the object exists.
func (w *lister) states(states []string) {
	list := func() string {
		places := make([]string, len(states))
		for i, state := range states {
			places[i] = w.arg(vState, state)
		}
		return strings.Join(places, ", ")
	}
	state := w.l.column[vState]
	if len(states) == 0 {
		w.write(state, " <> ", w.arg(vState, w.l.removed))
		return
	}
	w.write(state, " IN (", list(), ")")
	if w.l.foreign && w.e.exact != "" {
		w.write(" AND ", fmt.Sprintf(w.e.bytewise, state), " IN (", list(), ")")
	}
}

// times writes the conditions on age and deadline.
func (w *lister) times(q *lifecycle.Query) {
	now := func() string {
		if w.e.ownClock {
			return w.e.now
		}
		return w.arg(vNow, processNow())
	}
	if q.UnchangedFor > 0 {
		w.write(" AND ", w.l.column[vChangedAt], " <= ", w.stored(w.l, now()+" - "+w.arg(vWithin, micros(q.UnchangedFor))))
	}
	if q.Overdue {
		w.write(" AND ", w.l.column[vDeadline], " < ", w.stored(w.l, now()))
	}
	if q.NoDeadline && w.l.column[vDeadline] != "" {
		w.write(" AND ", w.l.column[vDeadline], " IS NULL")
	}
}

// mostRanges is the number of living owners up to which a query reads the ranges
// between them, and none of their objects. The time that SQLite and PostgreSQL take
// to plan grows with the square of the number of ranges, to seconds for 1,000
// owners. A query with more owners reads all owned objects.
const mostRanges = 20

// owners writes the conditions on the owner. A user's table may have no column for
// it, NULL in it, and names of any collation.
func (w *lister) owners(q *lifecycle.Query) {
	if w.l.column[vOwner] == "" {
		return
	}
	owner, epoch := w.read(w.l, vOwner), w.read(w.l, vEpoch)
	if q.Unowned {
		w.write(" AND ", owner, " = ''")
		if !w.l.foreign {
			w.write(" AND ", epoch, " = 0") // always true: it lets the index find the deadline too
		}
	}
	if q.NotOwnedBy == nil {
		return
	}
	alive := inOrder(q.NotOwnedBy)
	if !w.l.foreign && len(alive) <= mostRanges {
		w.write(" AND (", strings.Join(w.gaps(alive), " OR "), ")")
		return
	}
	if w.l.foreign {
		w.write(" AND ", owner, " <> ''")
		owner = fmt.Sprintf(w.e.bytewise, owner)
	} else {
		w.write(" AND ", owner, " > ''") // a range of the index
	}
	if len(alive) > 0 {
		pairs := make([]string, len(alive))
		for i, o := range alive {
			pairs[i] = "(" + w.arg(vOwner, o.Name) + ", " + w.arg(vEpoch, int64(o.Epoch)) + ")"
		}
		w.write(" AND (", owner, ", ", epoch, ") NOT IN (", w.e.pairs, strings.Join(pairs, ", "), ")")
	}
}

// gaps returns the conditions on the ranges of the index between these owners, which
// are in order. The empty name is that of no owner and is in no range.
func (w *lister) gaps(owners []lifecycle.OwnerRef) (ranges []string) {
	owner, epoch := w.l.column[vOwner], w.l.column[vEpoch]
	name := func(op string, o lifecycle.OwnerRef) string { return owner + op + w.arg(vOwner, o.Name) }
	number := func(op string, o lifecycle.OwnerRef) string { return epoch + op + w.arg(vEpoch, int64(o.Epoch)) }
	add := func(conditions ...string) { ranges = append(ranges, "("+strings.Join(conditions, " AND ")+")") }

	var last lifecycle.OwnerRef
	for _, o := range owners {
		switch {
		case o.Name == last.Name:
			add(name(" = ", o), number(" > ", last), number(" < ", o))
		default:
			if last.Name != "" {
				add(name(" = ", last), number(" > ", last))
			}
			add(name(" > ", last), name(" < ", o))
			add(name(" = ", o), number(" < ", o))
		}
		last = o
	}
	if last.Name != "" {
		add(name(" = ", last), number(" > ", last))
	}
	add(name(" > ", last))
	return ranges
}

// inOrder returns the owners in order of name and epoch, each once. An owner
// without a name, or with an epoch that no column holds, owns nothing.
func inOrder(owners []lifecycle.OwnerRef) []lifecycle.OwnerRef {
	list := slices.DeleteFunc(slices.Clone(owners), func(o lifecycle.OwnerRef) bool { return o.Name == "" || o.Epoch > maxNumber })
	slices.SortFunc(list, func(a, b lifecycle.OwnerRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Epoch, b.Epoch))
	})
	return slices.Compact(list)
}

// index is that of the store's own tables which finds the fewest rows. MariaDB and
// SQLite would rather read all rows of a machine, because those are in order.
func (l *layout) index(q *lifecycle.Query) string {
	switch {
	case l.foreign:
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
