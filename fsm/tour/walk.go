package tour

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/visible"
)

// ErrTooLarge reports a table with too many statuses, or with too many rows that
// objects can take in them, for a test of each.
var ErrTooLarge = errors.New("tour: too many ways through the table")

// The bounds of a walk. Published tables have some dozens of statuses and ways.
const (
	maxStatuses = 1 << 15
	maxWays     = 1 << 16 // rows, in each status
	maxLooks    = 1 << 26 // rows that leave looks at, and guards that refuse before a way
)

// status is a state and an origin, by index.
type status struct{ state, origin int }

// way is a row in a status, fired by one actor after the guards of earlier rows refused.
type way struct {
	from, to int // statuses, by number
	row      int
	actor    fsm.Actor
	refuse   []string
}

// walk has every status that objects get into, and every way between them.
type walk struct {
	t        *fsm.Table
	actors   []fsm.Actor // an empty one for a table without actors
	statuses []status
	number   map[status]int
	entries  []int // statuses, by number
	ways     []way
	looks    int
}

// newWalk walks through the table from its entries, breadth first. Every row in every
// status is one way.
func newWalk(t *fsm.Table) (*walk, error) {
	w := &walk{t: t.WithRows(t.Rows), actors: t.Actors, number: make(map[status]int)}
	if len(t.Actors) == 0 {
		w.actors = []fsm.Actor{""}
	}
	for _, s := range t.Entries() {
		if w.declared(s) {
			w.entries = append(w.entries, w.enter(status{s, s}))
		}
	}
	events := make([]map[int]bool, len(t.States)) // by state
	for i := range t.Rows {
		r := &t.Rows[i]
		for _, from := range r.From {
			if w.declared(from) && w.fires(r) {
				if events[from] == nil {
					events[from] = make(map[int]bool)
				}
				events[from][r.Event] = true
			}
		}
	}
	for from := 0; from < len(w.statuses); from++ {
		at := w.statuses[from]
		found := make(map[int]way) // by row
		for event := range events[at.state] {
			w.leave(from, event, found)
		}
		for _, row := range slices.Sorted(maps.Keys(found)) {
			x := found[row]
			state, origin := w.t.After(at.state, at.origin, row)
			x.to = w.enter(status{state, origin})
			w.ways = append(w.ways, x)
		}
		if w.looks > maxLooks || len(w.ways) > maxWays || len(w.statuses) > maxStatuses {
			return nil, fmt.Errorf("%w: %s: more than %d statuses or %d ways between them, or too many rows of one event",
				ErrTooLarge, visible.Text(t.Name), maxStatuses, maxWays)
		}
	}
	return w, nil
}

// fires reports whether the table declares event and target of a row.
func (w *walk) fires(r *fsm.TableRow) bool {
	return r.Event >= 0 && r.Event < len(w.t.Events) && (r.Then != fsm.ThenMove || w.declared(r.To))
}

func (w *walk) declared(state int) bool { return state >= 0 && state < len(w.t.States) }

// leave finds the ways out of a status on one event, by the first actor for each.
func (w *walk) leave(from, event int, found map[int]way) {
	at := w.statuses[from]
	for _, force := range []bool{false, true} {
		for _, actor := range w.actors {
			rows, _ := w.t.Candidates(nil, at.state, at.origin, event, actor, force)
			w.looks += len(rows)
			var refuse []string
			for _, row := range rows {
				r := &w.t.Rows[row]
				if r.Guard != "" && slices.Contains(refuse, r.Guard) {
					continue // an earlier row goes first
				}
				if _, again := found[row]; !again && r.Forced == force {
					w.looks += len(refuse)
					found[row] = way{from: from, row: row, actor: actor, refuse: slices.Clip(refuse)}
				}
				if r.Guard == "" {
					break
				}
				refuse = append(refuse, r.Guard)
			}
		}
	}
}

// enter returns the number of a status.
func (w *walk) enter(at status) int {
	n, ok := w.number[at]
	if !ok {
		n = len(w.statuses)
		w.number[at] = n
		w.statuses = append(w.statuses, at)
	}
	return n
}
