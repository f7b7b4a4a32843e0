package lifecycle_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// fragile is a store that can fail, and whose clock can be wrong.
type fragile struct {
	*lifecycle.MemoryStore
	down  bool
	ahead bool // every deadline has passed
	slow  bool // no deadline has passed
}

func (s *fragile) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.down {
		return lifecycle.StoredRecord{}, errBoom
	}
	return s.MemoryStore.Get(ctx, key)
}

func (s *fragile) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.down {
		return errBoom
	}
	return s.MemoryStore.Commit(ctx, c)
}

func (s *fragile) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	switch {
	case s.down:
		return nil, errBoom
	case s.slow && q.Overdue:
		return nil, nil
	case s.ahead && q.Machine == "interlock.owner":
		q.Overdue = false
	}
	return s.MemoryStore.List(ctx, q)
}

const ownersTTL = 9 * time.Second // below the deadline of a minute

// sweptOwner is an owner with an operation whose work does not end, and a manager of
// another process that sweeps.
func sweptOwner(t *testing.T, store *fragile) (*lifecycle.Owner, *sizedManager) {
	t.Helper()
	owner := join(t, store, "p", ownersTTL)
	m := workers(store, lifecycle.Config[event]{Owner: owner})
	running(t, m, "a")
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error { <-ctx.Done(); return nil }), nil)
	return owner, workers(store, lifecycle.Config[event]{})
}

// TestOutageEndsNoOwnership: the store fails for longer than the TTL, with or without a
// sweep meanwhile, and recovers. A sweep before the owner's next heartbeat takes nothing.
func TestOutageEndsNoOwnership(t *testing.T) {
	for name, sweeping := range map[string]bool{"the sweeper sees the outage": true, "the sweeper is paused, too": false} {
		inBubble(t, name, func(t *testing.T) {
			store := &fragile{MemoryStore: lifecycle.NewMemoryStore()}
			owner, m := sweptOwner(t, store)
			for range 10 {
				require.NoError(t, owner.Heartbeat(t.Context()))
				require.Empty(t, sweep(t, m))
				time.Sleep(ownersTTL / 3)
			}
			if sweeping {
				require.Empty(t, sweep(t, m)) // what was seen before the outage does not count after it
			}
			store.down = true
			for range 3 {
				time.Sleep(ownersTTL / 3)
				require.Error(t, owner.Heartbeat(t.Context()))
				if sweeping {
					_, err := m.Sweep(t.Context())
					require.ErrorIs(t, err, errBoom)
				}
			}
			store.down = false
			for range 3 { // the heartbeats are still to come
				require.Empty(t, sweep(t, m))
				time.Sleep(ownersTTL/3 - 1)
			}
			require.NoError(t, owner.Heartbeat(t.Context()))
			require.Empty(t, sweep(t, m))
		})
	}
}

// TestReadOnlyStore: the store can be read, and refuses all writes for longer than the
// TTL. The first sweep after that takes nothing: no owner could send a heartbeat.
func TestReadOnlyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		owner, _ := sweptOwner(t, &fragile{MemoryStore: hooks.MemoryStore})
		m := workers(hooks, lifecycle.Config[event]{})
		require.Empty(t, sweep(t, m))
		hooks.onCommit = func(int, *lifecycle.Commit, func() error) error { return lifecycle.ErrUnavailable }
		for range 4 {
			time.Sleep(ownersTTL / 3)
			require.Empty(t, sweep(t, m))
		}
		hooks.onCommit = nil
		require.Empty(t, sweep(t, m))
		require.NoError(t, owner.Heartbeat(t.Context()))
		require.Len(t, sweepFor(t, m, ownersTTL), 1, "it is dead now")
	})
}

