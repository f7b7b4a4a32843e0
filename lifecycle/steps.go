package lifecycle

import (
	"encoding/json"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// storedStep is a step as records keep it.
type storedStep struct {
	Event string    `json:"event"`
	Actor fsm.Actor `json:"actor"`
	Work  string    `json:"work"`
	Args  []byte    `json:"args,omitempty"`
}

// encodeSteps returns nil if there are none, or not all of them survive this
// process.
func (m *Manager[S, E, T]) encodeSteps(actor fsm.Actor, steps []Step[E]) []byte {
	var stored []storedStep
	for _, s := range steps {
		i := m.machine.EventIndex(s.Event)
		if s.Work.Handler == "" || i < 0 {
			return nil
		}
		stored = append(stored, storedStep{m.table.Events[i], actor, s.Work.Handler, s.Work.Args})
	}
	if len(stored) == 0 {
		return nil
	}
	data, err := json.Marshal(stored)
	if err != nil {
		panic("lifecycle: steps: " + err.Error()) // strings and bytes always can be
	}
	return data
}

func (m *Manager[S, E, T]) decodeSteps(data []byte) (actor fsm.Actor, steps []Step[E], err error) {
	if len(data) == 0 {
		return "", nil, nil
	}
	var stored []storedStep
	if err := json.Unmarshal(data, &stored); err != nil {
		return "", nil, fmt.Errorf("%w: steps: %w", ErrForeign, err)
	}
	for _, s := range stored {
		i, ok := m.table.EventIndex(s.Event)
		if !ok {
			return "", nil, fmt.Errorf("%w: a step by the event %s", ErrForeign, s.Event)
		}
		actor = s.Actor
		steps = append(steps, Step[E]{m.machine.EventAt(i), Work{Handler: s.Work, Args: s.Args}})
	}
	return actor, steps, nil
}
