package lock

import (
	"cmp"
	"context"
	"slices"
)

// refuse makes a refusal, unlocks the tree and calls the observer.
func (t *Tree) refuse(ctx context.Context, rs []Request, o *Options, why error, own *claim) error {
	err := t.refusal(rs, why, own)
	t.mu.Unlock()
	t.observeRefused(ctx, err, err.Requests, o)
	return err
}

// refusal lists the holders that conflict with the requests. If the requests have
// a claim of their own, neither that claim nor later ones conflict, unless the
// claim is held and upgrades. For an id in use, the list is that claim. The tree is
// locked.
func (t *Tree) refusal(rs []Request, why error, own *claim) *ConflictError {
	err := &ConflictError{Requests: slices.Clone(rs), Err: why}
	limit := cmp.Or(t.config.MaxHolders, defaultMaxHolders)
	var found []*entry
	if why == ErrIDInUse {
		for i := range own.entries[:min(limit, len(own.entries))] {
			found = append(found, &own.entries[i])
		}
		err.More = len(own.entries) > limit
		err.Holders = t.holders(found)
		return err
	}
	// A held claim of its own is that of an upgrade, except after a wait: a claim
	// whose wait ends can have been granted meanwhile, and what came later does not
	// block it.
	upgrade := why == ErrConflict && own != nil && own.state == held
	for _, r := range rs {
	lists:
		for l := range t.trie.visitLists(r.Path.key(), conflicting[r.Mode]) {
			for e := l.first; e != nil; e = e.next {
				if e.claim == own || slices.Contains(found, e) { // another request conflicts with it too
					continue
				}
				if own != nil && !upgrade && e.claim.arrival > own.arrival {
					break // so are all behind it
				}
				if err.More = len(found) == limit; err.More {
					break lists
				}
				found = append(found, e)
			}
		}
	}
	err.Holders = t.holders(found)
	return err
}

// holders describes entries in the order of their arrival, and those of one claim
// in the order of their paths.
func (t *Tree) holders(entries []*entry) []Holder {
	slices.SortFunc(entries, func(a, b *entry) int {
		if a.claim != b.claim {
			return cmp.Compare(a.claim.arrival, b.claim.arrival)
		}
		return a.Path.compare(b.Path)
	})
	holders := make([]Holder, len(entries))
	for i, e := range entries {
		c := e.claim
		holders[i] = Holder{
			Path: e.Path, Mode: e.Mode,
			ID: c.options.ID, Owner: c.options.Owner, Reason: c.options.Reason,
			Token: c.token, Since: t.base.Add(c.since), Waiting: c.state == waiting,
		}
	}
	return holders
}
