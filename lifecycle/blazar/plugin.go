package blazar

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// ErrRefused is for plugins and methods. They return an error that matches it if the
// request cannot be fulfilled and nothing was changed. It is not fatal for an update,
// which leads back to the status and content before, nor for a creation, which
// creates nothing. Every other error is fatal and leads to ERROR; so does this one of
// a start, an end and a delete. ErrRefused matches [lifecycle.ErrPrecondition].
var ErrRefused error = refusal{}

type refusal struct{}

func (refusal) Error() string { return "blazar: refused" }

func (refusal) Is(target error) bool { return target == lifecycle.ErrPrecondition }

// Plugin does what reservations of one type of resources need. A nil function does
// nothing and succeeds. Many goroutines call the functions, for one reservation one
// at a time, with the operation of the lease in the context (see
// [lifecycle.TaskOf]).
//
// The context of a function ends when the method is cancelled, for example when a
// lease is deleted that hangs in its start. The service does not wait for a function
// that ignores its context, and may call OnEnd meanwhile. A function is called again
// for the same reservation if its success could not be written. A function that takes longer than [MethodTimeout]
// sends heartbeats ([lifecycle.Task.Heartbeat]).
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
	// OnEnd takes the resources back, and ends the reservation. It is also called
	// for a reservation that never began.
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

// ask calls a function of a plugin, and waits for it until the context ends. The
// goroutine belongs to the plugin: it ends when the function does.
func ask[R any](ctx context.Context, f func(context.Context, Allocation) (R, error), a Allocation) (R, error) {
	type answer struct {
		result R
		err    error
	}
	var none R
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	// The buffer lets the goroutine end if ask has returned before.
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

// do is ask for functions that return only an error.
func do(ctx context.Context, f func(context.Context, Allocation) error, a Allocation) error {
	if f == nil {
		return nil
	}
	_, err := ask(ctx, func(ctx context.Context, a Allocation) (struct{}, error) { return struct{}{}, f(ctx, a) }, a)
	return err
}
