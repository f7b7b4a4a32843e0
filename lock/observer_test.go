package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// recorder writes down what it is told, and proves at every event that no lock
// is held, by using the tree.
type recorder struct {
	tree *lock.Tree
	mu   sync.Mutex
	log  []string
}

func (r *recorder) note(kind string, o lock.Options, rs []lock.Request, more string) {
	if _, err := r.tree.Snapshot(context.Background()); err != nil {
		panic(err)
	}
	if err := r.tree.Break(context.Background(), 1<<40, ""); !errors.Is(err, lock.ErrNotHeld) {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var texts []string
	for _, q := range rs {
		texts = append(texts, q.String())
	}
	who := strings.Trim(o.ID+" "+o.Owner+" "+o.Reason, " ")
	r.log = append(r.log, fmt.Sprintf("%s %s [%s]%s", kind, strings.Join(texts, ", "), who, more))
}

// told returns what was told since.
func (r *recorder) told() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

func recording(config lock.Config) (*lock.Tree, *recorder) {
	r := new(recorder)
	config.Observer = &lock.Observer{
		Granted: func(e lock.Granted) {
			r.note("granted", e.Options, e.Requests, fmt.Sprintf(" #%d after %v", e.Token, e.Waited))
		},
		Refused: func(e lock.Refused) {
			r.note("refused", e.Options, e.Requests, ": "+strings.Split(e.Err.Error(), ";")[0])
		},
		Waiting: func(e lock.Waiting) { r.note("waiting", e.Options, e.Requests, "") },
		Released: func(e lock.Released) {
			r.note("released", e.Options, e.Requests, fmt.Sprintf(" #%d after %v: %v", e.Token, e.Held, e.Err))
		},
	}
	r.tree = lock.NewTree(&config)
	return r.tree, r
}

func observed(t *testing.T, config lock.Config, f func(t *testing.T, tree *lock.Tree, told func(...string))) {
	synctest.Test(t, func(t *testing.T) {
		tree, r := recording(config)
		f(t, tree, func(want ...string) {
			t.Helper()
			require.Equal(t, want, r.told())
		})
		synctest.Wait()
		require.Empty(t, r.told())
		idle(t, tree)
	})
}

func TestEveryEventIsToldOnce(t *testing.T) {
	ctx := context.Background()
	who := &lock.Options{ID: "d1", Owner: "ann", Reason: "deploy"}
	observed(t, lock.Config{}, func(t *testing.T, tree *lock.Tree, told func(...string)) {
		h := take(t, tree, "IX at /a", who)
		told("granted IX at /a [d1 ann deploy] #1 after 0s")
		require.Same(t, h, take(t, tree, "IX at /a", who))
		told() // a repeated acquisition is not told
		_, err := tree.TryLock(ctx, req("X at /"), by("bob"))
		require.Error(t, err)
		told("refused X at / [bob]: lock: X at /: conflict")
		_, err = tree.TryLock(ctx, req("IX at /"), who)
		require.Error(t, err)
		told("refused IX at / [d1 ann deploy]: lock: IX at /: the id is in use for other requests")
		time.Sleep(time.Second)
		require.NoError(t, h.Upgrade(ctx, lock.X))
		told("granted X at /a [d1 ann deploy] #2 after 0s")
		require.NoError(t, h.Upgrade(ctx, lock.S))
		told() // nothing was raised
		p := wait(ctx, tree, "X at /a/b", by("cyd"))
		told("waiting X at /a/b [cyd]")
		require.NoError(t, h.Upgrade(ctx, lock.X))
		told() // what raises nothing is not refused by who waits
		time.Sleep(time.Minute)
		require.NoError(t, h.Downgrade(ctx, lock.SIX))
		told()
		require.NoError(t, h.Downgrade(ctx, lock.IX))
		told("granted X at /a/b [cyd] #3 after 1m0s")
		time.Sleep(time.Second)
		unlock(t, h, h)
		told("released IX at /a [d1 ann deploy] #2 after 1m1s: <nil>")
		unlock(t, p.held)
		told("released X at /a/b [cyd] #3 after 1s: <nil>")
	})
}

func TestEventsOfWaitsAndLosses(t *testing.T) {
	observed(t, lock.Config{MaxWaiters: 1}, func(t *testing.T, tree *lock.Tree, told func(...string)) {
		ctx, cancel := context.WithCancel(t.Context())
		h := take(t, tree, "X at /", nil)
		told("granted X at / [] #1 after 0s")
		p := start(func() (*lock.Held, error) { return tree.LockAll(ctx, reqs("X at /b", "S at /a"), by("list")) })
		told("waiting S at /a, X at /b [list]")
		full := wait(ctx, tree, "X at /", by("full"))
		require.ErrorIs(t, full.err, lock.ErrQueueFull)
		told("refused X at / [full]: lock: X at /: too many are waiting")
		cancel()
		p.failed(t)
		told("refused S at /a, X at /b [list]: lock: S at /a, X at /b: given up: context canceled")
		p = wait(t.Context(), tree, "X at /a", by("next"))
		told("waiting X at /a [next]")
		require.NoError(t, tree.Revoke(t.Context(), 1, "please"))
		told()
		require.NoError(t, tree.Break(t.Context(), 1, "ran away"))
		told("released X at / [] #1 after 0s: lock: lost: token 1: ran away", "granted X at /a [next] #2 after 0s")
		require.ErrorIs(t, h.Unlock(t.Context()), lock.ErrLost)
		told()
		require.NoError(t, tree.Revoke(t.Context(), 2, "please"))
		unlock(t, p.held)
		told("released X at /a [next] #2 after 0s: <nil>") // it was asked to, and did
	})
}

func TestEventsOfHolds(t *testing.T) {
	observed(t, lock.Config{}, func(t *testing.T, tree *lock.Tree, told func(...string)) {
		h, err := tree.Try(lock.MustParse("/a"), lock.X)
		require.NoError(t, err)
		told("granted X at /a [] #1 after 0s")
		_, err = tree.Try(lock.Root(), lock.S)
		require.ErrorIs(t, err, lock.ErrConflict)
		told("refused S at / []: lock: conflict")
		require.True(t, h.Unlock())
		require.False(t, h.Unlock())
		told("released X at /a [] #1 after 0s: <nil>")
		h, err = tree.Try(lock.MustParse("/a"), lock.X)
		require.NoError(t, err)
		require.NoError(t, tree.Break(t.Context(), 2, "stuck"))
		require.False(t, h.Unlock())
		told("granted X at /a [] #2 after 0s", "released X at /a [] #2 after 0s: lock: lost: token 2: stuck")
		// A claim that is used again has forgotten that it was broken.
		h, err = tree.Try(lock.MustParse("/a"), lock.X)
		require.NoError(t, err)
		require.True(t, h.Unlock())
		told("granted X at /a [] #3 after 0s", "released X at /a [] #3 after 0s: <nil>")
	})
}

// Bad input and contexts that have ended are the caller's affair: nothing was
// asked of the tree.
func TestObserverIsNotToldOfBadInput(t *testing.T) {
	observed(t, lock.Config{}, func(t *testing.T, tree *lock.Tree, told func(...string)) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		everyCall(ctx, tree)
		_, _ = tree.Try(lock.Path{}, lock.X)
		_, _ = tree.Lock(t.Context(), lock.Request{}, nil)
		told()
	})
}

