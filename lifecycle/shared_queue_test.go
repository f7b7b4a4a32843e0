package lifecycle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// failsFirst returns an action that fails a number of times, with pauses of a second.
func failsFirst(class string, times int) *queue.Action {
	return &queue.Action{
		Class: class, Retry: queue.Retry{Attempts: times + 1, Backoff: queue.Exponential(time.Second, time.Second)},
		Run: func(context.Context) error {
			if times--; times >= 0 {
				return errors.New("broken")
			}
			return nil
		},
	}
}

// The queue and the turns have the same limit. While one action is between two attempts, no
// other one takes its share of the queue's limit and waits with it for the turn of the first.
func TestRetryInASharedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		classes := map[string]queue.Limit{"aws": {MaxRunning: 1}}
		own := queue.Must(&queue.Config[lifecycle.Key]{Classes: classes})
		q := lifecycle.Shared(own, turnsOf(t, lifecycle.NewMemoryStore(), "one", classes))
		x, err := q.Submit(ctx, lifecycle.Key{Machine: "vm", ID: "x"}, failsFirst("aws", 1))
		require.NoError(t, err)
		y, err := q.Submit(ctx, lifecycle.Key{Machine: "vm", ID: "y"}, failsFirst("aws", 0))
		require.NoError(t, err)
		got := []error{x.Wait(ctx), y.Wait(ctx)}
		own.Abort(nil)
		require.Equal(t, []error{nil, nil}, got)
	})
}

// Each of two processes, which run one action at a time, keeps the turn of an object between
// two attempts, and has another action of the other's object.
func TestRetriesInTwoSharedQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		store := lifecycle.NewMemoryStore()
		var owns []*queue.Queuer[lifecycle.Key]
		var qs []lifecycle.Queue
		for _, name := range []string{"one", "other"} {
			own := queue.Must(&queue.Config[lifecycle.Key]{MaxRunning: 1})
			owns, qs = append(owns, own), append(qs, lifecycle.Shared(own, turnsOf(t, store, name, nil)))
		}
		var tickets []*queue.Ticket[lifecycle.Key]
		for _, s := range []struct {
			process int
			id      string
			fails   int
		}{{0, "x", 1}, {1, "y", 1}, {0, "y", 0}, {1, "x", 0}} {
			ticket, err := qs[s.process].Submit(ctx, lifecycle.Key{Machine: "vm", ID: s.id}, failsFirst("", s.fails))
			require.NoError(t, err)
			tickets = append(tickets, ticket)
			synctest.Wait()
		}
		var got []error
		for _, ticket := range tickets {
			got = append(got, ticket.Wait(ctx))
		}
		for _, own := range owns {
			own.Abort(nil)
		}
		require.Equal(t, []error{nil, nil, nil, nil}, got)
	})
}

// Two shared queues of one owner exclude each other as those of two processes do.
func TestTwoSharedQueuesOfOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := join(t, lifecycle.NewMemoryStore(), "one", time.Hour)
		var tickets []*queue.Ticket[lifecycle.Key]
		running, most := 0, 0
		for range 2 {
			turns, err := lifecycle.NewTurns(owner, map[string]queue.Limit{"": {MaxRunning: 1}})
			require.NoError(t, err)
			q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turns)
			ticket, err := q.Submit(t.Context(), lifecycle.Key{Machine: "vm", ID: "x"}, &queue.Action{Run: func(context.Context) error {
				running++
				most = max(most, running)
				time.Sleep(time.Minute)
				running--
				return nil
			}})
			require.NoError(t, err)
			tickets = append(tickets, ticket)
			synctest.Wait()
		}
		for _, ticket := range tickets {
			require.NoError(t, ticket.Wait(t.Context()))
		}
		require.Equal(t, 1, most)
	})
}

// troubledStore refuses commits, and delays the answers of reads that find places, while it is
// set to.
type troubledStore struct {
	*lifecycle.MemoryStore
	commits atomic.Pointer[error]
	reads   atomic.Pointer[chan struct{}] // closed when it answers
}

func (s *troubledStore) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if err := s.commits.Load(); err != nil {
		return *err
	}
	return s.MemoryStore.Commit(ctx, c)
}

func (s *troubledStore) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, k)
	if reads := s.reads.Load(); reads != nil && k.Machine == "interlock.turns" && len(r.Args) > 0 {
		<-*reads
	}
	return r, err
}

var errDenied = errors.New("permission denied")

// The end of a turn is written when the store accepts it again, whatever error it returned.
func TestEndOfATurnIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &troubledStore{MemoryStore: lifecycle.NewMemoryStore()}
		q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "one", nil))
		ticket, err := q.Submit(t.Context(), lifecycle.Key{Machine: "vm", ID: "x"}, &queue.Action{Run: func(context.Context) error {
			store.commits.Store(&errDenied)
			return nil
		}})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, queue.Pending, ticket.Outcome())
		store.commits.Store(nil)
		require.NoError(t, ticket.Wait(t.Context()))
		require.Empty(t, places(t, store))
	})
}

