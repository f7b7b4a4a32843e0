package lifecycle

import "github.com/interlock-go/interlock/internal/tee"

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee(observers ...Observer) Observer {
	var all Observer
	for _, o := range observers {
		all.Changed = tee.Both(all.Changed, o.Changed)
		all.Refused = tee.Both(all.Refused, o.Refused)
		all.Reported = tee.Both(all.Reported, o.Reported)
		all.Finished = tee.Both(all.Finished, o.Finished)
		all.Retried = tee.Both(all.Retried, o.Retried)
		all.Swept = tee.Both(all.Swept, o.Swept)
		all.Stored = tee.Both(all.Stored, o.Stored)
	}
	return all
}
