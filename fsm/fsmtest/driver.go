package fsmtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/fsm/tour"
)

// Driver is a system under test that keeps one object of the table: an
// [fsm.Instance], a manager with a store, or a service behind an API. [Drive] returns
// the driver of a machine.
type Driver interface {
	// Reset creates a new object in an entry state for the following calls of Apply,
	// and returns its state, which has to be that entry state. If the table has one
	// entry state only, Reset may ignore the argument.
	Reset(t testing.TB, initial string) (state string)
	// Apply makes a request and returns the state of the object afterwards. The
	// second result is the refusal, and nil if the system accepted the event. A
	// refusal that matches a sentinel of package fsm has to match the right one. A
	// system may also return errors of its own. Apply returns ErrUnsupported if it
	// cannot make the request; it has then done nothing. Apply fails t if the system
	// breaks down. [Race] calls it from several goroutines at once.
	//
	// A manager refuses fsm.Sweeper. Its driver waits for the timeout, in a bubble of
	// testing/synctest, and calls Sweep. The request is accepted if the result of the
	// object is lifecycle.Moved or lifecycle.Redone.
	Apply(t testing.TB, r Request) (state string, refusal error)
}

// ErrUnsupported is returned by a [Driver] that cannot make a request, for example
// because it has no payload for which the guards return the wanted results.
var ErrUnsupported = errors.New("fsmtest: the driver cannot make this request")

// errScripted is the reason of a guard that refuses because the [Request] wants it.
var errScripted = errors.New("fsmtest: the request wants this guard to refuse")

// Request is the event that an actor fires in a step of a tour. It is read only and may be
// copied.
type Request tour.Request

// String returns the request in one line.
func (r Request) String() string { return tour.Request(r).String() }

// Guard returns the result of a guard: nil if the guard has to pass, and an error if it has
// to refuse or if the table does not call the guard here.
func (r Request) Guard(name string) error {
	switch {
	case slices.Contains(r.Agree, name):
		return nil
	case slices.Contains(r.Refuse, name):
		return errScripted
	}
	return fmt.Errorf("fsmtest: call guard %q: the table does not call it here", name)
}

// Context returns a context that carries the request to the guards of
// [ScriptedGuards].
func (r Request) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

type requestKey struct{}
