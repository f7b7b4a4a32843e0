package fsmtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Case is one row of a table test. The zero value of an optional field is its
// default.
type Case[S, E comparable, T any] struct {
	From    S
	Origin  *S // origin of an object in a transitional state; Run accepts an impossible one; default: none
	Event   E
	Actor   fsm.Actor // an undeclared one, such as a misspelt one, meets fsm.ErrWrongActor
	Payload *T        // payload that guards get; default: nil
	Force   bool      // whether the request is forced
	To      S         // expected state; not used if Err or Ignored is set
	Ignored bool      // whether a row is expected that ignores the event, instead of a move
	Err     error     // expected refusal, compared with errors.Is; default: none
	Row     *int      // expected index of the row that is taken; default: any
}

// String returns the request of the case in one line.
func (c *Case[S, E, T]) String() string {
	at := fmt.Sprint(c.From)
	if c.Origin != nil && *c.Origin != c.From {
		at += fmt.Sprintf(" (from %v)", *c.Origin)
	}
	return fmt.Sprintf("%s: %s", at, Request{Event: fmt.Sprint(c.Event), Actor: c.Actor, Force: c.Force})
}

// Run fires each case at an instance of its own. It reports to t every case that
// leads to another state, is refused with another error, or moves the object although
// the case expects a refusal or an ignored event. A row from a state to the same state is
// a move. It fails t if there are no cases.
func Run[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], cases []Case[S, E, T]) {
	t.Helper()
	if len(cases) == 0 {
		t.Errorf("%s: no cases", m.Name())
	}
	for i := range cases {
		if err := cases[i].run(t.Context(), m); err != nil {
			t.Errorf("%s: case %d: %s: %v", m.Name(), i, &cases[i], err)
		}
	}
}

// run returns the fault of the case, and nil if the case holds.
func (c *Case[S, E, T]) run(ctx context.Context, m *fsm.Machine[S, E, T]) error {
	at := m.At(c.From)
	if c.Origin != nil {
		at.Origin = *c.Origin
	}
	in, err := m.InstanceAt(at)
	if err != nil {
		return err
	}
	fire := in.Fire
	if c.Force {
		fire = in.FireForced
	}
	step, err := fire(ctx, c.Event, c.Actor, c.Payload)
	switch {
	case c.Err != nil && err == nil:
		return fmt.Errorf("is not refused and leads to %v", step.State)
	case c.Err != nil && !errors.Is(err, c.Err):
		return fmt.Errorf("is refused for another reason: %w", err)
	case c.Err != nil:
		return nil
	case err != nil:
		return fmt.Errorf("is refused: %w", err)
	case c.Ignored && !step.Ignored:
		return fmt.Errorf("is not ignored and leads to %v", step.State)
	case step.Ignored && !c.Ignored:
		return fmt.Errorf("is ignored instead of leading to %s", c.target(m))
	case !c.Ignored && step.State != c.To:
		return fmt.Errorf("leads to %v instead of %s", step.State, c.target(m))
	case c.Row != nil && step.Row != *c.Row:
		return fmt.Errorf("takes row %d instead of %d", step.Row, *c.Row)
	}
	return nil
}

// target returns the name of the expected state, and marks one that is forgotten or
// misspelt.
func (c *Case[S, E, T]) target(m *fsm.Machine[S, E, T]) string {
	if _, err := m.InstanceAt(m.At(c.To)); err != nil {
		return fmt.Sprintf("%q, which is not a state", fmt.Sprint(c.To))
	}
	return fmt.Sprint(c.To)
}
