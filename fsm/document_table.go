package fsm

import (
	"fmt"
	"reflect"
	"slices"
)

// table makes the table of a document that the reader accepted. The error is a
// [*DocumentError].
func (f *tableForm) table(data []byte) (*Table, error) {
	if len(f.States) > MaxStates {
		path, text := fmt.Sprintf("states[%d]", MaxStates), fmt.Sprintf("more than %d states", MaxStates)
		return nil, faultAt(data, f.States[MaxStates].offset, path, text)
	}
	rows, at, fault := f.rows()
	if fault != "" {
		return nil, faultAt(data, f.Transitions[at].offset, fmt.Sprintf("transitions[%d]", at), fault)
	}
	b := newFormBuilder(f)
	b.table(f)
	for _, r := range rows {
		b.row(r)
	}
	t := b.t
	t.compileLater()
	t.Events, t.Undeclared = b.events.others, b.states.others
	if f.Actors == nil {
		t.Actors = convert[Actor](b.actors.others)
	} else {
		t.UndeclaredActors = convert[Actor](b.actors.others)
	}
	switch {
	case len(t.Undeclared) > MaxStates:
		return nil, faultAt(data, 0, "", fmt.Sprintf("more than %d states that are not declared", MaxStates))
	case len(t.Events) > MaxEvents:
		return nil, faultAt(data, 0, "", fmt.Sprintf("more than %d events", MaxEvents))
	}
	return t, nil
}

// joinedRow is a row with all its sources.
type joinedRow struct {
	*rowForm
	from []string
}

// rows joins the transitions that have the same number. A fault is in the
// transition with the index at.
func (f *tableForm) rows() (rows []joinedRow, at int, fault string) {
	numbered := make(map[int]int) // index of the row, by its number
	for i := range f.Transitions {
		tr := &f.Transitions[i]
		if tr.Row != nil {
			if r, ok := numbered[*tr.Row]; ok {
				if !tr.sameRow(rows[r].rowForm) {
					return nil, i, fmt.Sprintf("differs in more than the source from the transition before it in row %d", *tr.Row)
				}
				rows[r].from = append(rows[r].from, tr.From)
				continue
			}
			numbered[*tr.Row] = len(rows)
		}
		if len(rows) == MaxRows {
			return nil, i, fmt.Sprintf("more than %d rows", MaxRows)
		}
		rows = append(rows, joinedRow{rowForm: tr, from: []string{tr.From}})
	}
	return rows, 0, ""
}

// sameRow reports whether two transitions differ in the source only.
func (f rowForm) sameRow(other *rowForm) bool {
	f.From, f.offset = other.From, other.offset
	return reflect.DeepEqual(&f, other)
}

// formBuilder turns the names of a document into the indexes of a table.
type formBuilder struct {
	t                      *Table
	states, events, actors names
}

func newFormBuilder(f *tableForm) *formBuilder {
	var states []string
	for i := range f.States {
		states = append(states, f.States[i].Name)
	}
	actors := f.Actors
	timed := func(tr rowForm) bool { return tr.timeout > 0 }
	if actors != nil && slices.ContainsFunc(f.Transitions, timed) && !slices.Contains(actors, string(Sweeper)) {
		actors = append(actors, string(Sweeper))
	}
	return &formBuilder{
		t:      &Table{Actors: convert[Actor](actors)},
		states: newNames(states), events: newNames(nil), actors: newNames(actors),
	}
}

func (b *formBuilder) table(f *tableForm) {
	t := b.t
	t.Name, t.Title, t.Confidence = f.Name, string(f.Title), string(f.Confidence)
	t.Initial, t.Initials = b.states.optional(f.Initial), b.states.all(f.Initials)
	if slices.Equal(t.Initials, []int{t.Initial}) {
		t.Initials = nil
	}
	for i := range f.States {
		s := &f.States[i]
		kind := Kind(slices.Index(kindForms[:], s.Kind))
		if s.Absent {
			kind = Absent
		}
		t.States = append(t.States, TableState{
			Name: s.Name, Kind: kind, Target: b.states.optional(s.Target), Manual: string(s.Manual), Doc: string(s.Note),
		})
	}
}

func (b *formBuilder) row(r joinedRow) {
	row := TableRow{
		From: b.states.all(r.from), Any: r.Any, Except: b.states.all(r.Except), Origin: b.states.all(r.Origin),
		Event: b.events.of(r.Event), Actors: b.actors.all(r.Actors), Guard: r.Guard, To: b.states.optional(r.To),
		Forced: r.Forced, Supersede: r.Supersede, Timeout: r.timeout, Doc: string(r.Note),
	}
	switch {
	case r.Ignore:
		row.Then = ThenIgnore
	case r.Return:
		row.Then = ThenReturn
	}
	b.t.Rows = append(b.t.Rows, row)
}

// names gives names their indexes: first the declared ones, then the others in the
// order of their use.
type names struct {
	index    map[string]int
	declared int
	others   []string
}

func newNames(declared []string) names {
	return names{index: numbered(declared), declared: len(declared)}
}

func (n *names) of(name string) int {
	i, known := n.index[name]
	if !known {
		i = n.declared + len(n.others)
		n.index[name] = i
		n.others = append(n.others, name)
	}
	return i
}

func (n *names) all(list []string) (indexes []int) {
	for _, name := range list {
		indexes = append(indexes, n.of(name))
	}
	return indexes
}

// optional returns -1 for no name.
func (n *names) optional(name *string) int {
	if name == nil {
		return -1
	}
	return n.of(*name)
}

func convert[To, From ~string](list []From) (converted []To) {
	for _, s := range list {
		converted = append(converted, To(s))
	}
	return converted
}
