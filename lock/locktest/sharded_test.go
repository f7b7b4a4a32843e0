package locktest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lock"
)

// sharded is a locker with a list and a mutex for every first segment, where
// requests for the root go through all of them, one after the other. Caller by
// caller it is right. But what it answers is not of one moment: a request for
// the root that is going to be refused by a late shard is in the way of others
// at an early one, though it never holds anything.
//
// It has what histories need.
type sharded struct {
	lock.Locker
	shards [4]*naive
}

func newSharded(c lock.Config) *sharded {
	s := new(sharded)
	for i := range s.shards {
		s.shards[i] = newNaive(c, bend{})
	}
	return s
}

// parts says what a list is to each shard.
func (s *sharded) parts(rs []lock.Request) (parts [4][]lock.Request) {
	for _, r := range canonical(rs) {
		first, _, _ := strings.Cut(r.Path.String()[1:], "/")
		for i := range parts {
			if r.Path.IsRoot() || i == slices.Index([]string{"a", "ab", "a!", "c"}, first) {
				parts[i] = append(parts[i], r)
			}
		}
	}
	return parts
}

func (s *sharded) TryLock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Held, error) {
	return s.TryLockAll(ctx, []lock.Request{r}, o)
}

func (s *sharded) TryLockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Held, error) {
	g := &shardedGrant{s: s, rs: canonical(rs)}
	for i, part := range s.parts(rs) {
		if part == nil {
			continue
		}
		h, err := s.shards[i].TryLockAll(ctx, part, o)
		if err != nil {
			_ = g.Unlock(ctx)
			return nil, err
		}
		g.held[i] = h
		runtime.Gosched()
	}
	h, _ := lock.NewHeld(g)
	return h, nil
}

type shardedGrant struct {
	s    *sharded
	mu   sync.Mutex
	rs   []lock.Request
	held [4]*lock.Held
}

func (g *shardedGrant) Requests() []lock.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.rs)
}

func (g *shardedGrant) Token() lock.Token { return 1 } // no history asks for it
func (g *shardedGrant) Check() error      { return nil }

func (g *shardedGrant) Unlock(ctx context.Context) error {
	for _, h := range g.held {
		if h != nil {
			_ = h.Unlock(ctx)
			runtime.Gosched()
		}
	}
	return nil
}

func (g *shardedGrant) Upgrade(ctx context.Context, m lock.Mode) error {
	for i, h := range g.held {
		if h == nil {
			continue
		}
		if err := h.Upgrade(ctx, m); err != nil {
			for j, part := range g.s.parts(g.Requests()) {
				if j < i && part != nil {
					g.s.shards[j].restore(g.held[j], part)
				}
			}
			return err
		}
		runtime.Gosched()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rs = slices.Clone(g.rs)
	for i := range g.rs {
		g.rs[i].Mode = lock.Join(g.rs[i].Mode, m)
	}
	return nil
}

// restore takes an upgrade back.
func (n *naive) restore(h *lock.Held, rs []lock.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.all {
		if p.held == h {
			p.has = rs
		}
	}
}

func (g *shardedGrant) Downgrade(ctx context.Context, m lock.Mode) error {
	for _, h := range g.held {
		if h != nil {
			if err := h.Downgrade(ctx, m); err != nil {
				return err
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rs = slices.Clone(g.rs)
	for i := range g.rs {
		g.rs[i].Mode = m
	}
	return nil
}

// The histories catch it; nothing else could.
func TestShardedIsCaught(t *testing.T) {
	h := Harness{New: func(_ testing.TB, c lock.Config) lock.Locker { return newSharded(c) }, MaxHolders: true}
	var count verdicts
	r := suitetest.Record(t, func(t testing.TB) { count = histories(newTrial(t, &h, false, nil), nil) })
	require.True(t, r.Failed())
	require.Contains(t, r.Text(), "has no order")
	require.NotZero(t, count.illegal)
	require.Equal(t, verdicts{legal: 400 - count.illegal, illegal: count.illegal}, count)
	t.Logf("of 400 histories %d are illegal", count.illegal)
}

// Caller by caller it is right, so that what is caught is the sharding: the same
// histories, made by one client, are legal.
func TestShardedIsRightCallerByCaller(t *testing.T) {
	known := newRules()
	for seed := range uint64(200) {
		history, err := record(t.Context(), newSharded(lock.Config{MaxHolders: manyHolders}), 1, seed)
		require.NoError(t, err)
		require.Equal(t, legal, judge(known, history))
	}
}

// A locker whose answers are no refusals is told to be so, not judged.
func TestHistoriesTellStrangeErrors(t *testing.T) {
	strange := errors.New("no answer")
	_, err := record(t.Context(), refusing{nil, strange}, 1, 1)
	require.ErrorIs(t, err, strange)
}

type refusing struct {
	lock.Locker
	why error
}

func (l refusing) TryLock(context.Context, lock.Request, *lock.Options) (*lock.Held, error) {
	return nil, l.why
}

func (l refusing) TryLockAll(context.Context, []lock.Request, *lock.Options) (*lock.Held, error) {
	return nil, l.why
}
