package queue

import (
	"context"
)

// Future is an accepted action that has a result. It is made by [Go], [GoAll] and
// [Then], safe for concurrent use and must not be copied.
type Future[R any] struct {
	t     handle
	value R // written by the action, read after its end
}

// handle is a ticket without its type of keys.
type handle interface {
	Parent
	Wait(context.Context) error
	Done() <-chan struct{}
	Err() error
	Outcome() Outcome
	Cancel(error) Cancellation
}

// Wait waits as [Ticket.Wait] does and returns the result. With an error the
// result is the zero value.
func (f *Future[R]) Wait(ctx context.Context) (R, error) {
	if err := f.t.Wait(ctx); err != nil {
		var zero R
		return zero, err
	}
	return f.value, nil
}

// Done is closed when the action has ended.
func (f *Future[R]) Done() <-chan struct{} { return f.t.Done() }

// Err is as [Ticket.Err].
func (f *Future[R]) Err() error { return f.t.Err() }

// Outcome is as [Ticket.Outcome].
func (f *Future[R]) Outcome() Outcome { return f.t.Outcome() }

// Cancel is as [Ticket.Cancel].
func (f *Future[R]) Cancel(cause error) Cancellation { return f.t.Cancel(cause) }

func (f *Future[R]) adopt(c child) { f.t.adopt(c) }

func (f *Future[R]) ticket() any {
	if f == nil {
		return nil
	}
	return f.t.ticket()
}

// Do submits the function and waits for its result. If ctx ends first, the action
// is withdrawn if it waits and told to end if it runs, and the error is that of
// [Ticket.Wait]. Inside an action, for a key that would have to wait for that
// action, it returns [ErrWouldDeadlock], and the function is not run.
func Do[R any, K comparable](ctx context.Context, q *Queuer[K], key K, run func(context.Context) (R, error)) (R, error) {
	f, err := Go(ctx, q, key, run)
	if err != nil {
		var zero R
		return zero, err
	}
	v, err := f.Wait(ctx)
	if err != nil && f.Outcome() == Pending {
		f.Cancel(err)
	}
	return v, err
}

// Go submits the function and returns its future.
func Go[R any, K comparable](ctx context.Context, q *Queuer[K], key K, run func(context.Context) (R, error)) (*Future[R], error) {
	return GoAll(ctx, q, []K{key}, nil, run)
}

// GoAll is [Go] for several keys, and with everything that an action may say
// beside what it does: act has neither Run nor Handler, and no ID, since the
// result of a repeated request belongs to the first. nil: nothing. It is copied.
func GoAll[R any, K comparable](ctx context.Context, q *Queuer[K], keys []K, act *Action, run func(context.Context) (R, error)) (*Future[R], error) {
	var own Action
	if act != nil {
		own = *act
	}
	switch {
	case run == nil:
		return nil, &InvalidError{"Run", "nil"}
	case own.Run != nil || own.Handler != "":
		return nil, &InvalidError{"Run", "beside the function"}
	case own.ID != "":
		return nil, &InvalidError{"ID", "of a future"}
	}
	f := new(Future[R])
	own.Run = func(ctx context.Context) error {
		v, err := run(ctx)
		if err == nil {
			f.value = v
		}
		return err
	}
	t, err := q.SubmitAll(ctx, keys, &own)
	if err != nil {
		return nil, err
	}
	f.t = t
	return f, nil
}

// Then submits a function of the result of another action, maybe of another
// queue: it waits in the lane of its key until that one has ended, and if that
// one did not end as [OK] it ends with its error and does not run.
func Then[A, R any, K comparable](ctx context.Context, q *Queuer[K], key K, parent *Future[A], run func(context.Context, A) (R, error)) (*Future[R], error) {
	if parent == nil || run == nil {
		return nil, &InvalidError{"After", "nil parent or function"}
	}
	return GoAll(ctx, q, []K{key}, &Action{After: parent}, func(ctx context.Context) (R, error) {
		return run(ctx, parent.value)
	})
}
