package lifecycle

import (
	"context"
	"errors"
)

// Stuck returns objects that [Manager.Sweep] would act upon, at most max of them, up to
// [MaxPage]; 0 or less is MaxPage. It changes nothing. It reads what a sweep reads, and
// returns objects in the order in which a sweep finds them. A result has the event and
// actor of the deadline row, without [Config].Observe. Its Resolution is [NeedsOperator],
// [NoRow], [NotMoved] for a foreign record, or 0: the sweep would fire the event.
//
// Stuck takes an owner for dead only if the owner has left or a sweeper has declared it
// dead. The error is [ErrInvalid] for a number above MaxPage, the store's or the
// context's; the results until then are returned too.
func (m *Manager[S, E, T]) Stuck(ctx context.Context, max int) ([]SweepResult, error) {
	c := m.core
	most, err := limit(max)
	if err != nil {
		return nil, c.failed("stuck", "", err)
	}
	s := &sweep{core: c, most: most, seen: map[string]bool{}, alive: []OwnerRef{}, epochs: map[string]uint64{}}
	for _, step := range []func(context.Context) error{s.readLive, s.unresolved, s.orphaned, s.overdue, s.ownerless, s.undated} {
		if err := step(ctx); errors.Is(err, errEnough) {
			break
		} else if err != nil {
			return s.results, c.failed("stuck", "", err)
		}
	}
	return s.results, nil
}

// errEnough ends a sweep that changes nothing.
var errEnough = errors.New("lifecycle: enough results")

// readLive reads the owners that are alive.
func (s *sweep) readLive(ctx context.Context) error {
	alive, err := s.owners.listOwners(ctx, ownerAlive)
	for i := range alive {
		s.live(&alive[i])
	}
	return err
}
