package tour

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// ErrTooLarge reports a table with too many statuses, or with too many rows that
// objects can take in them, for a test of each.
var ErrTooLarge = errors.New("tour: too many ways through the table")

// The bounds of a walk. Published tables have some dozens of statuses and ways.
const (
	maxTourPlaces = 1 << 15 // statuses
	maxTourWays   = 1 << 16 // rows, in each status
	maxTourLooks  = 1 << 26 // rows that leave looks at
)

// place is a status by index.
type place struct{ state, origin int }

// noActor is the anonymous actor of a table that declares no actors.
const noActor = -1

// choices computes the result of a request in any table, sound or not, by the rules
// of package fsm: rows in order of declaration, actor, origin, guard.
type choices struct {
	t     *fsm.Table
	rows  map[[2]int][]int // by state and event, in order of trial
	asked []bitset.Set     // origin condition by row, nil: none
}

func newChoices(t *fsm.Table) *choices {
	c := &choices{t: t, rows: make(map[[2]int][]int), asked: make([]bitset.Set, len(t.Rows))}
	for i := range t.Rows {
		r := &t.Rows[i]
		if c.lost(r) != "" {
			continue
		}
		if len(r.Origin) > 0 {
			c.asked[i] = bitset.New(len(t.States))
			for _, o := range r.Origin {
				if o >= 0 && o < len(t.States) {
					c.asked[i].Add(o)
				}
			}
		}
		for _, from := range r.From {
			at := [2]int{from, r.Event}
			// A row that names a source twice is tried once.
			if list := c.rows[at]; len(list) == 0 || list[len(list)-1] != i {
				c.rows[at] = append(list, i)
			}
		}
	}
	return c
}

// lost returns the reason why a row fires for no object, or an empty text.
func (c *choices) lost(r *fsm.TableRow) string {
	switch {
	case r.Event < 0 || r.Event >= len(c.t.Events):
		return "its event is not declared"
	case r.Then == fsm.ThenMove && !c.declared(r.To):
		return "its target is not declared"
	}
	return ""
}

func (c *choices) declared(state int) bool { return state >= 0 && state < len(c.t.States) }

// actors lists the actors by index.
func (c *choices) actors() []int {
	if len(c.t.Actors) == 0 {
		return []int{noActor}
	}
	list := make([]int, len(c.t.Actors))
	for i := range list {
		list[i] = i
	}
	return list
}

// actor returns the name of an actor, empty for noActor.
func (c *choices) actor(i int) fsm.Actor {
	if i == noActor {
		return ""
	}
	return c.t.Actors[i]
}

// may reports whether an actor may fire the row. An undeclared actor has an index
// beyond those of the table and may fire none.
func (c *choices) may(r *fsm.TableRow, actor int) bool {
	return actor < len(c.t.Actors) && (len(r.Actors) == 0 || slices.Contains(r.Actors, actor))
}

// fits reports whether an object of this origin may take the row.
func (c *choices) fits(row, origin int) bool {
	if asked := c.asked[row]; asked != nil && !asked.Has(origin) {
		return false
	}
	return c.t.Rows[row].Then != fsm.ThenReturn || c.t.States[origin].Kind.Resting()
}

// of returns the rows that a request may take, in order of trial.
func (c *choices) of(at place, event, actor int, force bool) (rows []int) {
	for _, i := range c.rows[[2]int{at.state, event}] {
		r := &c.t.Rows[i]
		if c.may(r, actor) && (force || !r.Forced) && c.fits(i, at.origin) {
			rows = append(rows, i)
		}
	}
	return rows
}

// after returns where a row leads.
func (c *choices) after(at place, row int) place {
	switch r := &c.t.Rows[row]; {
	case r.Then == fsm.ThenIgnore:
		return at
	case r.Then == fsm.ThenReturn:
		return place{at.origin, at.origin}
	case c.t.States[r.To].Kind.Resting():
		return place{r.To, r.To}
	case c.t.States[at.state].Kind.Resting():
		return place{r.To, at.state}
	default:
		return place{r.To, at.origin}
	}
}

