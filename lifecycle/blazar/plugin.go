package blazar

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// ErrRefused is for plugins and methods: an error that matches it says that what
// was asked cannot be done, and that nothing was changed. It is not fatal: an
// update leads back to where the lease was, with its content, and a lease that was
// to be created is not. Every other error is fatal, and leads to ERROR; so does
// this one of a start, an end and a delete. To callers it is a
// [lifecycle.ErrPrecondition].
var ErrRefused error = refusal{}

type refusal struct{}

func (refusal) Error() string { return "blazar: refused" }

func (refusal) Is(target error) bool { return target == lifecycle.ErrPrecondition }

// Plugin does what reservations of one type of resources need. A nil function has
// nothing to do. The functions are called by many goroutines, for one reservation
// by one at a time, with the operation of the lease in the context (see
// [lifecycle.TaskOf]).
//
// A function is told to give up by its context, as when a lease is deleted that
// hangs in its start. One that does not look at its context is not waited for:
// what it does later is its own affair, and OnEnd may be called meanwhile. A
// function may be called again for what it has done already, when nobody could
// write down that it was done. One that takes longer than [MethodTimeout] has to
// say now and then that it gets on ([lifecycle.Task.Beat]).
type Plugin struct {
	// Reserve reserves the resources, from the start of the lease to its end, and
	// returns what they are, or "".
	Reserve func(ctx context.Context, a Allocation) (resourceID string, err error)
	// Update changes what is reserved, and when.
	Update func(ctx context.Context, a Allocation) error
	// OnStart hands the resources out.
	OnStart func(ctx context.Context, a Allocation) error
	// BeforeEnd does what is to be done a while before OnEnd.
	BeforeEnd func(ctx context.Context, a Allocation) error
	// OnEnd takes the resources back, and gives the reservation up. It is also
	// called for a reservation that never began.
	OnEnd func(ctx context.Context, a Allocation) error
}

// Allocation is a reservation as its plugin sees it. It is a plain value.
type Allocation struct {
	Lease, Reservation string // ids
	Resource           string // the type
	ResourceID         string // what Reserve has returned
	Amount             int
	Start, End         time.Time // of the lease
}

// ask calls a function of a plugin, and does not wait for it any longer than its
// context lasts. The goroutine belongs to the plugin: it ends when the function
// does.
func ask[R any](ctx context.Context, f func(context.Context, Allocation) (R, error), a Allocation) (R, error) {
	type answer struct {
		result R
		err    error
	}
	var none R
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	// Room for one: nobody may be there any more to take it.
	answers := make(chan answer, 1)
	go func() {
		returned := false
		defer func() {
			if !returned {
				answers <- answer{err: &queue.PanicError{Value: recover(), Stack: debug.Stack()}}
			}
		}()
		r, err := f(ctx, a)
		returned = true
		answers <- answer{r, err}
	}()
	select {
	case got := <-answers:
		return got.result, got.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// do is ask for the functions that return nothing else.
func do(ctx context.Context, f func(context.Context, Allocation) error, a Allocation) error {
	if f == nil {
		return nil
	}
	_, err := ask(ctx, func(ctx context.Context, a Allocation) (struct{}, error) { return struct{}{}, f(ctx, a) }, a)
	return err
}
