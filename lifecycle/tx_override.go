package lifecycle

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Override adds what [Manager.Override] does.
func (t TxManager[S, E, T]) Override(id string, to S, actor fsm.Actor, reason string, change *Change[T]) *TxResult[S, T] {
	c := t.m.bare(decide.Override, "override", id, actor, change)
	c.ask.To, c.ask.Force, c.reason = t.m.machine.StateIndex(to), false, reason
	switch {
	case strings.TrimSpace(string(actor)) == "" || strings.TrimSpace(reason) == "":
		c.invalid = fmt.Errorf("%w: an override needs an actor and a reason", ErrInvalid)
	case c.ask.To < 0:
		c.invalid = &fsm.TransitionError{
			Machine: t.m.core.table.Name, To: fmt.Sprint(to), Actor: actor, Row: -1, Err: fsm.ErrUnknownState,
		}
	}
	return t.add(c)
}
