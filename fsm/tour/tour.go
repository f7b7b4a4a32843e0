package tour

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/visible"
)

// Config refines a [Tour]. The zero Config has the defaults.
type Config struct {
	// AnyOrigin takes a row once in each of its sources, for one of the origins that
	// an object may have there. Default: for every origin.
	AnyOrigin bool
}

// Tour is a way through a table that takes every row in every status in which an
// object can take it: in every source, and in a transitional source for every
// origin that an object may have there, unless the config has AnyOrigin. The first actor
// for which a row fires takes it. Guards agree, and the guards of earlier rows refuse.
// [New] makes one. It is a plain value. The zero
// Tour is that of no table.
type Tour struct {
	Table *fsm.Table
	// Sequences each start with a new object in an initial state. Each step starts
	// in the status to which the step before it leads.
	Sequences [][]Step
	// Transitions is the number of pairs of a row and a status, or a state with
	// AnyOrigin.
	Transitions int
	// Steps is the number of steps in all sequences.
	Steps int
	// Missed are the rows that no object can take, for each of their sources. Every
	// row of the table is in Sequences or here.
	Missed []Missed
}

// Request is an event that an actor fires. It is a plain value.
type Request struct {
	Event string    `json:"event"`
	Actor fsm.Actor `json:"actor,omitempty"` // empty in a table without actors
	Force bool      `json:"forced,omitempty"`
	// Agree and Refuse are the guards that have to agree, and to refuse. No other guard
	// runs.
	Agree  []string `json:"agree,omitempty"`
	Refuse []string `json:"refuse,omitempty"`
}

// Step is one request and its result. It has force if the row is forced only. States have
// their names.
type Step struct {
	From   string `json:"state"` // From and Origin are the status before
	Origin string `json:"origin"`
	Request
	To       string `json:"to"` // To and ToOrigin are the status after
	ToOrigin string `json:"to_origin"`
	Row      int    `json:"row"`               // index in the table
	Ignored  bool   `json:"ignored,omitempty"` // the row accepts the event and changes nothing
}

// Missed is a row that no object can take from one of its sources. Package check has the
// faults of the table.
type Missed struct {
	Row  int    `json:"row"`
	From string `json:"from"` // empty if the row has no source
}

// New returns a tour of a table, sound or not. The tour continues with the nearest row that
// it has not taken. It is short, and not always the shortest. The error is [ErrTooLarge]. A
// nil config is the default.
func New(t *fsm.Table, config *Config) (*Tour, error) {
	config = cmp.Or(config, &Config{})
	w, err := newWalk(t)
	if err != nil {
		return nil, err
	}
	goals := w.goals(config.AnyOrigin)
	tour := &Tour{Table: t, Transitions: len(goals), Missed: w.missed()}
	for _, ways := range w.sequences(goals) {
		steps := make([]Step, len(ways))
		for i, way := range ways {
			steps[i] = w.step(&w.ways[way])
		}
		tour.Sequences = append(tour.Sequences, steps)
		tour.Steps += len(steps)
	}
	return tour, nil
}

// goals lists the ways that a tour has to take.
func (w *walk) goals(anyOrigin bool) (list []int) {
	seen := make(map[[2]int]bool) // by row and source
	for i, x := range w.ways {
		source := [2]int{x.row, w.statuses[x.from].state}
		if !anyOrigin || !seen[source] {
			seen[source] = true
			list = append(list, i)
		}
	}
	return list
}

// String returns the size of the tour, its steps and the rows that it misses.
// Programs must not depend on the text.
func (t *Tour) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d transitions in %d steps and %d sequences",
		visible.Text(t.Table.Name), t.Transitions, t.Steps, len(t.Sequences))
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

// String returns the step as one line.
func (s Step) String() string {
	text := statusText(s.From, s.Origin) + ": " + s.Request.String()
	if s.Ignored {
		return text + " is ignored"
	}
	return text + " -> " + statusText(s.To, s.ToOrigin)
}

// String returns row and source as one line.
func (m Missed) String() string { return fmt.Sprintf("row %d from %s", m.Row, visible.Text(m.From)) }

func statusText(state, origin string) string {
	if origin == state {
		return visible.Text(state)
	}
	return visible.Text(fmt.Sprintf("%s (from %s)", state, origin))
}

// String returns the request as one line.
func (r Request) String() string {
	text := r.Event
	if r.Actor != "" {
		text += " by " + string(r.Actor)
	}
	if r.Force {
		text += " by force"
	}
	for _, g := range r.Refuse {
		text += ", not " + g
	}
	for _, g := range r.Agree {
		text += ", " + g
	}
	return visible.Text(text)
}

// step names a way with the names of the table.
func (w *walk) step(x *way) Step {
	from, to, r := w.statuses[x.from], w.statuses[x.to], &w.t.Rows[x.row]
	name := func(state int) string { return w.t.States[state].Name }
	s := Step{
		From: name(from.state), Origin: name(from.origin), To: name(to.state), ToOrigin: name(to.origin),
		Request: Request{Event: w.t.Events[r.Event], Actor: x.actor, Force: r.Forced, Refuse: x.refuse},
		Row:     x.row, Ignored: r.Then == fsm.ThenIgnore,
	}
	if r.Guard != "" {
		s.Agree = []string{r.Guard}
	}
	return s
}

// missed lists the rows that no way takes, by source.
func (w *walk) missed() (list []Missed) {
	taken := make(map[[2]int]bool)
	for i := range w.ways {
		taken[[2]int{w.ways[i].row, w.statuses[w.ways[i].from].state}] = true
	}
	for i := range w.t.Rows {
		r := &w.t.Rows[i]
		if len(r.From) == 0 {
			list = append(list, Missed{Row: i})
		}
		for at, from := range r.From {
			if !slices.Contains(r.From[:at], from) && !taken[[2]int{i, from}] {
				list = append(list, Missed{Row: i, From: w.t.StateName(from)})
			}
		}
	}
	return list
}