// TestWriteOfExpiryHangs: the store can be read, and its writes hang for longer than the
// contexts of the sweeps. The first sweep after that takes nothing, as in TestReadOnlyStore.
func TestWriteOfExpiryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hanging{MemoryStore: lifecycle.NewMemoryStore()}
		owner, _ := sweptOwner(t, &fragile{MemoryStore: store.MemoryStore})
		m := workers(store, lifecycle.Config[event]{})
		require.Empty(t, sweep(t, m))
		store.commits.Store(math.MaxInt32)
		var err error
		for range 3 {
			require.NoError(t, err)
			time.Sleep(ownersTTL / 3)
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			_, err = m.Sweep(ctx)
			stop()
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		store.commits.Store(0)
		require.Empty(t, sweep(t, m))
		require.NoError(t, owner.Heartbeat(t.Context()))
	})
}

// locked is a store whose writes wait until the time of its lock, in order of arrival, as they do
// while another transaction locks the table.
type locked struct {
	*lifecycle.MemoryStore
	since, until time.Time
	arrivals     atomic.Int64
	unknown      bool // a write that has waited until the end of its context may be executed later
}

func (s *locked) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if now := time.Now(); now.After(s.since) && now.Before(s.until) {
		select {
		case <-time.After(s.until.Sub(now) + time.Duration(s.arrivals.Add(1))):
		case <-ctx.Done():
			if s.unknown {
				return fmt.Errorf("%w: %w", lifecycle.ErrUnknownOutcome, context.Cause(ctx))
			}
			return lifecycle.Ended(ctx)
		}
	}
	return s.MemoryStore.Commit(ctx, c)
}

// TestWritesWait: the store can be read, and its writes wait for longer than the TTL before they
// succeed. They end no ownership if they have waited for a third of it, or if the sweeper sends
// heartbeats that wait, too.
func TestWritesWait(t *testing.T) {
	for name, c := range map[string]struct {
		owned, unknown bool
		cancels        bool // the program sends the heartbeats, and cancels them after a third of the TTL
		patient        bool // the program of the sweeper sends its heartbeats, and cancels none
		ttl, lock      time.Duration
		sweeper        time.Duration // the TTL of the sweeper's own owner
	}{
		"a sweeper without an owner":    {ttl: ownersTTL, lock: 2*ownersTTL + 2*time.Second},
		"the sweeper of the owner":      {owned: true, ttl: ownersTTL, lock: ownersTTL + 2*time.Second},
		"a sweeper with a longer TTL":   {ttl: ownersTTL, lock: ownersTTL + ownersTTL/3 - 1, sweeper: 3 * ownersTTL},
		"heartbeats are canceled":       {owned: true, cancels: true, ttl: ownersTTL, lock: ownersTTL + 2*time.Second},
		"no heartbeat is canceled":      {patient: true, ttl: ownersTTL, lock: 2*ownersTTL + 2*time.Second, sweeper: ownersTTL},
		"the outcome of one is unknown": {unknown: true, ttl: time.Second, lock: 2100 * time.Millisecond},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &locked{MemoryStore: lifecycle.NewMemoryStore(), unknown: c.unknown}
			owner := join(t, store, "p", c.ttl)
			config := lifecycle.Config[event]{}
			if c.owned {
				config.Owner = owner
			}
			owners := []*lifecycle.Owner{owner}
			if c.sweeper > 0 {
				config.Owner = join(t, store, "q", c.sweeper)
				owners = append(owners, config.Owner)
			}
			m := workers(store, config)
			store.since = time.Now().Add(2 * c.ttl)
			store.until = store.since.Add(c.lock)
			ctx, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for _, o := range owners {
				all.Go(func() {
					time.Sleep(c.ttl / 9)
					for c.cancels && ctx.Err() == nil {
						limited, stop := context.WithCancel(ctx)
						next := time.Now().Add(c.ttl / 3)
						time.AfterFunc(c.ttl/3, stop)
						_ = o.Heartbeat(limited)
						time.Sleep(time.Until(next))
					}
					for c.patient && o == config.Owner && ctx.Err() == nil {
						_ = o.Heartbeat(ctx)
						time.Sleep(c.ttl / 3)
					}
					_ = o.Run(ctx)
				})
			}
			for range 6 {
				sweepFor(t, m, c.ttl)
			}
			require.NoError(t, owner.Heartbeat(t.Context()))
			end()
			all.Wait()
		})
	}
}