// The end of a turn is not repeated for ever: not after the store is closed, and not after
// the ownership is lost.
func TestEndOfATurnThatCannotBeWritten(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *troubledStore, *lifecycle.Owner){
		"closed": func(t *testing.T, store *troubledStore, _ *lifecycle.Owner) {
			require.NoError(t, store.Close())
			store.commits.Store(nil)
		},
		"lost": func(t *testing.T, store *troubledStore, owner *lifecycle.Owner) {
			join(t, store.MemoryStore, "one", time.Hour)
			require.ErrorIs(t, owner.Heartbeat(t.Context()), lifecycle.ErrStale)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &troubledStore{MemoryStore: lifecycle.NewMemoryStore()}
				owner := join(t, store, "one", time.Hour)
				turns, err := lifecycle.NewTurns(owner, nil)
				require.NoError(t, err)
				q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turns)
				ticket, err := q.Submit(t.Context(), lifecycle.Key{Machine: "vm", ID: "x"}, &queue.Action{Run: func(context.Context) error {
					store.commits.Store(&errDenied)
					return nil
				}})
				require.NoError(t, err)
				time.Sleep(time.Hour)
				require.Equal(t, queue.Pending, ticket.Outcome())
				stop(t, store, owner)
				require.NoError(t, ticket.Wait(t.Context()))
			})
		})
	}
}

// A turn that the store refuses has no place. So its action ends at once.
func TestTurnThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &troubledStore{MemoryStore: lifecycle.NewMemoryStore()}
		q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "one", nil))
		store.commits.Store(&errDenied)
		ticket, err := q.Submit(t.Context(), lifecycle.Key{Machine: "vm", ID: "x"}, &queue.Action{Run: func(context.Context) error { return nil }})
		require.NoError(t, err)
		require.ErrorIs(t, ticket.Wait(t.Context()), errDenied)
		require.Equal(t, queue.Skipped, ticket.Outcome())
	})
}

// panicking is a store that panics once, behind the first commit of a turn or in it.
type panicking struct {
	*lifecycle.MemoryStore
	inCommit, armed, panicked bool
}

func (s *panicking) Commit(ctx context.Context, c *lifecycle.Commit) error {
	err := s.MemoryStore.Commit(ctx, c)
	s.armed = s.armed || c.Changes[0].To.Key.Machine == "interlock.turns"
	s.panicOnce(s.inCommit)
	return err
}

func (s *panicking) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	s.panicOnce(!s.inCommit)
	return s.MemoryStore.Get(ctx, key)
}

func (s *panicking) panicOnce(here bool) {
	if here && s.armed && !s.panicked {
		s.panicked = true
		panic("broken store")
	}
}

// A turn during whose begin the store panics ends with its action: others get the turn.
func TestStorePanicsBeforeATurn(t *testing.T) {
	for _, inCommit := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &panicking{MemoryStore: lifecycle.NewMemoryStore(), inCommit: inCommit}
			q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, store, "one", nil))
			ran := false
			ticket, err := q.Submit(t.Context(), lifecycle.Key{Machine: "vm", ID: "x"}, &queue.Action{Run: func(context.Context) error { ran = true; return nil }})
			require.NoError(t, err)
			require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrPanic)
			require.False(t, ran)
			require.Empty(t, places(t, store))
		})
	}
}

// An action is abandoned while it waits for its turn, and the turn begins nevertheless.
func TestAbandonedBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &troubledStore{MemoryStore: lifecycle.NewMemoryStore()}
		own := queue.Must[lifecycle.Key](nil)
		q := lifecycle.Shared(own, turnsOf(t, store, "one", nil))
		answers := make(chan struct{})
		store.reads.Store(&answers)
		key := lifecycle.Key{Machine: "vm", ID: "x"}
		ran := false
		ticket, err := q.Submit(t.Context(), key, &queue.Action{Run: func(context.Context) error { ran = true; return nil }})
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, own.Abandon(key))
		require.Error(t, ticket.Wait(t.Context()))
		require.Equal(t, queue.Abandoned, ticket.Outcome())
		store.reads.Store(nil)
		close(answers)
		time.Sleep(time.Hour)
		require.False(t, ran)
		require.Empty(t, places(t, store))
		require.Zero(t, own.Stats())
	})
}

// The store does not answer one call for a turn: at its begin, in its wait or at its end. The
// call is made again, and the action ends: a process that is alive keeps no turn for ever.
func TestSharedTurnHangs(t *testing.T) {
	hangs := map[string]func(*hanging){
		"get":    func(s *hanging) { s.gets.Store(1) },
		"commit": func(s *hanging) { s.commits.Store(1) },
	}
	for what, hang := range hangs {
		for _, when := range []string{"begin", "wait", "end"} {
			inBubble(t, what+" at "+when, func(t *testing.T) {
				store := &hanging{MemoryStore: lifecycle.NewMemoryStore()}
				turns := turnsOf(t, store, "one", nil)
				key := lifecycle.Key{Machine: "vm", ID: "x"}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				first, err := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turns).Submit(ctx, key, &queue.Action{Run: func(context.Context) error {
					time.Sleep(time.Minute)
					return nil
				}})
				require.NoError(t, err)
				synctest.Wait()
				if when == "begin" {
					hang(store)
				}
				own := queue.Must[lifecycle.Key](nil)
				defer own.Abort(nil)
				next, err := lifecycle.Shared(own, turns).Submit(ctx, key, &queue.Action{Run: func(context.Context) error {
					if when == "end" {
						hang(store)
					}
					return nil
				}})
				require.NoError(t, err)
				synctest.Wait()
				if when == "wait" {
					hang(store)
				}
				require.NoError(t, first.Wait(ctx))
				require.NoError(t, next.Wait(ctx))
				require.Empty(t, places(t, store))
			})
		}
	}
}

// A shared queue refuses what its queue refuses.
func TestSharedQueueWithoutAction(t *testing.T) {
	q := lifecycle.Shared(queue.Must[lifecycle.Key](nil), turnsOf(t, lifecycle.NewMemoryStore(), "one", nil))
	_, err := q.Submit(t.Context(), lifecycle.Key{Machine: "vm", ID: "x"}, nil)
	_, isInvalid := errors.AsType[*queue.InvalidError](err)
	require.True(t, isInvalid, "%v", err)
}
