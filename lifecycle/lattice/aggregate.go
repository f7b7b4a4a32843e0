package lattice

import "iter"

// Aggregate returns the state of a system that is neither pending, failed nor
// deleting: the first of degraded, updating, scaling and stable that one of its
// services has. A failed service counts as degraded, and so does one in a state
// that is not listed here, because it is not known to work; a pending or
// deleting one counts as updating. A system without services is stable.
//
// A system moves to the result by
//
//	System.NextTo(ctx, status, Aggregate(services), Aggregator, nil)
//
// unless it is there already.
func Aggregate(services iter.Seq[ServiceState]) State {
	worst := 0
	for s := range services {
		worst = max(worst, s.severity())
	}
	return [...]State{Stable, Scaling, Updating, Degraded}[worst]
}

// severity ranks a service: 0 stable, 1 scaling, 2 updating, 3 degraded.
func (s ServiceState) severity() int {
	switch s {
	case ServiceStable:
		return 0
	case ServiceScaling:
		return 1
	case ServicePending, ServiceUpdating, ServiceDeleting:
		return 2
	}
	return 3
}
