package lifecycle

import (
	"context"
	"errors"
)

// Stuck returns objects that [Manager.Sweep] would find now, in the same order: at most max
// of them, up to [MaxPage]; 0 or less is MaxPage. It changes nothing and runs neither Config.Observe nor a
// guard. A result is [Unswept] if a sweep would fire the deadline row. Objects that every
// sweep leaves to the next one are stuck for longer: count them in a gauge, and raise an
// alert if they stay.
//
// Stuck reads what a sweep reads, without payloads. An owner is dead once a sweep has
// declared it dead.
//
// The error is the store's or the context's, with the results until then.
func Stuck(ctx context.Context, m AnyManager, max int) ([]SweepResult, error) {
	c := m.untyped()
	most, err := limit(max)
	if err != nil {
		return nil, c.failed("stuck", "", err)
	}
	s := newSweep(c)
	s.most = most
	err = s.run(ctx, s.readAlive, s.unresolved, s.orphaned, s.overdue, s.ownerless, s.undated)
	if err != nil && !errors.Is(err, errEnough) {
		return s.results, c.failed("stuck", "", err)
	}
	return s.results, nil
}

// errEnough ends a search for stuck objects that has found so many as it may.
var errEnough = errors.New("lifecycle: enough stuck objects")

// readAlive reads the owners that are alive.
func (s *sweep) readAlive(ctx context.Context) error {
	if s.owners == nil {
		return nil
	}
	alive, err := s.owners.listOwners(ctx, ownerAlive)
	for i := range alive {
		s.addAlive(&alive[i])
	}
	return err
}
