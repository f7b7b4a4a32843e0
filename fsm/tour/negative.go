package tour

import (
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// NegativeConfig refines [Negatives]. The zero NegativeConfig has the defaults.
type NegativeConfig struct {
	// Stranger is an actor that the table does not declare, so that the table
	// refuses all of its requests. Default: none.
	Stranger fsm.Actor
}

// Negative is a request that a system has to refuse without changing the object.
type Negative struct {
	State, Origin string // the status
	Event         string
	Actor         fsm.Actor // empty in a table without actors
	Force         bool      // requested by force, and refused nevertheless
	Refuse        []string  // the guards that have to refuse; no other guard runs
	// Err is the reason: [fsm.ErrNotAllowed], [fsm.ErrWrongActor], [fsm.ErrForcedOnly] or
	// [fsm.ErrGuard].
	Err error
}

// String returns the request and the refusal as one line.
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

// Negatives yields every request that a table, sound or not, refuses: in every
// status that objects get into, every event by every actor. The table refuses a
// request if it has no row for it, if the actor or the origin is wrong, if force is
// missing, or if all guards of the cell refuse. Statuses come in the order in which
// objects reach them, events and actors in the order of the table. If the table has
// a forced row, Negatives includes requests by force. The error is [ErrTooLarge]. A
// nil config is the default.
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

// refusal returns the error of a request if all the returned guards refuse. It is
// nil if a row without a guard fires.
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