// A nil function is not called.
func TestObserverWithoutFunctions(t *testing.T) {
	inBubble(t, &lock.Config{Observer: &lock.Observer{}}, func(t *testing.T, tree *lock.Tree) {
		h := take(t, tree, "S at /", nil)
		p := wait(t.Context(), tree, "X at /", nil)
		_, err := tree.Try(lock.Root(), lock.X)
		require.ErrorIs(t, err, lock.ErrConflict)
		_, err = tree.TryLock(t.Context(), req("X at /"), nil)
		require.ErrorIs(t, err, lock.ErrConflict)
		unlock(t, h)
		unlock(t, p.granted(t))
		v, err := tree.Try(lock.Root(), lock.X)
		require.NoError(t, err)
		require.True(t, v.Unlock())
	})
}

// A hook may lock and unlock, what it likes and also what it is told of.
func TestObserverMayLock(t *testing.T) {
	var o lock.Observer
	inBubble(t, &lock.Config{Observer: &o}, func(t *testing.T, tree *lock.Tree) {
		calls := 0
		mine := req("X at /of/the/observer")
		use := func(rs []lock.Request) {
			if rs[0] != mine { // of what it does itself it is told, too
				calls++
				unlock(t, take(t, tree, mine.String(), nil))
			}
		}
		o.Refused = func(e lock.Refused) { use(e.Requests) }
		o.Waiting = func(e lock.Waiting) { use(e.Requests) }
		o.Granted = func(e lock.Granted) { use(e.Requests) }
		o.Released = func(e lock.Released) { use(e.Requests) }
		h := take(t, tree, "X at /a", nil)
		_, err := tree.TryLock(t.Context(), req("X at /a"), nil)
		require.ErrorIs(t, err, lock.ErrConflict)
		p := wait(t.Context(), tree, "X at /a", nil)
		unlock(t, h)
		unlock(t, p.granted(t))
		v, err := tree.Try(lock.Root(), lock.IX)
		require.NoError(t, err)
		require.True(t, v.Unlock())
		require.Equal(t, 8, calls)
	})
}