// way is a row in a status, fired by one actor, with the results of its guard and of
// the guards before it that make it fire.
type way struct {
	from, to int // places, by number
	row      int
	actor    int
	agree    string
	refuse   []string
}

// entries lists the states in which objects begin.
func (c *choices) entries() (list []int) {
	all := c.t.Initials
	if len(all) == 0 {
		all = []int{c.t.Initial}
	}
	for _, s := range all {
		if c.declared(s) && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// walk has every status that objects get into, and every way between them.
type walk struct {
	*choices
	places  []place
	number  map[place]int
	entries []int // places, by number
	ways    []way
	first   map[[2]int]int // by row and source that is not taken: the row that goes first
	looks   int
}

// newWalk walks through the table from its entries, breadth first. Every row in
// every status is one way, or with everyActor one for every actor that may fire it.
func newWalk(t *fsm.Table, everyActor bool) (*walk, error) {
	w := &walk{choices: newChoices(t), number: make(map[place]int), first: make(map[[2]int]int)}
	for _, s := range w.choices.entries() {
		w.entries = append(w.entries, w.enter(place{s, s}))
	}
	cells := make([][]int, len(t.States)) // events by state, in order of declaration
	for i := range t.Rows {
		r := &t.Rows[i]
		for _, from := range r.From {
			if at := [2]int{from, r.Event}; w.declared(from) && len(w.rows[at]) > 0 && w.rows[at][0] == i {
				cells[from] = append(cells[from], r.Event)
			}
		}
	}
	for p := 0; p < len(w.places); p++ {
		var ways []way
		for _, event := range cells[w.places[p].state] {
			ways = append(ways, w.leave(p, event, everyActor)...)
		}
		slices.SortStableFunc(ways, func(a, b way) int { return a.row - b.row })
		if w.looks > maxTourLooks || len(w.ways)+len(ways) > maxTourWays {
			return nil, w.tooLarge()
		}
		for _, x := range ways {
			if x.to = w.enter(w.after(w.places[p], x.row)); x.to < 0 {
				return nil, w.tooLarge()
			}
			w.ways = append(w.ways, x)
		}
	}
	return w, nil
}

func (w *walk) tooLarge() error {
	return fmt.Errorf("%w: %s: more than %d statuses or %d ways between them", ErrTooLarge, w.t.Name, maxTourPlaces, maxTourWays)
}

// leave returns the ways out of a place on one event.
func (w *walk) leave(p, event int, everyActor bool) (ways []way) {
	at := w.places[p]
	rows := w.rows[[2]int{at.state, event}]
	taken := make(map[int]int) // by row: the way, where one is enough
	for _, force := range []bool{false, true} {
		if force && !slices.ContainsFunc(rows, func(i int) bool { return w.t.Rows[i].Forced }) {
			break
		}
		for _, actor := range w.actors() {
			var guards []string // of the rows before
			firsts := make(map[string]int)
			for _, i := range rows {
				w.looks++
				r := &w.t.Rows[i]
				if !w.may(r, actor) || r.Forced && !force || !w.fits(i, at.origin) {
					continue
				}
				first, late := firsts[""]
				if !late {
					first, late = firsts[r.Guard]
				}
				switch had, again := taken[i]; {
				case late:
					w.first[[2]int{i, at.state}] = first
				case r.Forced != force:
				case !again || everyActor:
					taken[i] = len(ways)
					ways = append(ways, way{from: p, row: i, actor: actor, agree: r.Guard, refuse: guards[:len(guards):len(guards)]})
				case slices.Index(r.Actors, actor) < slices.Index(r.Actors, ways[had].actor):
					ways[had].actor, ways[had].refuse = actor, guards[:len(guards):len(guards)]
				}
				if !late {
					firsts[r.Guard] = i
					if r.Guard != "" {
						guards = append(guards, r.Guard)
					}
				}
			}
		}
	}
	return ways
}

// enter returns the number of a place, or -1 if there are too many.
func (w *walk) enter(p place) int {
	if n, ok := w.number[p]; ok {
		return n
	}
	if len(w.places) == maxTourPlaces {
		return -1
	}
	n := len(w.places)
	w.number[p] = n
	w.places = append(w.places, p)
	return n
}
