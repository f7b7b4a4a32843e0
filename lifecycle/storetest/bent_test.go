package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// bent is a memory store each call of which may be replaced: how one fault is
// planted and nothing else changed. Without a fault it is sound.
type bent struct {
	inner    *lifecycle.MemoryStore
	has      lifecycle.Capabilities
	mu       sync.Mutex // for faults that need several calls of the inner store at once
	get      func(context.Context, lifecycle.Key) (lifecycle.StoredRecord, error)
	commit   func(context.Context, *lifecycle.Commit) error
	list     func(context.Context, lifecycle.Query) ([]lifecycle.StoredRecord, error)
	history  func(context.Context, lifecycle.Key, uint64, int) ([]lifecycle.HistoryRow, error)
	messages func(context.Context, int) ([]lifecycle.OutboxMessage, error)
	discard  func(context.Context, ...uint64) error
	edits    []func(c *lifecycle.Commit)
}

// limit is how many changes and preconditions a bent store takes.
const limit = 6

func newBent() *bent {
	inner := lifecycle.NewMemoryStore()
	b := &bent{
		inner: inner, has: lifecycle.Capabilities{Changes: limit, History: true, Messages: true},
		get: inner.Get, list: inner.List, history: inner.History, messages: inner.Messages, discard: inner.Discard,
	}
	b.commit = b.limited
	return b
}

// limited is the commit of the inner store with the limit that is declared, and
// with every commit edited on its way in. The caller gets what the inner store
// filled, and sees nothing of the edits otherwise.
func (b *bent) limited(ctx context.Context, c *lifecycle.Commit) error {
	if len(c.Changes)+len(c.Require) > limit {
		return errors.ErrUnsupported
	}
	if len(b.edits) == 0 {
		return b.inner.Commit(ctx, c)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	twin := again(c)
	for _, edit := range b.edits {
		edit(twin)
	}
	err := b.inner.Commit(ctx, twin)
	if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok && conflict.Change < len(c.Changes) {
		conflict.Expect, conflict.From = c.Changes[conflict.Change].Expect, c.Changes[conflict.Change].From
	}
	for i := range min(len(c.Changes), len(twin.Changes)) {
		if to, filled := &c.Changes[i].To, &twin.Changes[i].To; err == nil {
			to.Revision, to.ChangedAt, to.Deadline = filled.Revision, filled.ChangedAt, filled.Deadline
		}
	}
	return err
}

func (b *bent) Capabilities() lifecycle.Capabilities { return b.has }
func (b *bent) Close() error                         { return b.inner.Close() }

func (b *bent) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	return b.get(ctx, k)
}

func (b *bent) Commit(ctx context.Context, c *lifecycle.Commit) error { return b.commit(ctx, c) }

func (b *bent) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	return b.list(ctx, q)
}

func (b *bent) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	return b.history(ctx, k, after, limit)
}

func (b *bent) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	return b.messages(ctx, limit)
}

func (b *bent) Discard(ctx context.Context, numbers ...uint64) error {
	return b.discard(ctx, numbers...)
}

// now is the record as the inner store has it.
func (b *bent) now(k lifecycle.Key) lifecycle.StoredRecord {
	r, err := b.inner.Get(context.Background(), k)
	if err != nil && !errors.Is(err, lifecycle.ErrClosed) {
		panic(err)
	}
	return r
}

// edited changes every commit on its way in.
func (b *bent) edited(edit func(c *lifecycle.Commit)) { b.edits = append(b.edits, edit) }

// eachChange changes every change on its way in.
func (b *bent) eachChange(edit func(ch *lifecycle.StoredChange)) {
	b.edited(func(c *lifecycle.Commit) {
		for i := range c.Changes {
			edit(&c.Changes[i])
		}
	})
}

// shown changes every record on its way out, and the rows in the same way.
func (b *bent) shown(show func(r *lifecycle.StoredRecord)) {
	get, commit, list, history := b.get, b.commit, b.list, b.history
	b.get = func(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
		r, err := get(ctx, k)
		show(&r)
		return r, err
	}
	b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
		err := commit(ctx, c)
		if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
			show(&conflict.Current)
		}
		if unmet, ok := errors.AsType[*lifecycle.PreconditionError](err); ok {
			show(&unmet.Current)
		}
		for i := range c.Changes {
			if err == nil {
				show(&c.Changes[i].To)
			}
		}
		return err
	}
	b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
		found, err := list(ctx, q)
		for i := range found {
			show(&found[i])
		}
		return found, err
	}
	b.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
		rows, err := history(ctx, k, after, limit)
		for i := range rows {
			r := lifecycle.StoredRecord{Key: k, State: rows[i].To, Sequence: rows[i].Sequence, Revision: rows[i].Revision, Operation: rows[i].Operation}
			show(&r)
			rows[i].Sequence, rows[i].Revision, rows[i].Operation = r.Sequence, r.Revision, r.Operation
		}
		return rows, err
	}
}

// fault is something that a store may get wrong, and the demand that says so.
type fault struct {
	name   string
	demand string
	plant  func(b *bent)
	store  func() lifecycle.Store // instead of plant
	remote func(r *remote)        // instead of plant, on the other side of a connection
	engine func(e *engine)
	reopen func(lifecycle.Store) lifecycle.Store // of the harness
}

func (f *fault) harness(t testing.TB) Harness {
	if f.remote != nil || f.engine != nil {
		return f.remoteHarness(t)
	}
	return Harness{
		Synctest: true, Attempts: 40, Sequences: 20, Seed: 1,
		New: func(testing.TB) lifecycle.Store {
			if f.store != nil {
				return f.store()
			}
			b := newBent()
			if f.plant != nil {
				f.plant(b)
			}
			return b
		},
		// The memory store cannot be closed and opened: the same one goes on.
		Reopen: func(_ testing.TB, store lifecycle.Store) lifecycle.Store {
			if f.reopen != nil {
				return f.reopen(store)
			}
			return store
		},
	}
}

// remoteHarness is that of a remote store, with everything a harness can have.
// The engine is the real test's, outside of any bubble.
func (f *fault) remoteHarness(t testing.TB) Harness {
	e := startEngine(t)
	if f.engine != nil {
		f.engine(e)
	}
	open := func(address, database string) *remote {
		r := newRemote(address, database)
		if f.remote != nil {
			f.remote(r)
		}
		return r
	}
	return Harness{
		Attempts: 20, Sequences: 5, Seed: 1, WrongClock: true, patience: 2 * time.Second,
		New: func(testing.TB) lifecycle.Store { return open(e.address(), e.database()) },
		Through: func(_ testing.TB, p *Proxy) lifecycle.Store {
			p.To("tcp", e.address())
			return open(p.Addr(), e.database())
		},
		Reopen: func(t testing.TB, store lifecycle.Store) lifecycle.Store {
			r := store.(*remote)
			require.NoError(t, r.Close())
			return open(r.address, r.database)
		},
		Restart: func(t testing.TB, _ lifecycle.Store) { e.restart(t) },
	}
}
