package fsm

import (
	"context"
	"reflect"
)

// Guard is a named condition on an object's payload. [When] makes one. [New]
// refuses the zero Guard. Guards are values and may be shared.
type Guard[T any] struct {
	name  string
	check func(ctx context.Context, before, after *T) error
}

// When makes a guard. The name states the condition that must hold. Pictures,
// files and refusals show it. Guards of one name are one condition to everything that works
// on a [Table], such as package evolve, and [Bind] gives them one function.
//
// check gets the payload before and after the caller's change. Package lifecycle
// applies a change to a copy before the guards run. Nothing in this package
// changes a payload: every method that takes one payload passes its pointer as
// before and as after, nil included.
//
// check returns nil if the row may fire, otherwise the reason of the refusal. It must not
// change a payload. It may be called from several goroutines at once, and more than once
// for one request. A panic in check reaches the caller; the object has not moved.
//
// If check reads from a system that does not answer, it returns the error of that system,
// or wraps it. Package lifecycle does not refuse a report or the outcome of work for such an
// error, see lifecycle.Manager.Report.
func When[T any](name string, check func(ctx context.Context, before, after *T) error) Guard[T] {
	return Guard[T]{name: name, check: check}
}

// Name returns the guard's name.
func (g Guard[T]) Name() string { return g.name }

func (g Guard[T]) payloadType() reflect.Type { return reflect.TypeFor[T]() }

func (g Guard[T]) usable() bool { return g.name != "" && g.check != nil }

// AnyGuard is a [Guard] of any payload type. A row holds one so that rows
// need no third type parameter; [New] refuses a guard of another payload type.
type AnyGuard interface {
	Name() string
	payloadType() reflect.Type
	usable() bool
}
