package lifecycle

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Overridden is the event of history rows that [Manager.Override] writes. No
// table has it.
const Overridden = "(override)"

// Override puts an object into a state whatever the table says: for the person
// who knows better, and answers for it with a name and a reason. It skips rows,
// actors and guards, never the compare-and-set, the history or the operation: it
// is an operation of its own, so that nothing counts any more that was under way.
// An absent state removes the object. Where the table has a row that is forced
// only, fire that instead.
//
// Errors: [ErrNotFound], [ErrInvalid] for an actor or a reason that is empty or
// blank, [fsm.ErrUnknownState], [ErrConflict], those of Edit and of the store.
// Nothing is written then, but for [ErrUnknownOutcome].
func (m *Manager[S, E, T]) Override(ctx context.Context, id string, to S, actor fsm.Actor, reason string, change *Change[T]) (rec Record[S, T], err error) {
	c := m.call("override", id, actor)
	c.changes(change)
	c.q.Verb, c.q.To, c.q.Force, c.reason = decide.Override, m.machine.StateIndex(to), false, reason
	switch {
	case strings.TrimSpace(string(actor)) == "" || strings.TrimSpace(reason) == "":
		return rec, c.fail(fmt.Errorf("%w: an override needs an actor and a reason", ErrInvalid))
	case c.q.To < 0:
		return rec, c.fail(&fsm.TransitionError{
			Machine: m.table.Name, To: fmt.Sprint(to), Actor: actor, Row: -1, Err: fsm.ErrUnknownState,
		})
	}
	err = c.finish(ctx, &rec)
	return rec, err
}
