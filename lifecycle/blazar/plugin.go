package blazar

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/lifecycle"
)

// ErrRefused is for plugins and methods. They return an error that matches it if the
// request cannot be fulfilled and nothing was changed. It is not fatal for an update,
// which leads back to the status and content before, nor for a creation, which
// creates nothing. Every other error is fatal and leads to ERROR; so does ErrRefused of
// a start, an end and a delete. ErrRefused matches [lifecycle.ErrPrecondition].
var ErrRefused error = refusal{}

type refusal struct{}

func (refusal) Error() string { return "blazar: refused" }

func (refusal) Is(target error) bool { return target == lifecycle.ErrPrecondition }

// Plugin implements the reservations of one type of resources. A nil function does
// nothing and succeeds. Many goroutines call the functions, for one reservation one
// at a time, with the operation of the lease in the context (see
// [lifecycle.TaskOf]).
//
// The context of a function ends when the method is cancelled, for example when a
// lease is deleted that hangs in its start. The service does not wait for a function
// that ignores its context, and may call OnEnd meanwhile. A function is called again
// for the same reservation if its success could not be written. A function that takes
// longer than the timeout of its method sends heartbeats ([lifecycle.Task.Heartbeat]).
type Plugin struct {
	// Reserve reserves the resources, from the start of the lease to its end, and
	// returns their id, or "".
	Reserve func(ctx context.Context, a Allocation) (resourceID string, err error)
	// Update changes the amount or the times of a reservation.
	Update func(ctx context.Context, a Allocation) error
	// OnStart hands the resources over to the lease.
	OnStart func(ctx context.Context, a Allocation) error
	// OnEnd releases the resources, and ends the reservation. It is also called
	// for a reservation that was never started.
	OnEnd func(ctx context.Context, a Allocation) error
}

// Allocation is a reservation as its plugin receives it. It is a plain value.
type Allocation struct {
	Lease, Reservation string    // ids
	Request                      // its ResourceID is the result of Reserve
	Start, End         time.Time // of the lease
}

// plugin returns the plugin of a type of resources.
func (s *Service) plugin(resource string) (Plugin, error) {
	plugin, ok := s.config.Plugins[resource]
	if !ok {
		return Plugin{}, fmt.Errorf("%w: there is no plugin for resources of type %q in this process", lifecycle.ErrMisconfigured, resource)
	}
	return plugin, nil
}

// checkPlugins refuses a call for the reservations of a lease if it needs a plugin that this
// process does not have. Another process may have it, so nothing is changed.
func (s *Service) checkPlugins(ctx context.Context, id string, call Call) error {
	lease, err := s.GetLease(ctx, id)
	if err != nil {
		return nil // the start of the method reports it
	}
	for i := range lease.Reservations {
		if r := &lease.Reservations[i]; r.Status != becomes[call] {
			if _, err := s.plugin(r.Resource); err != nil {
				return err
			}
		}
	}
	return nil
}

// perform calls a function of a plugin, and waits for it until the context ends. Nil
// succeeds. The goroutine belongs to the plugin: it ends when the function does. A panic
// or runtime.Goexit is the error.
func perform(ctx context.Context, f func(context.Context, Allocation) error, a Allocation) error {
	if f == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case err := <-protect.Start(func() error { return f(ctx, a) }):
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
