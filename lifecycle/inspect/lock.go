package inspect

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/lock"
)

// readLock returns a lock tree, with its holders if they are wanted.
func (p *Page) readLock(ctx context.Context, name string, whole bool) (doc LockSummary, err error) {
	var s lock.Snapshot
	if counter, ok := p.config.Locks[name].(interface{ Counts() lock.Snapshot }); ok && !whole {
		s = counter.Counts()
	} else if s, err = p.config.Locks[name].Snapshot(ctx); err != nil {
		return doc, err
	}
	doc = LockSummary{Name: name, Held: s.Held, Waiting: s.Waiting, Nodes: s.Nodes, LastToken: s.LastToken}
	if whole {
		doc.Holders = s.Holders[:min(len(s.Holders), ShownLanes)]
		for i := range doc.Holders {
			doc.Holders[i].Since = doc.Holders[i].Since.UTC()
		}
	}
	return doc, nil
}

func (p *Page) lockPage(ctx context.Context, _ *http.Request) (any, error) {
	doc := LockPage{Time: now(), Locks: []LockSummary{}}
	for _, name := range p.locks {
		l, err := p.readLock(ctx, name, true)
		if err != nil {
			return nil, err
		}
		doc.Locks = append(doc.Locks, l)
	}
	return doc, nil
}