// TestHeartbeatsEnd: the last heartbeat of a process fails, and its sweeps go on. They declare other
// owners dead.
func TestHeartbeatsEnd(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *lifecycle.Owner){
		"it sends no more": func(*testing.T, *lifecycle.Owner) {},
		"it leaves":        func(t *testing.T, o *lifecycle.Owner) { require.NoError(t, o.Leave(t.Context())) },
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &hanging{MemoryStore: lifecycle.NewMemoryStore()}
			owner := join(t, store, "p", ownersTTL)
			other := join(t, store, "q", ownersTTL)
			m := workers(store, lifecycle.Config[event]{Owner: owner})
			store.commits.Store(1)
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			require.ErrorIs(t, owner.Heartbeat(ctx), context.DeadlineExceeded)
			store.commits.Store(0)
			end(t, owner)
			for range 3 {
				sweepFor(t, m, ownersTTL)
			}
			require.ErrorIs(t, other.Heartbeat(t.Context()), lifecycle.ErrStale)
		})
	}
}

// TestRecordOfTheSweeper: the record of the owner that sweeps cannot be read, so that no heartbeat
// succeeds. It declares other owners dead.
func TestRecordOfTheSweeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner, other := join(t, store, "p", ownersTTL), join(t, store, "q", ownersTTL)
		m := workers(store, lifecycle.Config[event]{Owner: owner})
		plant(t, store, lifecycle.StoredRecord{Key: ownerKey("p"), State: "alive", Origin: "?"})
		for range 9 {
			require.ErrorIs(t, owner.Heartbeat(t.Context()), lifecycle.ErrForeign)
			sweep(t, m)
			time.Sleep(ownersTTL / 3)
		}
		require.ErrorIs(t, other.Heartbeat(t.Context()), lifecycle.ErrStale)
	})
}

// slowWrites is a store whose writes take a while.
type slowWrites struct {
	*lifecycle.MemoryStore
	takes time.Duration
}

func (s *slowWrites) Commit(ctx context.Context, c *lifecycle.Commit) error {
	select {
	case <-time.After(s.takes):
		return s.MemoryStore.Commit(ctx, c)
	case <-ctx.Done():
		return lifecycle.Ended(ctx)
	}
}

// TestOneOwnerStays: an owner that no sweep can declare dead does not keep others alive.
func TestOneOwnerStays(t *testing.T) {
	for name, stay := range map[string]func(*testing.T, lifecycle.Store){
		"a write takes longer than a third of its TTL": func(t *testing.T, store lifecycle.Store) {
			join(t, store, "a", ownersTTL/9)
		},
		"its record cannot be read": func(t *testing.T, store lifecycle.Store) {
			plant(t, store, lifecycle.StoredRecord{Key: ownerKey("a"), State: "alive", Origin: "?", Payload: []byte(`{"ttl":1000000000}`)})
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &slowWrites{lifecycle.NewMemoryStore(), ownersTTL / 9}
			stay(t, store)
			owner := join(t, store, "b", ownersTTL)
			m := workers(store, lifecycle.Config[event]{})
			for range 30 {
				sweep(t, m)
				time.Sleep(ownersTTL / 9)
			}
			require.Equal(t, "alive", storedAt(t, store, ownerKey("a")).State)
			require.ErrorIs(t, owner.Heartbeat(t.Context()), lifecycle.ErrStale)
		})
	}
}

