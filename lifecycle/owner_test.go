package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

func ownerKey(name string) lifecycle.Key {
	return lifecycle.Key{Machine: "interlock.owner", ID: name}
}

// TestJoin: every join of a name is a new life; the one before is over.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		var last *lifecycle.Owner
		for epoch := range uint64(4) {
			o := join(t, store, "p", time.Minute)
			require.Equal(t, "p", o.Name())
			require.Equal(t, epoch+1, o.Epoch())
			if last != nil {
				require.ErrorIs(t, last.Heartbeat(t.Context()), lifecycle.ErrStale)
				<-last.Lost()
				require.ErrorIs(t, last.Leave(t.Context()), lifecycle.ErrStale)
				require.ErrorIs(t, last.Run(t.Context()), lifecycle.ErrStale)
			}
			require.NoError(t, o.Heartbeat(t.Context()))
			last = o
		}
		require.NoError(t, last.Leave(t.Context()))
		<-last.Lost()
		require.ErrorIs(t, last.Heartbeat(t.Context()), lifecycle.ErrStale)
		again := join(t, store, "p", 0)
		require.EqualValues(t, 5, again.Epoch(), "also after it has left")
		require.Equal(t, time.Now().Add(lifecycle.DefaultTTL), storedAt(t, store, ownerKey("p")).Deadline)
		require.NoError(t, again.Leave(t.Context()))
	})
}

func TestJoinInvalid(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	_, err := lifecycle.Join(t.Context(), store, "", 0)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.EqualError(t, err, "lifecycle: invalid request: owner without a name")
	_, err = lifecycle.Join(t.Context(), store, "p", -1)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.NoError(t, store.Close())
	_, err = lifecycle.Join(t.Context(), store, "p", 0)
	require.ErrorIs(t, err, lifecycle.ErrClosed)
}

// TestJoinAmidAnEarlierLife: what becomes of an earlier process of the name is in
// the way at any time.
func TestJoinAmidAnEarlierLife(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *lifecycle.Owner, *lifecycle.MemoryStore){
		"sends a heartbeat": func(t *testing.T, o *lifecycle.Owner, _ *lifecycle.MemoryStore) {
			require.NoError(t, o.Heartbeat(t.Context()))
		},
		"leaves": func(t *testing.T, o *lifecycle.Owner, _ *lifecycle.MemoryStore) {
			require.NoError(t, o.Leave(t.Context()))
		},
		"is declared dead": func(t *testing.T, _ *lifecycle.Owner, store *lifecycle.MemoryStore) {
			other := join(t, store, "other", time.Hour)
			sweepFor(t, workers(store, lifecycle.Config[event]{Owner: other}), time.Minute)
			require.Equal(t, "dead", storedAt(t, store, ownerKey("p")).State)
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			earlier := join(t, store, "p", time.Minute)
			store.reset()
			store.afterGet = func(n int) {
				if n == 1 {
					end(t, earlier, store.MemoryStore)
				}
			}
			o := join(t, store, "p", time.Minute)
			require.EqualValues(t, 2, o.Epoch())
			require.NoError(t, o.Heartbeat(t.Context()))
			require.ErrorIs(t, earlier.Heartbeat(t.Context()), lifecycle.ErrStale)
		})
	}
}

// TestOwnerRun: a process that sends heartbeats lives for ever, and they leave no
// history. Without heartbeats it is dead after its own TTL, for every process.
func TestOwnerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		quick := join(t, store, "quick", time.Second)
		slow := join(t, store, "slow", time.Hour)
		watcher := workers(store, lifecycle.Config[event]{})
		ctx, stop := context.WithCancel(t.Context())
		var heartbeats errgroup.Group
		heartbeats.Go(func() error { return quick.Run(ctx) })
		for range 100 {
			time.Sleep(time.Second / 2)
			require.Empty(t, sweep(t, watcher))
		}
		stop()
		require.NoError(t, heartbeats.Wait())
		alive := storedAt(t, store, ownerKey("quick"))
		require.Equal(t, "alive", alive.State)
		require.EqualValues(t, 1, alive.Sequence)
		rows, err := store.History(t.Context(), ownerKey("quick"), 0, 100)
		require.NoError(t, err)
		require.Len(t, rows, 1)

		time.Sleep(time.Second + 1)
		require.NoError(t, quick.Heartbeat(t.Context()), "late, but before any sweep")
		sweepFor(t, watcher, time.Second)
		require.Equal(t, "dead", storedAt(t, store, ownerKey("quick")).State)
		require.Equal(t, "alive", storedAt(t, store, ownerKey("slow")).State)
		require.ErrorIs(t, quick.Run(t.Context()), lifecycle.ErrStale)
		require.NoError(t, slow.Leave(t.Context()))
		require.False(t, new(storedAt(t, store, ownerKey("slow"))).Exists())

		time.Sleep(24*time.Hour + 1)
		sweep(t, watcher)
		require.False(t, new(storedAt(t, store, ownerKey("quick"))).Exists(), "dead owners are forgotten after a day")
	})
}

