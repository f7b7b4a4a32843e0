package fsm

import (
	"context"
	"reflect"
)

// Guard is a named condition on an object's payload. Make one with [When].
// The zero Guard is refused by [New]. Guards are values and may be shared.
type Guard[T any] struct {
	name  string
	check func(ctx context.Context, payload *T) error
}

// When makes a guard. The name stands in pictures, files and refusals: it says
// what must hold. check returns nil to let the row fire, or the reason why not.
// It must not change the payload, may be called from many goroutines at once,
// more than once for one request where that is decided again, and is called with the payload pointer that the caller gave, nil included.
// A panic in check goes on in the goroutine of the caller; nothing has moved.
func When[T any](name string, check func(ctx context.Context, payload *T) error) Guard[T] {
	return Guard[T]{name: name, check: check}
}

// Name returns the guard's name.
func (g Guard[T]) Name() string { return g.name }

func (g Guard[T]) payloadType() reflect.Type { return reflect.TypeFor[T]() }

func (g Guard[T]) usable() bool { return g.name != "" && g.check != nil }

// AnyGuard is a [Guard] of whatever payload type. A row holds one so that rows
// need no third type parameter; [New] refuses a guard of another payload type.
type AnyGuard interface {
	Name() string
	payloadType() reflect.Type
	usable() bool
}
