package inspect

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/lock"
)

// readLocks returns the lock trees, with their holders if they are wanted.
func (p *Page) readLocks(ctx context.Context, whole bool) []LockSummary {
	list := make([]LockSummary, len(p.locks))
	together(p.locks, func(i int, name string) {
		s, err := readLock(ctx, p.config.Locks[name], whole)
		list[i] = LockSummary{Name: name, Snapshot: s}
		if err != nil {
			list[i].Problem = p.problem(ctx, err)
		}
	})
	return list
}

func readLock(ctx context.Context, l lock.Locker, whole bool) (lock.Snapshot, error) {
	if counter, ok := l.(interface{ Counts() lock.Snapshot }); ok && !whole {
		return counter.Counts(), nil
	}
	s, err := l.Snapshot(ctx)
	s.Holders = s.Holders[:min(len(s.Holders), ShownLanes)]
	for i := range s.Holders {
		s.Holders[i].Since = s.Holders[i].Since.UTC()
	}
	if !whole {
		s.Holders = nil
	}
	return s, err
}

func (p *Page) lockPage(ctx context.Context, _ *http.Request) (view, error) {
	return view{Heading: "Locks", Doc: LockPage{Time: now(), Locks: p.readLocks(ctx, true)}}, nil
}
