package tour

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// outcome is the result of a request if a guard agrees and the guards before it do
// not.
type outcome struct {
	guard              string
	to                 place
	ignored, supersede bool
}

// behaves reports whether objects behave alike under this table and another one that
// differs in one row: in every status of its sources that objects get into here,
// every request has the same outcomes in the same order. Then objects get into the
// same statuses there.
func (w *walk) behaves(other *fsm.Table, row int) bool {
	o := newChoices(other)
	askers := append(w.actors(), len(w.t.Actors)) // and an undeclared one
	for _, at := range w.places {
		if !slices.Contains(w.t.Rows[row].From, at.state) {
			continue
		}
		if w.due(at) != o.due(at) {
			return false
		}
		for event := range w.t.Events {
			cell := [2]int{at.state, event}
			if len(w.rows[cell]) == 0 && len(o.rows[cell]) == 0 {
				continue
			}
			for _, actor := range askers {
				for _, force := range []bool{false, true} {
					if !slices.Equal(w.outcomes(at, event, actor, force), o.outcomes(at, event, actor, force)) {
						return false
					}
					_, mine := w.refusal(at, event, actor, force)
					_, others := o.refusal(at, event, actor, force)
					if mine != others {
						return false
					}
				}
			}
		}
	}
	return true
}

// outcomes lists the possible results of a request: none after a row without a
// guard, each guard once, and no guard that makes no difference.
func (c *choices) outcomes(at place, event, actor int, force bool) (list []outcome) {
	for _, i := range c.of(at, event, actor, force) {
		r := &c.t.Rows[i]
		x := outcome{r.Guard, c.after(at, i), r.Then == fsm.ThenIgnore, r.Supersede}
		if x.guard != "" {
			if !slices.ContainsFunc(list, func(before outcome) bool { return before.guard == x.guard }) {
				list = append(list, x)
			}
			continue
		}
		for len(list) > 0 {
			last := list[len(list)-1]
			if last.guard = ""; last != x {
				break
			}
			list = list[:len(list)-1]
		}
		return append(list, x)
	}
	return list
}

// deadline is the row that the sweeper fires for an object that stays in a status.
type deadline struct {
	within time.Duration
	event  int // -1: none
	to     place
}

// due returns the deadline that the sweeper chooses in a status.
func (c *choices) due(at place) deadline {
	d := deadline{event: -1}
	for i := range c.t.Rows {
		r := &c.t.Rows[i]
		if r.Timeout > 0 && (d.event < 0 || r.Timeout < d.within) && c.lost(r) == "" &&
			slices.Contains(r.From, at.state) && c.fits(i, at.origin) {
			d = deadline{r.Timeout, r.Event, c.after(at, i)}
		}
	}
	return d
}
