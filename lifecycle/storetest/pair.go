package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// pair is two stores over the same data. Every call goes to one of them. Callers in
// sequence get the same stores in every run.
type pair struct {
	stores []lifecycle.Store
	mu     sync.Mutex
	random *rand.Rand
}

func newPair(stores []lifecycle.Store) *pair {
	return &pair{stores: stores, random: rand.New(rand.NewPCG(1, 2))}
}

func (p *pair) pick() lifecycle.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stores[p.random.IntN(len(p.stores))]
}

func (p *pair) Capabilities() lifecycle.Capabilities { return p.pick().Capabilities() }

func (p *pair) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	return p.pick().Get(ctx, k)
}

func (p *pair) Commit(ctx context.Context, c *lifecycle.Commit) error { return p.pick().Commit(ctx, c) }

func (p *pair) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	return p.pick().List(ctx, q)
}

func (p *pair) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	return p.pick().(lifecycle.Historian).History(ctx, k, after, limit)
}

func (p *pair) Requested(ctx context.Context, machine, request string) (lifecycle.HistoryRow, error) {
	return p.pick().(lifecycle.Historian).Requested(ctx, machine, request)
}

func (p *pair) Recent(
	ctx context.Context, machine string, within time.Duration, after string, limit int,
) ([]lifecycle.ChangedObject, error) {
	return p.pick().(lifecycle.Follower).Recent(ctx, machine, within, after, limit)
}

func (p *pair) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	return p.pick().(lifecycle.Outbox).Messages(ctx, limit)
}

func (p *pair) Discard(ctx context.Context, numbers ...uint64) error {
	return p.pick().(lifecycle.Outbox).Discard(ctx, numbers...)
}
