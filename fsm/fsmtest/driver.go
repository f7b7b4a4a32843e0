package fsmtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// Driver is a system under test: whatever keeps one object of the table, be it an
// [fsm.Instance], a manager over a store, or a service behind an API. [Drive] makes
// one of a machine.
type Driver interface {
	// Reset makes a new object, which the calls of Apply that follow are about,
	// and returns the state in which it begins.
	Reset(t testing.TB) (state string)
	// Apply fires an event and returns the state in which the object is
	// afterwards, accepted or refused. The second result is the refusal, nil if
	// the event was accepted. A refusal that matches a sentinel of package fsm has
	// to match the right one; a system with errors of its own may return these.
	// [ErrCannot] says that the request cannot be made of this system. What is no
	// refusal but a breakdown fails t.
	//
	// [Race] calls it from several goroutines at once, the others do not.
	Apply(t testing.TB, r Request) (state string, refusal error)
}

// ErrCannot is returned by a [Driver] that cannot make a request: a guard that
// cannot be told what to say, force that it does not know. Nothing has happened.
var ErrCannot = errors.New("fsmtest: the driver cannot make this request")

// Request is one event that somebody fires. The zero Request is none.
type Request struct {
	Event string
	Actor fsm.Actor
	Force bool
	// What the guards that are asked have to say, by their names. Of guards that
	// are in neither, none is asked by a machine of the table.
	Agree, Refuse []string
}

// String tells the request in one line, for people.
func (r Request) String() string {
	var b strings.Builder
	b.WriteString(r.Event)
	if r.Actor != "" {
		b.WriteString(" by " + string(r.Actor))
	}
	if r.Force {
		b.WriteString(" by force")
	}
	for _, g := range r.Agree {
		b.WriteString(", " + g)
	}
	for _, g := range r.Refuse {
		b.WriteString(", not " + g)
	}
	return b.String()
}

// Guard returns what a guard has to say: nil if it agrees, else [ErrToldTo] or,
// for a guard that nobody expects to be asked, an error that names it.
func (r Request) Guard(name string) error {
	switch {
	case slices.Contains(r.Agree, name):
		return nil
	case slices.Contains(r.Refuse, name):
		return ErrToldTo
	}
	return errors.New("fsmtest: guard " + name + " was asked, which the table does not ask here")
}

// ErrToldTo is the reason of guards that refuse because a [Request] wants it.
var ErrToldTo = errors.New("fsmtest: the guard was told to refuse")

func requestOf(s *tour.Step) Request {
	return Request{Event: s.Event, Actor: s.Actor, Force: s.Force, Agree: s.Agree, Refuse: s.Refuse}
}

func refusedBy(n *tour.Negative) Request {
	return Request{Event: n.Event, Actor: n.Actor, Force: n.Force, Refuse: n.Refuse}
}

// reasons are the sentinels of refusals by a table.
var reasons = []error{fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrForcedOnly, fsm.ErrGuard}

// reason returns the sentinel that a refusal matches, nil if it is of the system's
// own. A guard's reason may match another one too, so that it is asked first.
func reason(refusal error) error {
	for i := range reasons {
		if sentinel := reasons[len(reasons)-1-i]; errors.Is(refusal, sentinel) {
			return sentinel
		}
	}
	return nil
}

// status is a state and an origin by name.
type status struct{ state, origin string }

func (s status) String() string {
	if s.state == s.origin {
		return s.state
	}
	return s.state + " (from " + s.origin + ")"
}