// hanging is a store that does not answer a number of commits, as over a connection that
// the network has dropped.
type hanging struct {
	*lifecycle.MemoryStore
	commits, gets atomic.Int32
}

func (s *hanging) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.gets.Add(-1) >= 0 {
		<-ctx.Done()
		return lifecycle.StoredRecord{}, lifecycle.Ended(ctx)
	}
	return s.MemoryStore.Get(ctx, key)
}

func (s *hanging) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.commits.Add(-1) >= 0 {
		<-ctx.Done()
		return lifecycle.Ended(ctx)
	}
	return s.MemoryStore.Commit(ctx, c)
}

// TestOwnerRunHangs: one heartbeat hangs, and the next one is sent in time.
func TestOwnerRunHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hanging{MemoryStore: lifecycle.NewMemoryStore()}
		o := join(t, store, "p", time.Minute)
		watcher := workers(store.MemoryStore, lifecycle.Config[event]{})
		store.commits.Store(1)
		ctx, stop := context.WithCancel(t.Context())
		var heartbeats errgroup.Group
		heartbeats.Go(func() error { return o.Run(ctx) })
		for range 30 {
			time.Sleep(10*time.Second + 1)
			sweep(t, watcher)
		}
		require.Equal(t, "alive", storedAt(t, store, ownerKey("p")).State)
		stop()
		require.NoError(t, heartbeats.Wait())
	})
}

// TestOwnerBeatOfStore: an answer that was lost is not an ownership that was.
func TestOwnerBeatOfStore(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	o := join(t, store, "p", 0)
	store.reset()
	store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
		if n%2 == 1 {
			return store.lose(t, c)
		}
		return write()
	}
	require.NoError(t, o.Heartbeat(t.Context()))
	require.Equal(t, 2, store.commits)
	require.NoError(t, o.Heartbeat(t.Context()))
	store.onCommit = func(int, *lifecycle.Commit, func() error) error { return errBoom }
	require.ErrorIs(t, o.Heartbeat(t.Context()), errBoom)
	store.onCommit = func(_ int, c *lifecycle.Commit, _ func() error) error { return store.lose(t, c) }
	require.ErrorIs(t, o.Heartbeat(t.Context()), lifecycle.ErrUnknownOutcome)
	select {
	case <-o.Lost():
		t.Fatal("lost by an error of the store")
	default:
	}
	store.reset()
	require.NoError(t, o.Heartbeat(t.Context()))
	// So may the answer to leaving.
	store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
		if n == 1 {
			return store.lose(t, c)
		}
		return write()
	}
	store.commits = 0
	require.NoError(t, o.Leave(t.Context()))
}

