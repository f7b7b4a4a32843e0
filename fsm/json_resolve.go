package fsm

import "slices"

// numbering numbers names in the order in which they come.
type numbering struct {
	index map[string]int
	names []string
}

func newNumbering() numbering { return numbering{index: make(map[string]int)} }

// of returns the number of a name, a new one if it has none.
func (n *numbering) of(name string) int {
	i, ok := n.index[name]
	if !ok {
		i = len(n.names)
		n.index[name] = i
		n.names = append(n.names, name)
	}
	return i
}

// resolve turns the numbers of the document into indexes of the table: the
// declarations may come after their use.
func (d *document) resolve() {
	t := d.t
	states := resolver{names: d.states.names, index: make(map[string]int), next: len(t.States)}
	for i := range slices.Backward(t.States) { // of a name that is there twice, the first counts
		states.index[t.States[i].Name] = i
	}
	d.declareActors()
	actors := resolver{names: d.actors.names, index: make(map[string]int), next: len(t.Actors)}
	for i, a := range slices.Backward(t.Actors) {
		actors.index[string(a)] = i
	}

	if t.Initial >= 0 {
		t.Initial = states.of(t.Initial)
	}
	states.all(t.Initials)
	if slices.Equal(t.Initials, []int{t.Initial}) {
		t.Initials = nil
	}
	for i := range t.States {
		if s := &t.States[i]; s.Target >= 0 {
			s.Target = states.of(s.Target)
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		states.all(r.From)
		states.all(r.Except)
		states.all(r.Origin)
		if r.To >= 0 {
			r.To = states.of(r.To)
		}
		actors.all(r.Actors)
	}
	for _, c := range d.illegal {
		t.Illegal = append(t.Illegal, [2]int{states.of(c.state), d.events.of(c.event)})
	}
	if len(d.events.names) > MaxEvents {
		d.w.failAt(0, "more than %d events, with those of the illegal cells", MaxEvents)
	}
	t.Events = d.events.names
	t.Undeclared = states.undeclared
	for _, a := range actors.undeclared {
		t.UndeclaredActors = append(t.UndeclaredActors, Actor(a))
	}
}

// declareActors gives the table the actors that the document lists or, if it
// lists none, those that it names; and the sweeper if a row has a deadline.
func (d *document) declareActors() {
	t := d.t
	t.Actors = d.list
	if !d.listed {
		for _, name := range d.actors.names {
			t.Actors = append(t.Actors, Actor(name))
		}
	}
	late := slices.ContainsFunc(t.Rows, func(r TableRow) bool { return r.Within > 0 })
	if late && !slices.Contains(t.Actors, Sweeper) {
		t.Actors = append(t.Actors, Sweeper)
	}
}

// resolver turns numbers of names into indexes, and gives the names that nobody
// declared the indexes after those of the others.
type resolver struct {
	names      []string       // by number
	index      map[string]int // by name
	next       int            // free index
	undeclared []string
}

func (r *resolver) of(number int) int {
	name := r.names[number]
	i, ok := r.index[name]
	if !ok {
		i = r.next
		r.next++
		r.index[name] = i
		r.undeclared = append(r.undeclared, name)
	}
	return i
}

func (r *resolver) all(list []int) {
	for i := range list {
		list[i] = r.of(list[i])
	}
}
