package fsm

import (
	"fmt"
	"reflect"
	"slices"
)

// table makes the table of a document that the reader accepted. The error is a
// [*DocumentError].
func (f *tableForm) table(data []byte) (*Table, error) {
	fail := func(offset int, list string, i int, text string) (*Table, error) {
		return nil, faultAt(data, offset, fmt.Sprintf("%s[%d]", list, i), text)
	}
	if len(f.States) > MaxStates {
		return fail(f.States[MaxStates].offset, "states", MaxStates, fmt.Sprintf("more than %d states", MaxStates))
	}
	rows, at, fault := f.rows()
	if fault != "" {
		return fail(f.Transitions[at].offset, "transitions", at, fault)
	}
	b := newFormBuilder(f)
	if len(b.t.Actors) > maxActors {
		return nil, faultAt(data, 0, "actors", b.over())
	}
	b.table(f)
	for _, r := range rows {
		b.row(r)
		if fault := b.over(); fault != "" {
			return fail(r.offset, "transitions", r.index, fault)
		}
	}
	for i, cell := range f.Illegal {
		b.t.Illegal = append(b.t.Illegal, [2]int{b.states.of(cell[0]), b.events.of(cell[1])})
		if fault := b.over(); fault != "" {
			return fail(0, "illegal", i, fault)
		}
	}
	b.t.Events, b.t.Undeclared, b.t.UndeclaredActors = b.events.others, b.states.others, convert[Actor](b.actors.others)
	return b.t, nil
}

// joinedRow is a row with all its sources.
type joinedRow struct {
	*rowForm
	index int // of its first transition
	from  []string
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
		rows = append(rows, joinedRow{rowForm: tr, index: i, from: []string{tr.From}})
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
	if actors == nil {
		named := newNames(nil)
		for i := range f.Transitions {
			named.all(f.Transitions[i].Actors)
		}
		actors = named.others
	}
	timed := func(tr rowForm) bool { return tr.Within.duration() > 0 }
	if slices.ContainsFunc(f.Transitions, timed) && !slices.Contains(actors, string(Sweeper)) {
		actors = append(actors, string(Sweeper))
	}
	return &formBuilder{
		t:      &Table{Actors: convert[Actor](actors)},
		states: newNames(states), events: newNames(nil), actors: newNames(actors),
	}
}

// over names the limit that the document exceeds, if any.
func (b *formBuilder) over() (fault string) {
	switch {
	case len(b.states.others) > MaxStates:
		return fmt.Sprintf("more than %d states that are not declared", MaxStates)
	case len(b.events.others) > MaxEvents:
		return fmt.Sprintf("more than %d events", MaxEvents)
	case len(b.t.Actors)+len(b.actors.others) > maxActors:
		return fmt.Sprintf("more than %d actors", maxActors)
	}
	return ""
}

func (b *formBuilder) table(f *tableForm) {
	t := b.t
	t.Name, t.Title, t.Confidence, t.Source = f.Name, string(f.Title), string(f.Confidence), f.Source
	t.Notes, t.Anomalies = convert[string](f.Notes), convert[string](f.Anomalies)
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
			Name: s.Name, Kind: kind, Target: b.states.optional(s.Target), Code: s.Code,
			Manual: string(s.Manual), OnOwnerDeath: string(s.OnOwnerDeath), Doc: string(s.Note),
		})
	}
}

func (b *formBuilder) row(r joinedRow) {
	row := TableRow{
		From: b.states.all(r.from), Any: r.Any, Except: b.states.all(r.Except), Origin: b.states.all(r.Origin),
		Event: b.events.of(r.Event), Actors: b.actors.all(r.Actors), Guard: r.Guard, To: b.states.optional(r.To),
		Forced: r.Forced, Supersede: r.Supersede, Timeout: r.Within.duration(),
		Action: string(r.Action), Section: string(r.Section), Doc: string(r.Note),
	}
	switch {
	case r.Ignore:
		row.Then = ThenIgnore
	case r.Return:
		row.Then = ThenReturn
	}
	b.t.Rows = append(b.t.Rows, row)
}

// names gives names their indexes: first those that are declared, then the
// others, in the order of their use.
type names struct {
	index    map[string]int
	declared int
	others   []string
}

func newNames(declared []string) names {
	n := names{index: make(map[string]int), declared: len(declared)}
	for i, name := range slices.Backward(declared) { // of equal names, the first counts
		n.index[name] = i
	}
	return n
}

func (n *names) of(name string) int {
	i, ok := n.index[name]
	if !ok {
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