// TestZombie: a process that was declared dead and comes back. Its operations were
// taken over; its heartbeat fails, the context of its work ends, its outcome is refused
// and it begins nothing new.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := lifecycle.NewMemoryStore()
		zombie := join(t, store, "zombie", time.Second)
		heir := join(t, store, "heir", time.Hour)
		woken := make(chan struct{})
		m := workers(store, lifecycle.Config[event]{Owner: zombie, Handlers: map[string]lifecycle.Handler{
			"reboot": func(ctx context.Context, _ []byte) error {
				<-woken
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), lifecycle.ErrStale)
				log.note("the stale process gets ErrStale")
				return nil // and does not listen
			},
		}})
		n := workers(store, lifecycle.Config[event]{Owner: heir, Handlers: map[string]lifecycle.Handler{"reboot": log.handler("the heir does")}})
		running(t, m, "a")
		ticket := do(t, m, "a", "reboot", user, lifecycle.Named("reboot", []byte("it")), nil)
		require.Equal(t, "zombie", ticket.Admitted().Owner)
		require.EqualValues(t, 1, ticket.Admitted().Epoch)
		cases := sweepFor(t, n, time.Second)
		require.Len(t, cases, 1)
		require.Equal(t, lifecycle.Redone, cases[0].Resolution)
		require.True(t, cases[0].OwnerDead)
		require.Equal(t, "zombie", cases[0].Owner)
		require.EqualValues(t, 3, cases[0].Operation)
		synctest.Wait()
		before := all(t, store, "work-vm", "a")
		require.Equal(t, "running", before.Records[0].State)

		close(woken)
		synctest.Wait()
		require.Equal(t, []string{"the heir does it"}, log.list)
		require.ErrorIs(t, zombie.Heartbeat(t.Context()), lifecycle.ErrStale)
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
		require.Equal(t, []string{"the heir does it", "the stale process gets ErrStale"}, log.list)
		require.Equal(t, before, all(t, store, "work-vm", "a"))

		_, err := m.Do(t.Context(), "a", "stop", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.Equal(t, before, all(t, store, "work-vm", "a"))
		require.NoError(t, heir.Leave(t.Context()))
	})
}

// TestTwoLivesOfOneName: the second process of a name takes over what the first
// was doing, while that one still runs.
func TestTwoLivesOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		first := join(t, store, "p", 0)
		m := workers(store, lifecycle.Config[event]{Owner: first})
		running(t, m, "a")
		stopped(t, m, "b")
		end := make(chan struct{})
		work := lifecycle.Func(func(context.Context) error { <-end; return nil })
		a := do(t, m, "a", "stop", user, work, nil)
		second := join(t, store, "p", 0)
		n := workers(store, lifecycle.Config[event]{Owner: second})
		b := do(t, n, "b", "start", user, work, nil)
		cases := sweep(t, n)
		require.Len(t, cases, 1)
		require.Equal(t, "a", cases[0].ID)
		require.Equal(t, lifecycle.Moved, cases[0].Resolution)
		require.Equal(t, "running", cases[0].To)
		close(end)
		require.Equal(t, lifecycle.Lost, outcomeOf(t, a).Outcome)
		wait(t, b)
		require.NoError(t, second.Leave(t.Context()))
	})
}

// TestLeave: what is left behind is taken over at once.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		o := join(t, store, "p", 0)
		m := workers(store, lifecycle.Config[event]{Owner: o})
		running(t, m, "a")
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(untilEnded), nil)
		require.NoError(t, o.Leave(t.Context()))
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome, "the context of its work has ended")
		require.Equal(t, state("stopping"), get(t, m, "a").State)
		cases := sweep(t, workers(store, lifecycle.Config[event]{}))
		require.Len(t, cases, 1)
		require.Equal(t, `work-vm "a" in stopping, operation 3: moved to running by late, because owner "p" of epoch 1 is dead`, cases[0].String())
	})
}

// TestOwnerJoinsDuringSweep: what a sweep has read of an owner before it joined
// again does not touch the operations of its new epoch.
func TestOwnerJoinsDuringSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		first := join(t, store.MemoryStore, "p", time.Second)
		m := workers(store.MemoryStore, lifecycle.Config[event]{Owner: first})
		running(t, m, "a")
		running(t, m, "b")
		do(t, m, "a", "stop", user, lifecycle.Func(untilEnded), nil)
		watcher := workers(store.MemoryStore, lifecycle.Config[event]{Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
			return "", "", errBoom // it leaves the object
		}})
		sweepFor(t, watcher, time.Second)
		require.Equal(t, "dead", storedAt(t, store, ownerKey("p")).State)
		var ticket *lifecycle.Ticket[state, size]
		lister := &clocked{hooked: store}
		lister.beforeList = func(q lifecycle.Query) {
			if q.NotOwnedBy == nil || ticket != nil {
				return
			}
			// The sweep has read that p is dead, and lists the objects of p.
			second := join(t, store.MemoryStore, "p", time.Hour)
			n := workers(store.MemoryStore, lifecycle.Config[event]{Owner: second})
			ticket = do(t, n, "b", "stop", user, sleeping(time.Second), nil)
		}
		cases := sweep(t, workers(lister, lifecycle.Config[event]{}))
		require.NotNil(t, ticket)
		require.Len(t, cases, 1)
		require.Equal(t, "a", cases[0].ID)
		wait(t, ticket)
		require.ErrorIs(t, first.Heartbeat(t.Context()), lifecycle.ErrStale) // and the context of its work ends
	})
}

