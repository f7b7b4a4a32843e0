package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/decide"
)

// How a sweep finds dead owners and their objects.

// readOwners reads the owners that are alive, and declares those dead that have sent no
// heartbeat within their TTL. From then on the store accepts nothing that they write:
// their next heartbeat fails, and other processes take their operations by
// compare-and-set. Owners that have been dead for a day are forgotten.
func (s *sweep) readOwners(ctx context.Context) error {
	began := time.Now()
	alive, err := s.owners.listOwners(ctx, ownerAlive)
	expire := newSweep(s.owners)
	expire.once = true
	if s.owner != nil {
		// The bad schedule without it: writes wait for longer than the TTL, as for a lock of the table,
		// and the first one after that declares an owner dead whose heartbeat waits, too.
		s.owners.heartbeats.forget(s.owner.stalled())
	}
	var stalled time.Duration
	if err == nil {
		for _, dead := range s.owners.heartbeats.observe(began, alive) {
			if stalled = max(stalled, expire.declareDead(ctx, &dead)); ctx.Err() != nil {
				err = Ended(ctx)
				break
			}
		}
	}
	if err != nil {
		stalled = math.MaxInt64
	}
	s.owners.heartbeats.forget(stalled)
	if err != nil {
		return err
	}
	for i := range alive {
		// An owner that had to be dead may have sent a heartbeat after all: it is read
		// again if one of its objects is found.
		if r := &alive[i]; !expire.seen[r.ID] {
			s.addAlive(r)
		}
	}
	return expire.each(ctx, Query{States: []string{string(ownerDead)}, Overdue: true}, expire.late)
}

// declareDead declares an owner dead, within the time that [Owner.Run] gives a heartbeat, and sends
// the commit once. The bad schedule without that limit: another transaction locks the table for
// longer than the TTL. The owner repeats its heartbeat, so that this write waits for longer than any
// of them, and is the first after the lock.
//
// It returns up to which TTL the failure shows that an owner could not send a heartbeat either. The
// bad schedule if a write that takes too long counts for longer TTLs: it takes too long in every
// sweep, and no owner with a longer TTL is ever seen unchanged for it.
func (s *sweep) declareDead(ctx context.Context, r *StoredRecord) (stalled time.Duration) {
	ttl := ownerTTL(r)
	limited, stop := context.WithTimeout(ctx, max(ttl/3, 1))
	defer stop()
	// The error is in the result, or that of limited.
	_ = s.care(limited, r, decide.Cause{Overdue: true}, fmt.Sprintf("no heartbeat for %v", ttl))
	switch i := slices.IndexFunc(s.results, func(found SweepResult) bool { return found.ID == r.ID }); {
	case i < 0 || s.results[i].Resolution != NotMoved || errors.Is(s.results[i].Err, ErrForeign):
		return 0
	case limited.Err() != nil:
		return ttl
	}
	return math.MaxInt64
}

func (s *sweep) addAlive(r *StoredRecord) {
	s.alive = append(s.alive, OwnerRef{Name: r.ID, Epoch: uint64(r.Operation)})
	s.epochs[r.ID] = uint64(r.Operation)
}

// readAlive reads the owners that are alive.
func (s *sweep) readAlive(ctx context.Context) error {
	alive, err := s.owners.listOwners(ctx, ownerAlive)
	for i := range alive {
		s.addAlive(&alive[i])
	}
	return err
}

// orphaned acts on objects whose owner is not alive.
func (s *sweep) orphaned(ctx context.Context) error {
	return s.each(ctx, Query{NotOwnedBy: s.alive}, func(ctx context.Context, r *StoredRecord) error {
		dead, err := s.ownerDead(ctx, r)
		if err != nil || !dead {
			return err
		}
		return s.care(ctx, r, decide.Cause{OwnerDead: true}, ownerIsDead(r))
	})
}

// ownerDead reports whether the owner of a record is dead, or alive with another
// epoch. A record without an owner has no dead one.
func (s *sweep) ownerDead(ctx context.Context, r *StoredRecord) (bool, error) {
	if r.Owner == "" {
		return false, nil
	}
	// The list of owners may be older than the record. The bad schedule: the owners
	// are listed, a process joins and starts an operation, and only then the record
	// of its object is read. Epochs grow: an earlier epoch than the known one is
	// over for good, and any other is read again.
	epoch, known := s.epochs[r.Owner]
	if !known || r.Epoch > epoch {
		owner, err := s.get(ctx, Key{ownersTable, r.Owner})
		if err != nil {
			return false, err
		}
		epoch = 0
		if owner.State == string(ownerAlive) {
			epoch = uint64(owner.Operation)
		}
		s.epochs[r.Owner] = epoch
	}
	return decide.OwnerDead(r.Epoch, epoch), nil
}

// heartbeats is what a sweeper has seen of the owners that are alive. It measures on the
// monotonic clock of this process how long an owner's record stays the same, because
// the store's clock may jump, and goes on while no owner can reach the store.
type heartbeats struct {
	mu   sync.Mutex
	read time.Time // when the last read of the owners ended
	seen map[string]heartbeat
}

// heartbeat is what was seen of one owner.
type heartbeat struct {
	revision  Revision
	ttl       time.Duration
	unchanged time.Duration // how long the owner was seen with this revision
}

// observe takes the owners that a read has found alive, and the time at which the read
// began. It returns those that have been seen unchanged for their TTL.
//
// The time between two reads counts for at most one interval between heartbeats, a third
// of the TTL. The bad schedule without the limit: the store fails after one read and
// recovers just before the next one, or this process is paused between them, and every
// owner seems to be unchanged for longer than its TTL.
func (h *heartbeats) observe(began time.Time, alive []StoredRecord) (dead []StoredRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	elapsed := max(0, began.Sub(h.read)) // less than 0 if two sweeps read at once
	seen := make(map[string]heartbeat, len(alive))
	for i := range alive {
		r, ttl := &alive[i], ownerTTL(&alive[i])
		now := heartbeat{revision: r.Revision, ttl: ttl}
		if last, ok := h.seen[r.ID]; ok && last.revision == r.Revision {
			now.unchanged = last.unchanged + min(elapsed, ttl/3+1)
		}
		seen[r.ID] = now
		if now.unchanged >= ttl {
			dead = append(dead, *r)
		}
	}
	h.seen, h.read = seen, time.Now()
	return dead
}

// forget begins the measurements again of owners with at most this TTL.
func (h *heartbeats) forget(ttl time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.seen, func(_ string, seen heartbeat) bool { return seen.ttl <= ttl })
}

// ownerTTL returns the TTL of an owner. A record that does not have it is of an older
// program.
func ownerTTL(r *StoredRecord) time.Duration {
	terms, err := unpack[ownerTerms](r.Payload)
	if err != nil || terms.TTL <= 0 {
		return DefaultTTL
	}
	return terms.TTL
}
