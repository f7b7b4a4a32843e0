package fsmtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Case is a row of a table test: in this state, this event by this actor leads
// there, or is refused.
type Case[S, E comparable, T any] struct {
	From    S
	Origin  *S // of an object in a transitional state; default: it has none
	Event   E
	Actor   fsm.Actor
	Payload *T   // what guards look at
	Force   bool // the request is forced
	To      S    // where it leads; of no meaning with Err
	Err     error
	// Row, if it is not nil, is the index of the row that is taken.
	Row *int
}

// Run fires each case at an object of its own, and fails t for each that ends
// elsewhere, or is refused otherwise than by an error that matches its Err. A
// refusal must leave the object where it is.
func Run[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], cases []Case[S, E, T]) {
	t.Helper()
	if len(cases) == 0 {
		t.Errorf("%s: no cases", m.Name())
	}
	for i := range cases {
		if fault := cases[i].fault(t.Context(), m); fault != "" {
			t.Errorf("%s: case %d: %s: %s", m.Name(), i, &cases[i], fault)
		}
	}
}

// String tells the request of the case in one line, for people.
func (c *Case[S, E, T]) String() string {
	at := status{fmt.Sprint(c.From), fmt.Sprint(c.From)}
	if c.Origin != nil {
		at.origin = fmt.Sprint(*c.Origin)
	}
	return fmt.Sprintf("%s: %s", at, Request{Event: fmt.Sprint(c.Event), Actor: c.Actor, Force: c.Force})
}

// fault says what is wrong, nothing if the case holds.
func (c *Case[S, E, T]) fault(ctx context.Context, m *fsm.Machine[S, E, T]) string {
	at := m.At(c.From)
	if c.Origin != nil {
		at.Origin = *c.Origin
	}
	in, err := m.InstanceAt(at)
	if err != nil {
		return err.Error()
	}
	fire := in.Fire
	if c.Force {
		fire = in.FireForced
	}
	step, err := fire(ctx, c.Event, c.Actor, c.Payload)
	switch {
	case c.Err != nil && err == nil:
		return fmt.Sprintf("is not refused and leads to %v", step.State)
	case c.Err != nil && !errors.Is(err, c.Err):
		return fmt.Sprintf("is refused for another reason: %v", err)
	case c.Err != nil && in.Status() != at:
		return fmt.Sprintf("is refused, and leads to %v", in.State())
	case c.Err != nil:
		return ""
	case err != nil:
		return fmt.Sprintf("is refused: %v", err)
	case step.State != c.To || in.State() != c.To:
		return fmt.Sprintf("leads to %v instead of %v", in.State(), c.To)
	case c.Row != nil && step.Row != *c.Row:
		return fmt.Sprintf("takes row %d instead of %d", step.Row, *c.Row)
	}
	return ""
}