// clocked is a store with a function in front of List, and a clock of its own.
type clocked struct {
	*hooked
	beforeList func(lifecycle.Query)
	lists      int
	// every: the store's clock is so wrong that every deadline is over.
	every bool
	fail  error
}

func (s *clocked) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	if s.beforeList != nil {
		s.beforeList(q)
	}
	if s.fail != nil {
		return nil, s.fail
	}
	if s.every {
		q.Overdue = false
	}
	return s.MemoryStore.List(ctx, q)
}

// TestOwnerJoinsAgainDuringSweep: the list of owners has an earlier life of a process.
// The operations of its new one are left alone, and those of the earlier one are found,
// also by the process itself.
func TestOwnerJoinsAgainDuringSweep(t *testing.T) {
	for name, own := range map[string]bool{"another process sweeps": false, "the process itself sweeps": true} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			first := join(t, store.MemoryStore, "p", time.Hour)
			m := workers(store.MemoryStore, lifecycle.Config[event]{Owner: first})
			running(t, m, "a")
			running(t, m, "b")
			do(t, m, "a", "stop", user, lifecycle.Func(untilEnded), nil)
			var second *lifecycle.Owner
			var ticket *lifecycle.Ticket[state, size]
			again := func() {
				second = join(t, store.MemoryStore, "p", time.Hour)
				n := workers(store.MemoryStore, lifecycle.Config[event]{Owner: second})
				ticket = do(t, n, "b", "stop", user, sleeping(time.Second), nil)
			}
			lister := &clocked{hooked: store}
			lister.beforeList = func(q lifecycle.Query) {
				if q.NotOwnedBy != nil && ticket == nil { // the owners have been read
					again()
				}
			}
			var config lifecycle.Config[event]
			if own {
				again()
				config.Owner = second
			}
			sweeper := workers(lister, config)
			found := append(sweep(t, sweeper), sweep(t, sweeper)...)
			require.Len(t, found, 1, "%v", found)
			require.Equal(t, "a", found[0].ID)
			require.Equal(t, `owner "p" of epoch 1 is dead`, found[0].Cause)
			wait(t, ticket)
			require.ErrorIs(t, first.Heartbeat(t.Context()), lifecycle.ErrStale)
		})
	}
}

// TestOwnerDiesInAnotherStoreOfTheSameData: the Owner has joined another store than that of the
// manager, over the same data. After its end the refusal is that of a dead process.
func TestOwnerDiesInAnotherStoreOfTheSameData(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	owner := join(t, &hooked{MemoryStore: store}, "p", time.Hour)
	m := workers(store, lifecycle.Config[event]{Owner: owner})
	stopped(t, m, "a")
	ownerEnds(t, store, "p", "dead")
	_, err := m.Do(t.Context(), "a", "start", user, lifecycle.Func(fine), nil)
	require.ErrorIs(t, err, lifecycle.ErrStale)
	require.NotErrorIs(t, err, lifecycle.ErrMisconfigured)
	<-owner.Lost()
}

// TestOwnerOfAnotherStore: the Owner has joined another store than that of the manager.
// The refusal names the fault, and the process does not lose its ownership.
func TestOwnerOfAnotherStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := lifecycle.NewMemoryStore()
		config := lifecycle.Config[event]{Owner: join(t, home, "p", time.Hour)}
		m := workers(lifecycle.NewMemoryStore(), config)
		stopped(t, m, "a")
		_, err := m.Do(t.Context(), "a", "start", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
		require.NotErrorIs(t, err, lifecycle.ErrStale)
		require.ErrorContains(t, err, `owner "p" has joined another store`)
		require.EqualValues(t, "stopped", get(t, m, "a").State)

		m = workers(home, config)
		stopped(t, m, "a")
		require.EqualValues(t, "running", wait(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil)).State)
	})
}
