package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// OwnerInfo is what a store has about an [Owner]. It is a value.
type OwnerInfo struct {
	OwnerRef
	Alive bool          // neither left nor declared dead
	TTL   time.Duration // of the owner
	// Since is when the owner joined, or when it was declared dead. Heartbeat is when it
	// sent its last heartbeat, zero for a dead owner. Both are by the store's clock.
	Since, Heartbeat time.Time
}

// Owners returns the owners in the store of a manager, in order of name. It has those that
// are alive, and those that were declared dead in the last day. An owner that has left is
// not listed. The error is the store's.
func Owners(ctx context.Context, m AnyManager) ([]OwnerInfo, error) {
	c := m.untyped()
	found, err := c.owners.listOwners(ctx, ownerAlive, ownerDead)
	if err != nil {
		return nil, c.failed("owners", "", err)
	}
	var list []OwnerInfo
	for i := range found {
		r := &found[i]
		o := OwnerInfo{
			OwnerRef: OwnerRef{Name: r.ID, Epoch: uint64(r.Operation)},
			TTL:      ownerTTL(r), Since: r.ChangedAt, Alive: r.State == string(ownerAlive),
		}
		if o.Alive && !r.Deadline.IsZero() {
			o.Heartbeat = r.Deadline.Add(-o.TTL)
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b OwnerInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// listOwners returns the records of the owners in some states.
func (c *core) listOwners(ctx context.Context, states ...ownerState) (list []StoredRecord, err error) {
	q := Query{Machine: ownersTable}
	for _, state := range states {
		q.States = append(q.States, string(state))
	}
	err = c.page(ctx, q, func(r *StoredRecord) error {
		list = append(list, *r)
		return nil
	})
	return list, err
}
