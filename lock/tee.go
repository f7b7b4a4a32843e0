package lock

import "context"

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee(observers ...Observer) Observer {
	var all Observer
	for _, o := range observers {
		all.Granted = tee(all.Granted, o.Granted)
		all.Refused = tee(all.Refused, o.Refused)
		all.Waiting = tee(all.Waiting, o.Waiting)
		all.Released = tee(all.Released, o.Released)
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
