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

// recorder writes down the events. At every event it uses the tree, which proves
// that no lock is held.
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
	options := strings.Trim(o.ID+" "+o.Owner+" "+o.Reason, " ")
	r.log = append(r.log, fmt.Sprintf("%s %s [%s]%s", kind, strings.Join(texts, ", "), options, more))
}

// take returns the events since the last call.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

func recording(config lock.Config) (*lock.Tree, *recorder) {
	r := new(recorder)
	config.Observer = lock.Observer{
		Granted: func(_ context.Context, e lock.Acquisition) {
			r.note("granted", e.Options, e.Requests, fmt.Sprintf(" #%d after %v", e.Token, e.Waited))
		},
		Refused: func(_ context.Context, e lock.Refused) {
			r.note("refused", e.Options, e.Requests, ": "+strings.Split(e.Err.Error(), ";")[0])
		},
		Waiting: func(_ context.Context, e lock.Waiting) { r.note("waiting", e.Options, e.Requests, "") },
		Released: func(_ context.Context, e lock.Released) {
			r.note("released", e.Options, e.Requests, fmt.Sprintf(" #%d after %v: %v", e.Token, e.Held, e.Err))
		},
	}
	r.tree = lock.Must(&config)
	return r.tree, r
}

func observed(t *testing.T, config lock.Config, f func(t *testing.T, tree *lock.Tree, events func(...string))) {
	synctest.Test(t, func(t *testing.T) {
		tree, r := recording(config)
		f(t, tree, func(want ...string) {
			t.Helper()
			require.Equal(t, want, r.take())
		})
		synctest.Wait()
		require.Empty(t, r.take())
		idle(t, tree)
	})
}

func TestEveryEventHappensOnce(t *testing.T) {
	ctx := context.Background()
	ann := &lock.Options{ID: "d1", Owner: "ann", Reason: "deploy"}
	observed(t, lock.Config{}, func(t *testing.T, tree *lock.Tree, events func(...string)) {
		h := take(t, tree, "IX at /a", ann)
		events("granted IX at /a [d1 ann deploy] #1 after 0s")
		require.Same(t, h, take(t, tree, "IX at /a", ann))
		events() // a repeated acquisition is not an event
		_, err := tree.TryLock(ctx, req("X at /"), by("bob"))
		require.Error(t, err)
		events("refused X at / [bob]: lock: X at /: conflict")
		_, err = tree.TryLock(ctx, req("IX at /"), ann)
		require.Error(t, err)
		events("refused IX at / [d1 ann deploy]: lock: IX at /: the id is in use for other requests")
		time.Sleep(time.Second)
		require.NoError(t, h.Upgrade(ctx, lock.X))
		events("granted X at /a [d1 ann deploy] #2 after 0s")
		require.NoError(t, h.Upgrade(ctx, lock.S))
		events() // nothing was raised
		p := wait(ctx, tree, "X at /a/b", by("cyd"))
		events("waiting X at /a/b [cyd]")
		require.NoError(t, h.Upgrade(ctx, lock.X))
		events() // an upgrade that raises nothing is not refused
		time.Sleep(time.Minute)
		require.NoError(t, h.Downgrade(ctx, lock.SIX))
		events()
		require.NoError(t, h.Downgrade(ctx, lock.IX))
		events("granted X at /a/b [cyd] #3 after 1m0s")
		holders, err := tree.Holders(ctx, lock.MustParse("/a/b"), lock.At)
		require.NoError(t, err)
		require.True(t, time.Now().Equal(holders[0].Since), "Since is the time of the grant, not of the call")
		time.Sleep(time.Second)
		unlock(t, h, h)
		events("released IX at /a [d1 ann deploy] #2 after 1m1s: <nil>")
		unlock(t, p.grant)
		events("released X at /a/b [cyd] #3 after 1s: <nil>")
	})
}

