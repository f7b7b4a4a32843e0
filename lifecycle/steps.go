package lifecycle

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// storedWork is what the Steps of a record are while work with bounds is done:
// they are the present work's, and what is to follow. Without bounds, and at rest,
// they are the list of what is to follow alone.
type storedWork struct {
	bounds
	Steps []storedStep `json:"steps,omitempty"`
}

// storedStep is a step as records keep it.
type storedStep struct {
	Event string    `json:"event"`
	Actor fsm.Actor `json:"actor"`
	Work  string    `json:"work"`
	Args  []byte    `json:"args,omitempty"`
	bounds
}

// bounds are what limits work wherever it is done.
type bounds struct {
	Timeout time.Duration `json:"timeout,omitempty"` // in nanoseconds
	Class   string        `json:"class,omitempty"`   // that of the chain's first step
}

// encodeSteps returns what a record keeps of the present step, beside its handler,
// and of those that follow: these only if all of them survive this process. It is
// nil if that is nothing.
func (m *Manager[S, E, T]) encodeSteps(actor fsm.Actor, class string, steps []Step[E]) []byte {
	now := steps[0].Work
	stored := storedWork{Steps: m.storedSteps(actor, class, steps[1:])}
	if now.Handler != "" {
		stored.bounds = bounds{now.Timeout, class}
	}
	var data []byte
	var err error
	switch {
	case stored.bounds != bounds{}:
		data, err = json.Marshal(stored)
	case len(stored.Steps) > 0:
		data, err = json.Marshal(stored.Steps)
	}
	if err != nil {
		panic("lifecycle: steps: " + err.Error()) // strings, numbers and bytes always can be
	}
	return data
}

func (m *Manager[S, E, T]) storedSteps(actor fsm.Actor, class string, steps []Step[E]) (stored []storedStep) {
	for _, s := range steps {
		i := m.machine.EventIndex(s.Event)
		if s.Work.Handler == "" || i < 0 {
			return nil
		}
		stored = append(stored, storedStep{m.table.Events[i], actor, s.Work.Handler, s.Work.Args, bounds{s.Work.Timeout, class}})
	}
	return stored
}

// decodeSteps returns the present work of a record in transition, and what is to
// follow; of one at rest, the handler is that of a step which is done.
func (m *Manager[S, E, T]) decodeSteps(r *StoredRecord) (actor fsm.Actor, now Work, steps []Step[E], err error) {
	var stored storedWork
	if len(r.Steps) > 0 {
		var form any = &stored.Steps
		if r.Steps[0] == '{' {
			form = &stored
		}
		if err := json.Unmarshal(r.Steps, form); err != nil {
			return "", Work{}, nil, fmt.Errorf("%w: steps: %w", ErrForeign, err)
		}
	}
	for _, s := range stored.Steps {
		i, ok := m.table.EventIndex(s.Event)
		if !ok {
			return "", Work{}, nil, fmt.Errorf("%w: a step by the event %s", ErrForeign, s.Event)
		}
		actor = s.Actor
		steps = append(steps, Step[E]{m.machine.EventAt(i), s.work(s.Work, s.Args)})
	}
	return actor, stored.work(r.Work, r.Args), steps, nil
}

func (b bounds) work(handler string, args []byte) Work {
	return Work{Handler: handler, Args: args, Timeout: b.Timeout, Class: b.Class}
}

// following is what a record's Steps are once its work is done: without the bounds
// of that.
func following(steps []byte) []byte {
	if len(steps) == 0 || steps[0] != '{' {
		return steps
	}
	var stored struct {
		Steps json.RawMessage `json:"steps"`
	}
	if json.Unmarshal(steps, &stored) != nil {
		return steps // whoever goes on with them says so
	}
	return stored.Steps
}
