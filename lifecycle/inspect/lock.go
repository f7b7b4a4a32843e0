package inspect

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/lock"
)

// readLocks returns the lock trees, with their holders if they are wanted.
func (p *Page) readLocks(ctx context.Context, whole bool) []LockSummary {
	list := []LockSummary{}
	for _, name := range p.locks {
		doc, err := readLock(ctx, p.config.Locks[name], whole)
		if err != nil {
			doc.Problem = p.problem(ctx, err)
		}
		doc.Name = name
		list = append(list, doc)
	}
	return list
}

func readLock(ctx context.Context, l lock.Locker, whole bool) (doc LockSummary, err error) {
	var s lock.Snapshot
	if counter, ok := l.(interface{ Counts() lock.Snapshot }); ok && !whole {
		s = counter.Counts()
	} else if s, err = l.Snapshot(ctx); err != nil {
		return doc, err
	}
	doc = LockSummary{Held: s.Held, Waiting: s.Waiting, Nodes: s.Nodes, LastToken: s.LastToken}
	if whole {
		doc.Holders = s.Holders[:min(len(s.Holders), ShownLanes)]
		for i := range doc.Holders {
			doc.Holders[i].Since = doc.Holders[i].Since.UTC()
		}
	}
	return doc, nil
}

func (p *Page) lockPage(ctx context.Context, _ *http.Request) (any, error) {
	return LockPage{Time: now(), Locks: p.readLocks(ctx, true)}, nil
}