func TestEventsOfWaitsAndLosses(t *testing.T) {
	observed(t, lock.Config{MaxWaiters: 1}, func(t *testing.T, tree *lock.Tree, events func(...string)) {
		ctx, cancel := context.WithCancel(t.Context())
		h := take(t, tree, "X at /", nil)
		events("granted X at / [] #1 after 0s")
		p := start(func() (*lock.Grant, error) { return tree.LockAll(ctx, reqs("X at /b", "S at /a"), by("list")) })
		events("waiting S at /a, X at /b [list]")
		full := wait(ctx, tree, "X at /", by("full"))
		require.ErrorIs(t, full.err, lock.ErrQueueFull)
		events("refused X at / [full]: lock: X at /: the queue is full")
		cancel()
		p.failed(t)
		events("refused S at /a, X at /b [list]: lock: S at /a, X at /b: the context has ended: context canceled")
		p = wait(t.Context(), tree, "X at /a", by("next"))
		events("waiting X at /a [next]")
		require.NoError(t, tree.Revoke(t.Context(), 1, "please"))
		events()
		require.NoError(t, tree.Break(t.Context(), 1, "ran away"))
		events("released X at / [] #1 after 0s: lock: lost: token 1: ran away", "granted X at /a [next] #2 after 0s")
		require.ErrorIs(t, h.Unlock(t.Context()), lock.ErrLost)
		events()
		require.NoError(t, tree.Revoke(t.Context(), 2, "please"))
		unlock(t, p.grant)
		events("released X at /a [next] #2 after 0s: <nil>") // a revoked grant that is unlocked is not lost
	})
}

func TestEventsOfHandles(t *testing.T) {
	observed(t, lock.Config{}, func(t *testing.T, tree *lock.Tree, events func(...string)) {
		h, err := tree.Try(lock.MustParse("/a"), lock.X)
		require.NoError(t, err)
		events("granted X at /a [] #1 after 0s")
		_, err = tree.Try(lock.Root(), lock.S)
		require.ErrorIs(t, err, lock.ErrConflict)
		events("refused S at / []: lock: conflict")
		require.True(t, h.Unlock())
		require.False(t, h.Unlock())
		events("released X at /a [] #1 after 0s: <nil>")
		h, err = tree.Try(lock.MustParse("/a"), lock.X)
		require.NoError(t, err)
		require.NoError(t, tree.Break(t.Context(), 2, "stuck"))
		require.False(t, h.Unlock())
		events("granted X at /a [] #2 after 0s", "released X at /a [] #2 after 0s: lock: lost: token 2: stuck")
		// A claim that is used again does not keep the loss.
		h, err = tree.Try(lock.MustParse("/a"), lock.X)
		require.NoError(t, err)
		require.True(t, h.Unlock())
		events("granted X at /a [] #3 after 0s", "released X at /a [] #3 after 0s: <nil>")
	})
}

// Bad input and a context that has ended before the call are not events.
func TestBadInputIsNoEvent(t *testing.T) {
	observed(t, lock.Config{}, func(t *testing.T, tree *lock.Tree, events func(...string)) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		everyCall(ctx, tree)
		_, _ = tree.Try(lock.Path{}, lock.X)
		_, _ = tree.Lock(t.Context(), lock.Request{}, nil)
		events()
	})
}

// A Waiting event happens once for an acquisition. Its requests are a copy.
func TestWaitingEvent(t *testing.T) {
	var events []lock.Waiting
	inBubble(t, &lock.Config{Observer: lock.Observer{Waiting: func(_ context.Context, e lock.Waiting) {
		events = append(events, e)
		e.Requests[0] = req("IS at /z") // does not change the acquisition
	}}}, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "X at /a/b", by("holder"))
		o := &lock.Options{ID: "one"}
		first, second := wait(t.Context(), tree, "X at /a", o), wait(t.Context(), tree, "X at /a", o)
		require.Len(t, events, 1)
		unlock(t, holder)
		require.Same(t, first.granted(t), second.granted(t))
		unlock(t, first.grant)
	})
}

// The context of an event is that of the call that caused it.
func TestObserverGetsTheContext(t *testing.T) {
	type key struct{}
	named := func(name string) context.Context { return context.WithValue(context.Background(), key{}, name) }
	var got []string
	note := func(ctx context.Context, event string) { got = append(got, fmt.Sprint(event, " ", ctx.Value(key{}))) }
	tree := lock.Must(&lock.Config{Observer: lock.Observer{
		Granted:  func(ctx context.Context, _ lock.Acquisition) { note(ctx, "granted") },
		Refused:  func(ctx context.Context, _ lock.Refused) { note(ctx, "refused") },
		Released: func(ctx context.Context, _ lock.Released) { note(ctx, "released") },
	}})
	g, err := tree.TryLock(named("try"), req("S at /a"), nil)
	require.NoError(t, err)
	_, err = tree.TryLock(named("second"), req("X at /a"), nil)
	require.Error(t, err)
	require.NoError(t, g.Upgrade(named("upgrade"), lock.X))
	require.NoError(t, g.Unlock(named("unlock")))
	h, err := tree.Try(lock.Root(), lock.X)
	require.NoError(t, err)
	require.NoError(t, tree.Break(named("break"), h.Token(), ""))
	require.Equal(t, []string{
		"granted try", "refused second", "granted upgrade", "released unlock", "granted <nil>", "released break",
	}, got)
}

