// Package tee joins the functions of observers.
package tee

import "context"

// Both returns a function that calls both, the second one also if the first one panics. A
// nil function is left out, so the result of two is nil.
func Both[Event any](first, second func(context.Context, Event)) func(context.Context, Event) {
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
