package queue

import "context"

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee[K comparable](observers ...Observer[K]) Observer[K] {
	var all Observer[K]
	for _, o := range observers {
		all.Accepted = tee(all.Accepted, o.Accepted)
		all.Started = tee(all.Started, o.Started)
		all.Retried = tee(all.Retried, o.Retried)
		all.Finished = tee(all.Finished, o.Finished)
		all.Halted = tee(all.Halted, o.Halted)
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