// An observer that adds up the grants distinguishes upgrades.
func TestObserverDistinguishesUpgrades(t *testing.T) {
	held := 0
	var tokens [][2]lock.Token
	tree := lock.Must(&lock.Config{Observer: lock.Observer{
		Granted: func(_ context.Context, e lock.Acquisition) {
			if e.Replaces == 0 {
				held++
			}
			tokens = append(tokens, [2]lock.Token{e.Replaces, e.Token})
		},
		Released: func(context.Context, lock.Released) { held-- },
	}})
	ctx := t.Context()
	g := take(t, tree, "S at /a", nil)
	require.NoError(t, g.Upgrade(ctx, lock.SIX))
	h, err := tree.Try(lock.MustParse("/b"), lock.X)
	require.NoError(t, err)
	require.NoError(t, g.Upgrade(ctx, lock.X))
	require.Equal(t, 2, held)
	require.Equal(t, [][2]lock.Token{{0, 1}, {1, 2}, {0, 3}, {2, 4}}, tokens)
	require.True(t, h.Unlock())
	unlock(t, g)
	require.Zero(t, held)
}

// A cancelled wait is reported as Refused, also if its end grants a request and the observer
// panics at that.
func TestRefusedAfterAPanic(t *testing.T) {
	for name, way := range waysOut {
		t.Run(name, func(t *testing.T) {
			var o lock.Observer
			inBubble(t, &lock.Config{Observer: forward(&o)}, func(t *testing.T, tree *lock.Tree) {
				holder := take(t, tree, "S at /a", nil)
				ctx, cancel := context.WithCancel(t.Context())
				var got any
				go func() { got = ends(func() { _, _ = tree.Lock(ctx, req("X at /a"), by("waits")) }) }()
				synctest.Wait()
				behind := wait(t.Context(), tree, "S at /a", nil)
				behind.waits(t)
				var refused []string
				o.Granted = func(context.Context, lock.Acquisition) { way.do() }
				o.Refused = func(_ context.Context, e lock.Refused) { refused = append(refused, e.Owner) }
				cancel()
				synctest.Wait()
				require.Equal(t, way.want, got)
				require.Equal(t, []string{"waits"}, refused)
				unlock(t, holder, behind.granted(t))
			})
		})
	}
}

// Every event of a call is reported, also if the observer panics at each of them.
func TestObserverPanicsAndGetsEveryEvent(t *testing.T) {
	for name, way := range waysOut {
		t.Run(name, func(t *testing.T) {
			var got []string
			out := func(what string, token lock.Token) {
				got = append(got, fmt.Sprint(what, " ", token))
				if len(got) > 1 { // not the first grant, whose caller needs it
					way.do()
				}
			}
			inBubble(t, &lock.Config{Observer: lock.Observer{
				Granted:  func(_ context.Context, e lock.Acquisition) { out("granted", e.Token) },
				Released: func(_ context.Context, e lock.Released) { out("released", e.Token) },
			}}, func(t *testing.T, tree *lock.Tree) {
				h := take(t, tree, "S at /", nil)
				a, b := wait(t.Context(), tree, "X at /a", nil), wait(t.Context(), tree, "X at /b", nil)
				require.Equal(t, way.want, ends(func() { _ = h.Unlock(t.Context()) }))
				require.Equal(t, []string{"granted 1", "released 1", "granted 2", "granted 3"}, got)
				ends(func() { unlock(t, a.granted(t)) })
				ends(func() { unlock(t, b.granted(t)) })
				require.Len(t, got, 6)
			})
		})
	}
}

// If the observer panics, the grant stays with another call of the same id that has it.
func TestObserverPanicsAndAnotherCallHasTheGrant(t *testing.T) {
	o := &lock.Options{ID: "both"}
	var tree *lock.Tree
	var other *lock.Grant
	calls := 0
	tree = lock.Must(&lock.Config{Observer: lock.Observer{Granted: func(ctx context.Context, _ lock.Acquisition) {
		if calls++; calls == 1 {
			var err error
			other, err = tree.TryLock(ctx, req("X at /a"), o)
			require.NoError(t, err)
			panic("the observer")
		}
	}}})
	require.Panics(t, func() { _, _ = tree.TryLock(t.Context(), req("X at /a"), o) })
	require.NoError(t, other.Check())
	unlock(t, other)
	unlock(t, take(t, tree, "X at /", nil))
}
