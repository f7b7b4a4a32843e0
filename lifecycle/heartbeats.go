package lifecycle

import (
	"sync"
	"time"
)

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
		now := heartbeat{revision: r.Revision}
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

// fail forgets everything: the store could not be read, so no owner could reach it either.
func (h *heartbeats) fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = nil
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
