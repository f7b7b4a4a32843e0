package lifecycle

import (
	"context"
	"time"
)

// The calls of the store that an observer receives.

// get reads a record.
func (c *core) get(ctx context.Context, key Key) (StoredRecord, error) {
	if c.observer.Stored == nil {
		return c.store.Get(ctx, key)
	}
	began := time.Now()
	r, err := c.store.Get(ctx, key)
	c.called(ctx, "get", began, err)
	return r, err
}

// list reads a page of records.
func (c *core) list(ctx context.Context, q Query) ([]StoredRecord, error) {
	if c.observer.Stored == nil {
		return c.store.List(ctx, q)
	}
	began := time.Now()
	records, err := c.store.List(ctx, q)
	c.called(ctx, "list", began, err)
	return records, err
}

// called reports a call to the observer, which has a function for it.
func (c *core) called(ctx context.Context, call string, began time.Time, err error) {
	c.observer.Stored(ctx, Stored{Machine: c.table.Name, Call: call, Err: err, Took: time.Since(began)})
}

// observeCommit reports the commit to the observer of its first change. The function may
// panic, so it comes after everything that the commit has to start or end.
func (t *transaction) observeCommit(ctx context.Context) {
	if t.call.Call != "" {
		t.writes[0].core.observer.Stored(ctx, t.call)
	}
}
