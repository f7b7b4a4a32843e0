package tour

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Config refines a [Tour]. The zero value and nil are the defaults.
type Config struct {
	// EveryActor: a row is taken once by every actor who may. Default: by the
	// first of its actors for whom it can fire.
	EveryActor bool
	// Restart is what a new sequence costs, in steps. Default: as few sequences
	// as possible, however long they are.
	Restart int
}

// Tour is a way through a table on which every row is taken in every status in
// which it can be: in every source, and in a transitional one for every origin
// that an object may have there, with guards that agree and, for the rows behind
// a guarded one, guards that refuse. [New] makes one. It is a plain value
// that nobody else uses; the zero Tour is that of no table.
type Tour struct {
	Table *fsm.Table
	// Sequences begin each with a new object in an initial state, and each step
	// in the status to which the one before it leads. There are several where
	// the table does not lead back, or where that is dearer than to begin anew.
	Sequences [][]Step
	// Transitions is how many there are to take: pairs of a row and a status,
	// with EveryActor for each actor. [Report.Transitions] counts pairs of a row and
	// a source, which are fewer where objects come to a source with several origins.
	Transitions int
	// Steps is the length of all sequences together. Bound is proven by the dual
	// of the problem: no tour of at most as many sequences has fewer steps.
	Steps, Bound int
	// Missed are the rows that no object can take, for each of their sources. Of
	// what the table declares, everything is either in Sequences or here.
	Missed []Missed
}

// Step is one request and what it does. States are named as in the table.
type Step struct {
	From, Origin string // the status before
	Event        string
	Actor        fsm.Actor // empty in a table without actors
	Force        bool      // the row is forced only
	// The guards that have to agree, and to refuse, so that Row is taken. No
	// other guard is asked.
	Agree, Refuse []string
	To, ToOrigin  string // the status after
	Row           int    // index in the table
	Ignored       bool   // the event is accepted and changes nothing
}

// Missed is a row that no object can take from one of its sources.
type Missed struct {
	Row    int
	From   string // empty if the row has no source
	Reason string // one line
}

// New finds a tour of a table, sound or not. It is shortest: no tour of as
// few sequences has fewer steps. The error is [ErrTooLarge].
func New(t *fsm.Table, config *Config) (*Tour, error) {
	if config == nil {
		config = &Config{}
	}
	w, err := newWalk(t, config.EveryActor)
	if err != nil {
		return nil, err
	}
	tour := &Tour{Table: t, Transitions: len(w.ways), Missed: w.missed()}
	for _, part := range w.parts() {
		sequences, bound := part.tour(config.Restart)
		tour.Bound += bound
		for _, ways := range sequences {
			steps := make([]Step, len(ways))
			for i, way := range ways {
				steps[i] = w.step(&w.ways[way])
			}
			tour.Sequences = append(tour.Sequences, steps)
			tour.Steps += len(steps)
		}
	}
	return tour, nil
}

// All yields the steps in order, each with the number of its sequence.
func (t *Tour) All() iter.Seq2[int, Step] {
	return func(yield func(int, Step) bool) {
		for i, steps := range t.Sequences {
			for _, s := range steps {
				if !yield(i, s) {
					return
				}
			}
		}
	}
}

// String tells the size of the tour, its steps and what it misses, for people.
func (t *Tour) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d transitions in %d steps (bound %d) and %d sequences",
		t.Table.Name, t.Transitions, t.Steps, t.Bound, len(t.Sequences))
	for i, steps := range t.Sequences {
		fmt.Fprintf(&b, "\nsequence %d", i+1)
		for _, s := range steps {
			fmt.Fprintf(&b, "\n  %s", s)
		}
	}
	for _, m := range t.Missed {
		fmt.Fprintf(&b, "\nmissed: %s", m)
	}
	return b.String()
}

