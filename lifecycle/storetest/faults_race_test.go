package storetest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

func endFaults() []fault {
	return []fault{
		{
			name: "ended contexts are ignored", demand: "Context/ended_is_refused",
			plant: func(b *bent) {
				commit := b.commit
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					return commit(context.WithoutCancel(ctx), c)
				}
			},
		},
		{
			name: "an ended context does not stop a discard", demand: "Context/ended_is_refused",
			plant: func(b *bent) {
				b.discard = func(ctx context.Context, numbers ...uint64) error {
					return errors.Join(b.inner.Discard(context.WithoutCancel(ctx), numbers...), context.Cause(ctx))
				}
			},
		},
		{
			name: "the cause of a context is dropped", demand: "Context/ended_is_refused",
			plant: func(b *bent) {
				b.get = func(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
					if ctx.Err() != nil {
						return lifecycle.StoredRecord{}, ctx.Err()
					}
					return b.inner.Get(ctx, k)
				}
			},
		},
		{
			name: "the context is asked after the commit", demand: "Context/ending_meanwhile_is_all_or_nothing",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					runtime.Gosched()
					err := b.limited(context.WithoutCancel(ctx), c)
					runtime.Gosched()
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					return err
				}
			},
		},
		{
			name: "the context is asked once more at the end", demand: "Context/ending_at_any_look",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if err := b.limited(ctx, c); err != nil {
						return err
					}
					if ctx.Err() != nil {
						return lifecycle.Ended(ctx)
					}
					return nil
				}
			},
		},
		{
			name: "a list ends with its context", demand: "Context/ending_at_any_look",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					found, err := b.inner.List(ctx, q)
					if err == nil && ctx.Err() != nil {
						return nil, nil
					}
					return found, err
				}
			},
		},
		{
			name: "a closed store still reads", demand: "Close/refuses_every_call",
			plant: func(b *bent) {
				b.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
					rows, err := b.inner.History(ctx, k, after, limit)
					if errors.Is(err, lifecycle.ErrClosed) {
						return nil, nil
					}
					return rows, err
				}
			},
		},
		{
			name: "a call that meets Close fails somehow", demand: "Close/during_calls",
			plant: func(b *bent) {
				met := false // the first call that finds the store closed
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := b.limited(ctx, c)
					b.mu.Lock()
					defer b.mu.Unlock()
					if errors.Is(err, lifecycle.ErrClosed) && !met {
						met = true
						return errors.New("connection reset")
					}
					return err
				}
			},
		},
		{
			name: "messages do not survive", demand: "Reopen/keeps_everything",
			reopen: func(store lifecycle.Store) lifecycle.Store {
				b := store.(*bent)
				if err := b.inner.Discard(context.Background(), 1); err != nil {
					panic(err)
				}
				return b
			},
		},
		{
			name: "nothing survives", demand: "Reopen/keeps_everything",
			reopen: func(lifecycle.Store) lifecycle.Store { return newBent() },
		},
	}
}

