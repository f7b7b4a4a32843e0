package tour

import (
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// NegativeConfig refines [Negatives]. The zero value and nil are the defaults.
type NegativeConfig struct {
	// Stranger is an actor that the table does not declare: what anybody asks by
	// that name is refused. Default: nobody.
	Stranger fsm.Actor
}

// Negative is a request that has to be refused, and leave the object where it is.
type Negative struct {
	State, Origin string // the status
	Event         string
	Actor         fsm.Actor // empty in a table without actors
	Force         bool      // asked by force, and refused all the same
	Refuse        []string  // the guards that have to refuse; no other one is asked
	// Err is why: [fsm.ErrNotAllowed], [fsm.ErrWrongActor], [fsm.ErrForcedOnly] or
	// [fsm.ErrGuard].
	Err error
}

// String tells the request and the refusal in one line, for people.
func (n Negative) String() string {
	var b strings.Builder
	b.WriteString(status(n.State, n.Origin))
	b.WriteString(": ")
	b.WriteString(request(n.Event, n.Actor, n.Force))
	conditions(&b, nil, n.Refuse)
	b.WriteString(" is refused: ")
	b.WriteString(strings.TrimPrefix(n.Err.Error(), "fsm: "))
	return b.String()
}

// Negatives yields the negative cells of a table, sound or not: of every status
// that objects get into, every event by every actor that the table refuses, for
// want of a row, of the right or of force, for the object's origin, or because all
// guards of the cell refuse. Statuses come in the order in which they are reached,
// events and actors in that of the table. What is refused is asked by force, too,
// if the table has a row that is forced only. The error is [ErrTooLarge].
func Negatives(t *fsm.Table, config *NegativeConfig) (iter.Seq[Negative], error) {
	w, err := newWalk(t, false)
	if err != nil {
		return nil, err
	}
	askers := w.actors()
	stranger := fsm.Actor("")
	if config != nil && config.Stranger != "" && len(t.Actors) > 0 && !slices.Contains(t.Actors, config.Stranger) {
		stranger = config.Stranger
		askers = append(askers, len(t.Actors)) // an index that no row names
	}
	forces := []bool{false}
	if slices.ContainsFunc(t.Rows, func(r fsm.TableRow) bool { return r.Forced }) {
		forces = []bool{false, true}
	}
	return func(yield func(Negative) bool) {
		for _, at := range w.places {
			for event := range t.Events {
				for _, actor := range askers {
					for _, force := range forces {
						guards, refusal := w.refusal(at, event, actor, force)
						if refusal == nil {
							continue
						}
						n := Negative{
							State: t.States[at.state].Name, Origin: t.States[at.origin].Name,
							Event: t.Events[event], Actor: stranger, Force: force, Refuse: guards, Err: refusal,
						}
						if actor < len(t.Actors) {
							n.Actor = w.actor(actor)
						}
						if !yield(n) {
							return
						}
					}
				}
			}
		}
	}, nil
}

// refusal returns why a request is refused, if all the guards refuse that are
// returned. It is nil if some row asks for no guard.
func (c *choices) refusal(at place, event, actor int, force bool) (guards []string, refusal error) {
	for _, i := range c.of(at, event, actor, force) {
		guard := c.t.Rows[i].Guard
		if guard == "" {
			return nil, nil
		}
		if !slices.Contains(guards, guard) {
			guards = append(guards, guard)
		}
	}
	if guards != nil {
		return guards, fsm.ErrGuard
	}
	rows := c.rows[[2]int{at.state, event}]
	mine, byForce := false, false
	for _, i := range rows {
		r := &c.t.Rows[i]
		own := c.may(r, actor)
		mine = mine || own
		byForce = byForce || own && c.fits(i, at.origin)
	}
	switch {
	case byForce:
		return nil, fsm.ErrForcedOnly
	case len(rows) > 0 && !mine:
		return nil, fsm.ErrWrongActor
	}
	return nil, fsm.ErrNotAllowed
}
