// Package tee calls several functions of observers, all of them also if one panics.
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

// Each calls a function for every element of a list, in order. If a call panics or calls
// runtime.Goexit, those after it are made before the caller goes on with that.
func Each[E any](list []E, call func(E)) {
	defer func() {
		if len(list) > 0 {
			Each(list, call)
		}
	}()
	for len(list) > 0 {
		e := list[0]
		list = list[1:]
		call(e)
	}
}
