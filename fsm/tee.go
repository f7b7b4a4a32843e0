package fsm

import "github.com/interlock-go/interlock/internal/tee"

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee(observers ...Observer) Observer {
	var all Observer
	for _, o := range observers {
		all.Moved = tee.Both(all.Moved, o.Moved)
		all.Refused = tee.Both(all.Refused, o.Refused)
	}
	return all
}
