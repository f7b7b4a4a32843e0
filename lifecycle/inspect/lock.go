package inspect

import (
	"context"
	"fmt"
	"net/http"

	"github.com/interlock-go/interlock/lock"
)

// readLocks returns the lock trees, with their holders if they are wanted. Counts may be
// some seconds old: a tree of several processes reads all its holders for them.
func (p *Page) readLocks(ctx context.Context, whole bool) []LockSummary {
	list := make([]LockSummary, len(p.locks))
	together(p.locks, func(i int, name string) {
		l := p.config.Locks[name]
		counter, counts := l.(interface{ Counts() lock.Snapshot })
		var s lock.Snapshot
		var err error
		switch {
		case whole:
			s, err = readHolders(ctx, l)
		case counts:
			s = counter.Counts()
		default:
			s, err = p.held[name].get(ctx, func(ctx context.Context) (lock.Snapshot, error) {
				s, err := l.Snapshot(ctx)
				s.Holders = nil
				return s, err
			})
		}
		list[i] = LockSummary{Name: name, Snapshot: s}
		if err != nil {
			list[i].Problem = p.problem(ctx, late(fmt.Sprintf("the lock tree %q", name), err))
		}
	})
	return list
}

// readHolders returns a lock tree with the first of its holders.
func readHolders(ctx context.Context, l lock.Locker) (lock.Snapshot, error) {
	s, err := l.Snapshot(ctx)
	s.Holders = s.Holders[:min(len(s.Holders), ShownLanes)]
	for i := range s.Holders {
		s.Holders[i].Since = s.Holders[i].Since.UTC()
	}
	return s, err
}

func (p *Page) lockPage(ctx context.Context, _ *http.Request) (view, error) {
	return view{Heading: "Locks", Doc: LockPage{Time: now(), Locks: p.readLocks(ctx, true)}}, nil
}
