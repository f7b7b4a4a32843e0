package fsmtest

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Drive returns a driver for instances of a machine. The function returns a payload
// for which the guards return the results that the request wants. It returns false if
// there is none, which is [ErrUnsupported]. If the function is nil, the driver uses
// [ScriptedGuards], so that a machine of [Watch] counts no results of guards.
func Drive[S, E comparable, T any](m *fsm.Machine[S, E, T], payload func(Request) (*T, bool)) Driver {
	if payload == nil {
		m = ScriptedGuards(m)
		payload = func(Request) (*T, bool) { return nil, true }
	}
	return &instance[S, E, T]{m: m, payload: payload}
}

type instance[S, E comparable, T any] struct {
	m       *fsm.Machine[S, E, T]
	object  fsm.Instance[S, E, T]
	payload func(Request) (*T, bool)
}

func (d *instance[S, E, T]) Reset(t testing.TB, initial string) string {
	t.Helper()
	i, ok := d.m.Table().StateIndex(initial)
	if !ok {
		t.Fatalf("fsmtest: reset: the machine %s has no state %q", d.m.Name(), initial)
	}
	var err error
	if d.object, err = d.m.InstanceAt(d.m.At(d.m.StateAt(i))); err != nil {
		t.Fatal(err)
	}
	return d.state()
}

func (d *instance[S, E, T]) state() string {
	return d.m.Table().States[d.m.StateIndex(d.object.State())].Name
}

func (d *instance[S, E, T]) Apply(t testing.TB, r Request) (string, error) {
	e, ok := d.m.Table().EventIndex(r.Event)
	if !ok {
		return d.state(), fsm.ErrUnknownEvent
	}
	payload, ok := d.payload(r)
	if !ok {
		return d.state(), ErrUnsupported
	}
	fire := d.object.Fire
	if r.Force {
		fire = d.object.FireForced
	}
	_, err := fire(r.Context(t.Context()), d.m.EventAt(e), r.Actor, payload)
	return d.state(), err
}

// ScriptedGuards returns a machine of the same table whose guards ignore the payload.
// They return the results that the [Request] in their context wants; see
// [Request.Context]. A driver for a system that contains a machine uses it. A guard
// without a Request in its context panics.
func ScriptedGuards[S, E comparable, T any](m *fsm.Machine[S, E, T]) *fsm.Machine[S, E, T] {
	return remade(m, func(row int) guardFunc[T] {
		name := m.Table().Rows[row].Guard
		return func(ctx context.Context, _, _ *T) error {
			r, ok := ctx.Value(requestKey{}).(Request)
			if !ok {
				panic("fsmtest: a guard of ScriptedGuards needs a Request in its context")
			}
			return r.Guard(name)
		}
	})
}

// guardFunc is the function of a guard.
type guardFunc[T any] = func(ctx context.Context, before, after *T) error

// remade returns a machine of the same table with other guards, by row.
func remade[S, E comparable, T any](m *fsm.Machine[S, E, T], guard func(row int) guardFunc[T]) *fsm.Machine[S, E, T] {
	other, err := m.With(m.Table(), func(row int) fsm.Guard[T] { return fsm.When(m.Table().Rows[row].Guard, guard(row)) })
	if err != nil {
		panic("fsmtest: remake machine: " + err.Error()) // its table was accepted before
	}
	return other
}
