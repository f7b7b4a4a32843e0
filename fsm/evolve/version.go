package evolve

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// pair is two versions of a table with common names.
type pair struct {
	versions                                [2]*version // old, new
	machine, states, events, actors, guards *names
	roles                                   []string // the actors, and "", the anonymous one, if a table has it
}

// version is a table in which keys are the names. See [names]. Package fsm decides with it.
type version struct {
	*fsm.Table
	state, event map[string]int    // index by key
	leaving      map[string][]int  // rows by source, in order of trial
	swept        map[Withheld]bool // cells with a row that names the sweeper
	absent       string            // the state of an object that does not exist
	first        string            // the state in which a manager adds objects
	starts       []string          // the states in which nodes add objects
}

const sweeper = string(fsm.Sweeper)

// newPair gives common names to two tables.
func newPair(old, new *fsm.Table, config *Config) (*pair, error) {
	var err error
	joined := func(what string, list func(*fsm.Table) []string, renamed map[string]string) *names {
		n, fault := join(what, list(old), list(new), renamed)
		err = cmp.Or(err, fault)
		return n
	}
	p := &pair{
		machine: joined("machine", func(t *fsm.Table) []string { return []string{t.Name} }, map[string]string{old.Name: new.Name}),
		states:  joined("state", stateNames, config.States),
		events:  joined("event", func(t *fsm.Table) []string { return t.Events }, config.Events),
		actors:  joined("actor", actorNames, config.Actors),
		guards:  joined("guard", guardNames, config.Guards),
	}
	if err != nil {
		return nil, err
	}
	p.roles = p.actors.keys
	if !distinguishes(old) || !distinguishes(new) {
		p.roles = append(p.roles, "")
	}
	if len(p.states.keys) > fsm.MaxStates || len(p.roles) > fsm.MaxActors {
		return nil, fmt.Errorf("%w: more than %d states or %d actors in both tables", ErrTooLarge, fsm.MaxStates, fsm.MaxActors)
	}
	for v, t := range [2]*fsm.Table{old, new} {
		p.versions[v] = p.version(v, t)
	}
	return p, nil
}

func stateNames(t *fsm.Table) []string {
	return column(t.States, func(s fsm.TableState) string { return s.Name })
}

func actorNames(t *fsm.Table) []string {
	return column(t.Actors, func(a fsm.Actor) string { return string(a) })
}

