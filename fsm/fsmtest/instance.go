package fsmtest

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Drive returns a driver over instances of a machine. The payload function returns
// what guards look at, such that they agree and refuse as the request says; it
// returns nil and false if there is no such payload, which is [ErrCannot]. If it
// is nil, the guards are replaced by some that do as they are told ([Puppets]).
func Drive[S, E comparable, T any](m *fsm.Machine[S, E, T], payload func(Request) (*T, bool)) Driver {
	if payload == nil {
		m = Puppets(m)
		payload = func(Request) (*T, bool) { return nil, true }
	}
	return &instance[S, E, T]{m: m, payload: payload}
}

type instance[S, E comparable, T any] struct {
	m       *fsm.Machine[S, E, T]
	object  fsm.Instance[S, E, T]
	payload func(Request) (*T, bool)
}

func (d *instance[S, E, T]) Reset(testing.TB) string {
	d.object = d.m.Instance()
	return d.name()
}

func (d *instance[S, E, T]) name() string {
	return d.m.Table().States[d.m.StateIndex(d.object.State())].Name
}

func (d *instance[S, E, T]) Apply(t testing.TB, r Request) (string, error) {
	e, ok := d.m.Table().EventIndex(r.Event)
	if !ok {
		return d.name(), &fsm.TransitionError{Machine: d.m.Name(), From: d.name(), Event: r.Event, Actor: r.Actor, Row: -1, Err: fsm.ErrUnknownEvent}
	}
	payload, ok := d.payload(r)
	if !ok {
		return d.name(), ErrCannot
	}
	fire := d.object.Fire
	if r.Force {
		fire = d.object.FireForced
	}
	_, err := fire(r.Context(t.Context()), d.m.EventAt(e), r.Actor, payload)
	return d.name(), err
}

// Puppets returns a machine of the same table whose guards look at no payload: they
// say what the [Request] in their context wants, see [Request.Context]. It is for
// drivers over something that is made of a machine, such as a manager.
func Puppets[S, E comparable, T any](m *fsm.Machine[S, E, T]) *fsm.Machine[S, E, T] {
	return remade(m, func(row int) guardFunc[T] {
		name := m.Table().Rows[row].Guard
		return func(ctx context.Context, _, _ *T) error {
			r, ok := ctx.Value(requestKey{}).(Request)
			if !ok {
				panic("fsmtest: a guard of Puppets is asked without a Request in the context")
			}
			return r.Guard(name)
		}
	})
}

// Context returns a context that tells the guards of [Puppets] what to say.
func (r Request) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

type requestKey struct{}
