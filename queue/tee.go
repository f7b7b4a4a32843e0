package queue

import "github.com/interlock-go/interlock/internal/tee"

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee[K comparable](observers ...Observer[K]) Observer[K] {
	var all Observer[K]
	for _, o := range observers {
		all.Accepted = tee.Both(all.Accepted, o.Accepted)
		all.Started = tee.Both(all.Started, o.Started)
		all.Retried = tee.Both(all.Retried, o.Retried)
		all.Finished = tee.Both(all.Finished, o.Finished)
		all.Halted = tee.Both(all.Halted, o.Halted)
	}
	return all
}