func guardNames(t *fsm.Table) []string {
	names := column(t.Rows, func(r fsm.TableRow) string { return r.Guard })
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// distinguishes reports whether a table names an actor that is not the sweeper, which
// fires deadlines only.
func distinguishes(t *fsm.Table) bool {
	return slices.ContainsFunc(t.Actors, func(a fsm.Actor) bool { return a != fsm.Sweeper })
}

// version writes a table in keys.
func (p *pair) version(v int, given *fsm.Table) *version {
	x := &version{
		Table: given.WithRows(slices.Clone(given.Rows)), state: map[string]int{}, event: map[string]int{},
		leaving: map[string][]int{}, swept: map[Withheld]bool{},
	}
	x.States, x.Events, x.Actors = slices.Clone(x.States), slices.Clone(x.Events), slices.Clone(x.Actors)
	for i, s := range given.States {
		key := p.states.key[v][s.Name]
		x.States[i].Name, x.state[key] = key, i
		if s.Kind == fsm.Absent && (x.absent == "" || i == x.Initial) {
			x.absent = key
		}
		if s.Kind != fsm.Absent && i == x.Initial {
			x.first = key
		}
	}
	for i, name := range given.Events {
		key := p.events.key[v][name]
		x.Events[i], x.event[key] = key, i
	}
	for i, actor := range given.Actors {
		x.Actors[i] = fsm.Actor(p.actors.key[v][string(actor)])
	}
	if len(x.Actors) > 0 && !distinguishes(given) {
		x.Actors = append(x.Actors, "")
	}
	for i := range x.Rows {
		x.Rows[i].Guard = p.guards.key[v][x.Rows[i].Guard]
		x.addRow(i)
	}
	x.starts = x.entries()
	return x
}

// addRow adds a row to those of its sources, unless it fires for no object.
func (x *version) addRow(row int) {
	r := &x.Rows[row]
	if !within(r.Event, x.Events) || r.Then == fsm.ThenMove && !within(r.To, x.States) || r.Then > fsm.ThenIgnore {
		return
	}
	bySweeper := len(r.Actors) > 0 && x.allows(r, sweeper)
	for _, from := range unique(column(r.From, x.StateName)) {
		if !x.has(from) {
			continue
		}
		x.leaving[from] = append(x.leaving[from], row)
		at := Withheld{from, x.Events[r.Event]}
		x.swept[at] = x.swept[at] || bySweeper
	}
}

func within[T any](i int, list []T) bool { return i >= 0 && i < len(list) }

// entries returns the states in which nodes add objects: any state of rest in a table
// without an entry state.
func (x *version) entries() (list []string) {
	indexes := slices.DeleteFunc(slices.Clone(x.Entries()), func(i int) bool { return !within(i, x.States) })
	for i, s := range x.States {
		starts := slices.Contains(indexes, i) || len(indexes) == 0 && s.Kind.Resting()
		if starts && s.Kind != fsm.Absent {
			list = append(list, s.Name)
		}
	}
	return list
}

func (x *version) has(state string) bool {
	_, ok := x.state[state]
	return ok
}

func (x *version) kind(state string) fsm.Kind { return x.States[x.state[state]].Kind }

// status is the state and origin of an object, by keys.
type status struct{ state, origin string }

var noObject = status{}

// canRead reports whether a node of this version can read a record.
func (x *version) canRead(at status) bool {
	switch {
	case at == noObject:
		return true
	case !x.has(at.state) || !x.has(at.origin):
		return false
	}
	return at.origin == at.state || x.kind(at.state) == fsm.Transitional
}

// allows reports whether a row is open to an actor of the table.
func (x *version) allows(r *fsm.TableRow, actor string) bool {
	return len(r.Actors) == 0 || slices.ContainsFunc(r.Actors, func(a int) bool { return x.ActorName(a) == actor })
}

// admits reports whether an actor may add objects. A table without actors admits all.
func (x *version) admits(actor string) bool {
	return len(x.Actors) == 0 || slices.Contains(x.Actors, fsm.Actor(actor))
}

// source returns the status in which rows are tried: the absent state if no object exists.
func (x *version) source(at status) status {
	if at == noObject {
		return status{x.absent, x.absent}
	}
	return at
}

// candidates returns the rows that a request may take, in order of trial.
func (x *version) candidates(at status, event, actor string, force bool) []int {
	from := x.source(at)
	e, ok := x.event[event]
	if !ok || !x.has(from.state) {
		return nil
	}
	rows, _ := x.Candidates(nil, x.state[from.state], x.state[from.origin], e, fsm.Actor(actor), force)
	return rows
}

// deadline is what the sweeper fires. Without an event it fires nothing.
type deadline struct {
	event   string
	timeout time.Duration
	force   bool
}

func (x *version) deadline(at status) deadline {
	if at == noObject {
		return deadline{}
	}
	timeout, row := x.Timeout(x.state[at.state], x.state[at.origin])
	if row < 0 {
		return deadline{}
	}
	return deadline{x.Events[x.Rows[row].Event], timeout, x.Rows[row].Forced}
}

// result is the result of a request.
type result struct {
	refused, ignored bool
	begins           bool // a new operation
	to               status
}

// result returns the result of a row. Row -1 is a refusal.
func (x *version) result(at status, row int) result {
	switch {
	case row < 0:
		return result{refused: true, to: at}
	case x.Rows[row].Then == fsm.ThenIgnore:
		return result{ignored: true, to: at}
	}
	from := x.source(at)
	state, origin := x.After(x.state[from.state], x.state[from.origin], row)
	to := status{x.States[state].Name, x.States[origin].Name}
	switch x.States[state].Kind {
	case fsm.Absent:
		return result{to: noObject}
	case fsm.Transitional:
		return result{to: to, begins: x.kind(from.state).Resting() || x.Rows[row].Supersede}
	}
	return result{to: to}
}
