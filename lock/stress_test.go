package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// ground is the resource below the locks: every leaf has any number of readers or
// one writer.
type ground struct {
	leaves []lock.Path
	on     []atomic.Int64 // readers, or -1: the writer
}

func newGround() *ground {
	g := new(ground)
	for _, a := range []string{"/a", "/ab", "/a-b"} {
		for _, b := range []string{"/x", "/y", "/y0"} {
			g.leaves = append(g.leaves, lock.MustParse(a+b+"/leaf"))
		}
	}
	g.on = make([]atomic.Int64, len(g.leaves))
	return g
}

// enter reads and writes everything that the requests allow, and returns the
// function that leaves it.
func (g *ground) enter(t *testing.T, rs ...lock.Request) (leave func()) {
	change := make([]int64, len(g.leaves))
	for i, leaf := range g.leaves {
		for _, r := range rs {
			switch {
			case !r.Path.Covers(leaf):
			case r.Mode == lock.X:
				change[i] = -1
			case r.Mode.Covers(lock.S) && change[i] == 0:
				change[i] = 1
			}
		}
		switch change[i] {
		case 1:
			if n := g.on[i].Add(1); n <= 0 {
				t.Errorf("a reader of %v beside a writer", leaf)
			}
		case -1:
			if !g.on[i].CompareAndSwap(0, -1) {
				t.Errorf("a writer of %v beside others", leaf)
			}
		}
	}
	return func() {
		for i := range change {
			g.on[i].Add(-change[i])
		}
	}
}

var stressPaths = []string{
	"/", "/a", "/ab", "/a-b", "/a/x", "/a/y", "/a/y0", "/a/x/leaf", "/a/y/leaf", "/ab/x/leaf", "/ab/y", "/a-b/y0/leaf",
}

func randomRequest(random *rand.Rand) lock.Request {
	return lock.Request{Path: lock.MustParse(stressPaths[random.IntN(len(stressPaths))]), Mode: lock.Modes[random.IntN(len(lock.Modes))]}
}

// G1: all methods from many goroutines; a writer is alone.
func TestStress(t *testing.T) {
	const workers = 8
	ops := 10_000
	if lock.Long {
		ops = 100_000
	}
	tree := lock.Must(&lock.Config{MaxWaiters: 5})
	g := newGround()
	var wg sync.WaitGroup
	var granted [6]atomic.Int64
	for worker := range workers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 7))
			ctx := context.Background()
			for range ops {
				var h *lock.Grant
				var err error
				way := random.IntN(6)
				switch way {
				case 0, 1:
					r := randomRequest(random)
					v, err := tree.Try(r.Path, r.Mode)
					if err == nil {
						granted[way].Add(1)
						leave := g.enter(t, r)
						leave()
						if !v.Unlock() || v.Unlock() {
							t.Error("a Handle is not unlocked once")
						}
					}
					continue
				case 2:
					h, err = tree.TryLock(ctx, randomRequest(random), nil)
				case 3:
					h, err = tree.Lock(ctx, randomRequest(random), nil)
				case 4:
					bounded, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(100))*time.Microsecond)
					h, err = tree.Lock(bounded, randomRequest(random), nil)
					cancel()
				case 5:
					h, err = tree.LockAll(ctx, []lock.Request{randomRequest(random), randomRequest(random)}, nil)
				}
				if err != nil {
					if !errors.Is(err, lock.ErrConflict) && !errors.Is(err, lock.ErrQueueFull) && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v", err)
					}
					continue
				}
				granted[way].Add(1)
				leave := g.enter(t, h.Requests()...)
				leave()
				if m := lock.Modes[random.IntN(len(lock.Modes))]; random.IntN(3) == 0 && h.Upgrade(ctx, m) == nil {
					g.enter(t, h.Requests()...)()
				}
				if m := lock.Modes[random.IntN(len(lock.Modes))]; random.IntN(3) == 0 && h.Downgrade(ctx, m) == nil {
					g.enter(t, h.Requests()...)()
				}
				if err := h.Unlock(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	idle(t, tree)
	for way := range granted {
		require.NotZero(t, granted[way].Load(), "way %d was never granted", way)
	}
	t.Logf("granted: %v", func() (n []int64) {
		for way := range granted {
			n = append(n, granted[way].Load())
		}
		return n
	}())
}

// Break and Revoke race with holders that repeat ids. A fence accepts their writes
// only in the order of the grants.
func TestStressOfLosses(t *testing.T) {
	rounds := 2000
	if lock.Long {
		rounds = 50_000
	}
	var released, losses atomic.Int64
	tree := lock.Must(&lock.Config{Observer: lock.Observer{Released: func(_ context.Context, e lock.Released) {
		released.Add(1)
		if e.Err != nil {
			losses.Add(1)
		}
	}}})
	ctx, cancel := context.WithCancel(context.Background())
	var fence lock.Fence
	var mu sync.Mutex // of the resource
	var last lock.Token
	var broken atomic.Int64
	var workers, breakers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 9))
			o := &lock.Options{ID: []string{"one", "two"}[worker%2]}
			for range rounds {
				h, err := tree.Lock(context.Background(), req("IX at /a"), o)
				if err != nil {
					t.Errorf("%v", err)
					return
				}
				work, done := h.Context(context.Background())
				runtime.Gosched() // let other goroutines run
				_ = h.Upgrade(context.Background(), lock.X)
				mu.Lock()
				if token := h.Token(); fence.Admit(token) == nil {
					if token < last {
						t.Errorf("token %d wrote after %d", token, last)
					}
					last = token
				}
				mu.Unlock()
				runtime.Gosched()
				if random.IntN(2) == 0 {
					_ = h.Downgrade(context.Background(), lock.IX)
				}
				runtime.Gosched()
				err = h.Unlock(context.Background())
				if err != nil && !errors.Is(err, lock.ErrLost) {
					t.Errorf("%v", err)
				}
				if h.Check() == nil || work.Err() == nil && errors.Is(h.Check(), lock.ErrLost) {
					t.Errorf("after the end: %v, %v", h.Check(), work.Err())
				}
				done()
			}
		})
	}
	for range 2 {
		breakers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s, err := tree.Snapshot(context.Background())
				if err != nil {
					t.Error(err)
				}
				for _, h := range s.Holders {
					if h.Token == 0 {
						continue
					}
					if n%2 == 0 {
						err = tree.Revoke(context.Background(), h.Token, "")
					} else if err = tree.Break(context.Background(), h.Token, ""); err == nil {
						broken.Add(1)
					}
					if err != nil && !errors.Is(err, lock.ErrNotHeld) {
						t.Error(err)
					}
				}
				runtime.Gosched() // on a single processor the workers could wait long
			}
		})
	}
	workers.Wait()
	cancel()
	breakers.Wait()
	idle(t, tree)
	require.Equal(t, broken.Load(), losses.Load(), "the observer sees every broken grant and no other")
	t.Logf("%d of %d grants were broken", broken.Load(), released.Load())
}