// TestDeadOwner: an owner that sends no heartbeat is dead after its own TTL, which the
// sweeper finds in the record. Sweeps that are frequent find it no earlier, rare ones
// need four. A record without a TTL has the default.
func TestDeadOwner(t *testing.T) {
	for name, c := range map[string]struct{ every, after time.Duration }{
		"each second": {time.Second, ownersTTL},
		"each third":  {ownersTTL / 3, ownersTTL},
		"rarely":      {4 * ownersTTL / 5, 3 * 4 * ownersTTL / 5},
	} {
		inBubble(t, name, func(t *testing.T) {
			_, m := sweptOwner(t, &fragile{MemoryStore: lifecycle.NewMemoryStore()})
			began := time.Now()
			found := sweep(t, m)
			for len(found) == 0 {
				time.Sleep(c.every)
				found = sweep(t, m)
			}
			require.InDelta(t, c.after, time.Since(began), float64(c.every))
			require.GreaterOrEqual(t, time.Since(began), ownersTTL)
			require.Equal(t, `owner "p" of epoch 1 is dead`, found[0].Cause)
		})
	}
	inBubble(t, "without a TTL", func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		plant(t, store, lifecycle.StoredRecord{Key: ownerKey("old"), State: "alive", Origin: "absent"})
		m := workers(store, lifecycle.Config[event]{})
		for range 3 {
			sweep(t, m)
			time.Sleep(lifecycle.DefaultTTL/3 + 1)
		}
		require.Equal(t, "alive", storedAt(t, store, ownerKey("old")).State)
		sweep(t, m)
		require.Equal(t, "dead", storedAt(t, store, ownerKey("old")).State)
	})
}

// TestHeartbeatStartsAgain: a single heartbeat within the TTL keeps the ownership.
func TestHeartbeatStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fragile{MemoryStore: lifecycle.NewMemoryStore()}
		owner, m := sweptOwner(t, store)
		for i := range 15 {
			require.Empty(t, sweep(t, m))
			time.Sleep(ownersTTL / 3)
			if i%3 == 2 {
				require.NoError(t, owner.Heartbeat(t.Context()))
			}
		}
	})
}

// TestPausedSweeper: the first sweep after a pause, in which nothing was seen, ends no
// ownership.
func TestPausedSweeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner, m := sweptOwner(t, &fragile{MemoryStore: lifecycle.NewMemoryStore()})
		require.Empty(t, sweep(t, m))
		time.Sleep(5 * ownersTTL) // both processes
		require.Empty(t, sweep(t, m))
		require.NoError(t, owner.Heartbeat(t.Context()))
		require.Empty(t, sweep(t, m))
	})
}

// TestClockOfTheStore: no jump of the store's clock ends an ownership, and none keeps a
// dead one.
func TestClockOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fragile{MemoryStore: lifecycle.NewMemoryStore(), ahead: true}
		owner, m := sweptOwner(t, store)
		for range 5 {
			require.Empty(t, sweep(t, m))
			time.Sleep(ownersTTL / 3)
			require.NoError(t, owner.Heartbeat(t.Context()))
		}
		store.ahead, store.slow = false, true
		found := sweepFor(t, m, ownersTTL)
		require.Len(t, found, 1)
		require.True(t, found[0].OwnerDead)
		require.ErrorIs(t, owner.Heartbeat(t.Context()), lifecycle.ErrStale)
		rows, err := store.History(t.Context(), ownerKey("p"), 1, 1)
		require.NoError(t, err)
		require.Equal(t, "no heartbeat for 9s", rows[0].Reason)
	})
}

// TestHeartbeatDuringSweep: an owner that seems to be dead sends a heartbeat just before
// it is declared dead. It keeps its operation.
func TestHeartbeatDuringSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		owner, _ := sweptOwner(t, &fragile{MemoryStore: hooks.MemoryStore})
		m := workers(hooks, lifecycle.Config[event]{})
		hooks.onCommit = func(_ int, c *lifecycle.Commit, write func() error) error {
			require.Equal(t, "dead", c.Changes[0].To.State)
			hooks.onCommit = nil
			require.NoError(t, owner.Heartbeat(t.Context()))
			return write()
		}
		require.Empty(t, sweepFor(t, m, ownersTTL))
		require.Nil(t, hooks.onCommit)
		require.NoError(t, owner.Heartbeat(t.Context()))
		require.Equal(t, "stopping", storedAt(t, hooks, lifecycle.Key{Machine: "work-vm", ID: "a"}).State)
	})
}
