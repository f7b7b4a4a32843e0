package tour

import (
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Negative is a request that a system has to refuse without changing the object, also if
// it has force.
type Negative struct {
	State, Origin string // the status
	Request              // Refuse are all guards that run
	// Err is the reason: [fsm.ErrNotAllowed], [fsm.ErrWrongActor], [fsm.ErrForcedOnly] or
	// [fsm.ErrGuard].
	Err error
}

// String returns the request and the refusal as one line.
func (n Negative) String() string {
	return statusText(n.State, n.Origin) + ": " + n.Request.String() + " is refused: " + strings.TrimPrefix(n.Err.Error(), "fsm: ")
}

// Negatives yields every request that a table, sound or not, refuses: in every
// status that objects get into, every event by every actor. The table refuses a
// request if it has no row for it, if the actor or the origin is wrong, if force is
// missing, or if all guards of the cell refuse. Statuses come in the order in which
// objects reach them, events and actors in the order of the table. If the table has
// a forced row, Negatives includes requests by force. The error is [ErrTooLarge].
func Negatives(t *fsm.Table) (iter.Seq[Negative], error) {
	w, err := newWalk(t)
	if err != nil {
		return nil, err
	}
	forces := []bool{false}
	if slices.ContainsFunc(t.Rows, func(r fsm.TableRow) bool { return r.Forced }) {
		forces = []bool{false, true}
	}
	return func(yield func(Negative) bool) {
		for _, at := range w.statuses {
			for event := range t.Events {
				for _, actor := range w.actors {
					for _, force := range forces {
						guards, refusal := refusal(w.t, at, event, actor, force)
						if refusal != nil && !yield(Negative{
							State: t.States[at.state].Name, Origin: t.States[at.origin].Name,
							Request: Request{Event: t.Events[event], Actor: actor, Force: force, Refuse: guards}, Err: refusal,
						}) {
							return
						}
					}
				}
			}
		}
	}, nil
}

// refusal returns the sentinel of a request if all the returned guards refuse. It is
// nil if a row without a guard fires.
func refusal(t *fsm.Table, at status, event int, actor fsm.Actor, force bool) (guards []string, sentinel error) {
	rows, err := t.Candidates(nil, at.state, at.origin, event, actor, force)
	if refused, ok := errors.AsType[*fsm.TransitionError](err); ok {
		return nil, refused.Err
	}
	for _, i := range rows {
		guard := t.Rows[i].Guard
		if guard == "" {
			return nil, nil
		}
		if !slices.Contains(guards, guard) {
			guards = append(guards, guard)
		}
	}
	return guards, fsm.ErrGuard
}
