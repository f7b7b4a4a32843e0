package lock

import "github.com/interlock-go/interlock/internal/tee"

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee(observers ...Observer) Observer {
	var all Observer
	for _, o := range observers {
		all.Granted = tee.Both(all.Granted, o.Granted)
		all.Refused = tee.Both(all.Refused, o.Refused)
		all.Waiting = tee.Both(all.Waiting, o.Waiting)
		all.Released = tee.Both(all.Released, o.Released)
	}
	return all
}