func concurrentFaults() []fault {
	return []fault{
		{
			name: "check, then write", demand: "Concurrent/one_winner_per_revision",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					ch := &c.Changes[0]
					now := b.now(ch.To.Key)
					if len(c.Changes) > 1 || now.Revision != ch.Expect || now.State != ch.From {
						return b.limited(ctx, c)
					}
					runtime.Gosched()
					return b.force(ctx, c)
				}
			},
		},
		{
			name: "a loser gets the record that it knows", demand: "Concurrent/one_winner_per_revision",
			plant: func(b *bent) {
				var flying atomic.Int64
				known := map[lifecycle.Revision]lifecycle.StoredRecord{}
				b.shown(func(r *lifecycle.StoredRecord) {
					b.mu.Lock()
					defer b.mu.Unlock()
					known[r.Revision] = *r
				})
				commit := b.commit
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					flying.Add(1)
					defer flying.Add(-1)
					runtime.Gosched()
					err := commit(ctx, c)
					b.mu.Lock()
					defer b.mu.Unlock()
					old, ok := known[c.Changes[0].Expect]
					if conflict, lost := errors.AsType[*lifecycle.ConflictError](err); lost && ok && flying.Load() > 1 {
						conflict.Current = old
					}
					return err
				}
			},
		},
		{
			name: "check for existence, then create", demand: "Concurrent/one_creation_wins",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					ch := &c.Changes[0]
					now := b.now(ch.To.Key)
					if len(c.Changes) > 1 || ch.From != "" || now.Revision != ch.Expect || now.Exists() {
						return b.limited(ctx, c)
					}
					runtime.Gosched()
					return b.force(ctx, c)
				}
			},
		},
		{
			name: "one version for all objects", demand: "Concurrent/right_revision_never_conflicts",
			plant: func(b *bent) {
				var version atomic.Int64
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					before := version.Load()
					runtime.Gosched()
					if !version.CompareAndSwap(before, before+1) {
						ch := &c.Changes[0]
						return &lifecycle.ConflictError{Expect: ch.Expect, From: ch.From, Current: b.now(ch.To.Key)}
					}
					return b.limited(ctx, c)
				}
			},
		},
		{
			name: "reads from a follower that lags under load", demand: "Concurrent/reads_and_writes_are_linearizable",
			plant: func(b *bent) {
				last := map[lifecycle.Key]lifecycle.StoredRecord{}
				b.edited(func(c *lifecycle.Commit) {
					for i := range c.Changes {
						last[c.Changes[i].To.Key] = b.now(c.Changes[i].To.Key)
					}
				})
				flying := b.slow()
				b.get = func(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
					r, err := b.inner.Get(ctx, k)
					b.mu.Lock()
					defer b.mu.Unlock()
					if old, known := last[k]; known && flying.Load() > 2 {
						return old, err
					}
					return r, err
				}
			},
		},
		{
			name: "under load only the state is compared", demand: "Concurrent/who_came_back_is_not_taken",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					ch := &c.Changes[0]
					runtime.Gosched()
					if now := b.now(ch.To.Key); len(c.Changes) > 1 || now.State != ch.From {
						return b.limited(ctx, c)
					}
					return b.force(ctx, c)
				}
			},
		},
		{
			name: "objects are locked in the order named", demand: "Concurrent/changes_in_any_order",
			plant: func(b *bent) {
				var locks sync.Map // by key, a *sync.Mutex
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					for i := range c.Changes {
						l, _ := locks.LoadOrStore(c.Changes[i].To.Key, new(sync.Mutex))
						if !l.(*sync.Mutex).TryLock() {
							if i > 0 {
								return errors.New("deadlock found when trying to get lock")
							}
							l.(*sync.Mutex).Lock()
						}
						defer l.(*sync.Mutex).Unlock()
						runtime.Gosched()
					}
					return b.limited(ctx, c)
				}
			},
		},
		{
			name: "preconditions are asked beforehand", demand: "Concurrent/preconditions_hold_at_the_commit",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if err := b.unmet(c); err != nil {
						return b.limited(ctx, c)
					}
					runtime.Gosched()
					free := again(c)
					free.Require = nil
					err := b.limited(ctx, free)
					c.Changes = free.Changes
					return err
				}
			},
		},
		{
			name: "what has no row is not locked", demand: "Concurrent/absence_holds_at_the_commit",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if err := b.unmet(c); err != nil {
						return b.limited(ctx, c)
					}
					locked := again(c)
					locked.Require = slices.DeleteFunc(slices.Clone(c.Require), func(p lifecycle.Precondition) bool {
						return b.now(p.Key).Sequence == 0
					})
					runtime.Gosched()
					err := b.limited(ctx, locked)
					c.Changes = locked.Changes
					return err
				}
			},
		},
		{
			name: "a removal beside a move loses the deadline", demand: "Model/random_sequences_agree",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) {
					if !slices.ContainsFunc(c.Changes, func(ch lifecycle.StoredChange) bool { return ch.Remove }) {
						return
					}
					for i := range c.Changes {
						c.Changes[i].Timeout = 0
					}
				})
			},
		},
	}
}

// force writes the change whatever the record is now.
func (b *bent) force(ctx context.Context, c *lifecycle.Commit) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	twin := again(c)
	to := &twin.Changes[0]
	now := b.now(to.To.Key)
	to.Expect, to.From = now.Revision, now.State
	err := b.inner.Commit(ctx, twin)
	if err == nil {
		c.Changes[0].To = twin.Changes[0].To
	}
	return err
}
