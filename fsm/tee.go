package fsm

import "context"

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee(observers ...Observer) Observer {
	var all Observer
	for _, o := range observers {
		all.Moved = tee(all.Moved, o.Moved)
		all.Refused = tee(all.Refused, o.Refused)
	}
	return all
}

// tee returns a function that calls both.
func tee[Event any](first, second func(context.Context, Event)) func(context.Context, Event) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(ctx context.Context, e Event) {
		defer second(ctx, e)
		first(ctx, e)
	}
}