// String tells the step in one line, for people.
func (s Step) String() string {
	var b strings.Builder
	b.WriteString(status(s.From, s.Origin))
	b.WriteString(": ")
	b.WriteString(request(s.Event, s.Actor, s.Force))
	conditions(&b, s.Agree, s.Refuse)
	if s.Ignored {
		b.WriteString(" is ignored")
	} else {
		fmt.Fprintf(&b, " -> %s", status(s.To, s.ToOrigin))
	}
	return b.String()
}

// String tells row, source and reason in one line, for people.
func (m Missed) String() string {
	if m.From == "" {
		return fmt.Sprintf("row %d: %s", m.Row, m.Reason)
	}
	return fmt.Sprintf("row %d from %s: %s", m.Row, m.From, m.Reason)
}

func status(state, origin string) string {
	if origin == state {
		return state
	}
	return fmt.Sprintf("%s (from %s)", state, origin)
}

func request(event string, actor fsm.Actor, force bool) string {
	if actor != "" {
		event += " by " + string(actor)
	}
	if force {
		event += " by force"
	}
	return event
}

func conditions(b *strings.Builder, agree, refuse []string) {
	for _, g := range refuse {
		fmt.Fprintf(b, ", not %s", g)
	}
	for _, g := range agree {
		fmt.Fprintf(b, ", %s", g)
	}
}

// step is a way in the words of the table.
func (w *walk) step(x *way) Step {
	from, to, r := w.places[x.from], w.places[x.to], &w.t.Rows[x.row]
	name := func(state int) string { return w.t.States[state].Name }
	s := Step{
		From: name(from.state), Origin: name(from.origin), To: name(to.state), ToOrigin: name(to.origin),
		Event: w.t.Events[r.Event], Actor: w.actor(x.actor), Force: r.Forced,
		Refuse: x.refuse, Row: x.row, Ignored: r.Then == fsm.ThenIgnore,
	}
	if x.agree != "" {
		s.Agree = []string{x.agree}
	}
	return s
}

// missed lists the rows that are on no way, by source.
func (w *walk) missed() (list []Missed) {
	taken := make(map[[2]int]bool)
	for i := range w.ways {
		taken[[2]int{w.ways[i].row, w.places[w.ways[i].from].state}] = true
	}
	reached := make([][]int, len(w.t.States)) // places by state
	for n, p := range w.places {
		reached[p.state] = append(reached[p.state], n)
	}
	for i := range w.t.Rows {
		r := &w.t.Rows[i]
		if len(r.From) == 0 {
			list = append(list, Missed{Row: i, Reason: "it has no source"})
		}
		for at, from := range r.From {
			if slices.Contains(r.From[:at], from) || taken[[2]int{i, from}] {
				continue
			}
			m := Missed{Row: i}
			if !w.declared(from) {
				m.From, m.Reason = "?", "its source is not declared"
				if n := from - len(w.t.States); n >= 0 && n < len(w.t.Undeclared) {
					m.From = w.t.Undeclared[n]
				}
			} else {
				m.From, m.Reason = w.t.States[from].Name, w.why(i, reached[from])
			}
			list = append(list, m)
		}
	}
	return list
}

// why says why nobody takes a row from a state, given the places that are
// reached there.
func (w *walk) why(row int, reached []int) string {
	r := &w.t.Rows[row]
	switch lost := w.lost(r); {
	case lost != "":
		return lost
	case len(w.entries) == 0:
		return "the table has no initial state"
	case len(reached) == 0:
		return "no object gets into the state"
	case !slices.ContainsFunc(w.actors(), func(a int) bool { return w.may(r, a) }):
		return "none of its actors is declared"
	}
	first, late := w.first[[2]int{row, w.places[reached[0]].state}]
	switch {
	case late && w.t.Rows[first].Guard != "":
		return fmt.Sprintf("row %d has the same guard and goes first", first)
	case late:
		return fmt.Sprintf("row %d goes first", first)
	case r.Then == fsm.ThenReturn && len(r.Origin) == 0:
		return "no object in the state has an origin to return to"
	}
	return "no object in the state has such an origin"
}
