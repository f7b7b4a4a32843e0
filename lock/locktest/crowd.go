package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file call from many goroutines at once.

// ledger is where goroutines write what they hold and look for conflicts.
type ledger struct {
	mu    sync.Mutex
	held  map[*lock.Grant][]lock.Request
	fault error // the first one
}

func newLedger() *ledger { return &ledger{held: map[*lock.Grant][]lock.Request{}} }

func (l *ledger) enter(g *lock.Grant, rs []lock.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, has := range l.held {
		if l.fault == nil && other != g && conflict(rs, has) {
			l.fault = fmt.Errorf("%s, token %d, is held together with %s, token %d", rs, g.Token(), has, other.Token())
		}
	}
	l.held[g] = rs
}

func (l *ledger) leave(g *lock.Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, g)
}

// check reports an error of a goroutine, which must not end the test.
func (e *env) check(err error, what string) {
	if err != nil {
		e.Errorf("%s: %v", what, err)
	}
}

func concurrentCallers(e *env) {
	ledger, ctx := newLedger(), e.bounded()
	together(8, func(i int) {
		random := rand.New(rand.NewPCG(e.h.Seed, uint64(i)))
		mode := func() lock.Mode { return lock.Modes[random.IntN(len(lock.Modes))] }
		for range e.attempts {
			rs := []lock.Request{at(mode(), world[random.IntN(len(world))])}
			if random.IntN(3) == 0 {
				rs = append(rs, at(mode(), world[random.IntN(len(world))]))
			}
			acquire := lockAll
			if random.IntN(2) == 0 {
				acquire = tryLock
			}
			g, err := acquire(ctx, e.l, rs, by(fmt.Sprint("goroutine ", i)))
			if errors.Is(err, lock.ErrConflict) {
				continue
			}
			if err != nil {
				e.Errorf("%s: %v", rs, err)
				return
			}
			ledger.enter(g, rs)
			runtime.Gosched()
			if random.IntN(3) == 0 && g.Upgrade(e.Context(), mode()) == nil {
				ledger.enter(g, g.Requests())
			}
			if random.IntN(3) == 0 { // write the lower mode before others can be granted
				ledger.enter(g, lowerAll(g.Requests(), lock.IS))
				e.check(g.Downgrade(e.Context(), lock.IS), "Downgrade to IS")
			}
			ledger.leave(g)
			e.check(g.Unlock(e.Context()), "Unlock")
		}
	})
	e.require(ledger.fault, "exclusion")
	e.idle()
}

func anyGoroutine(e *env) {
	for range e.attempts {
		g := e.take("first", at(lock.X, "/a"))
		var next atomic.Pointer[lock.Grant]
		together(8, func(int) {
			e.check(g.Unlock(e.Context()), "Unlock")
			held, err := e.l.TryLock(e.Context(), at(lock.X, "/a"), by("next"))
			switch {
			case err == nil && !next.CompareAndSwap(nil, held):
				e.Errorf("X at /a is granted twice while a released grant is unlocked")
			case err != nil && !errors.Is(err, lock.ErrConflict):
				e.Errorf("TryLock: %v", err)
			}
		})
		if next.Load() == nil {
			e.Fatal("the lock was released, and no try was granted")
		}
		_, err := e.l.TryLock(e.Context(), at(lock.X, "/a"), nil)
		e.requireIs(err, lock.ErrConflict, "TryLock beside the next holder")
		e.unlock(next.Load())
		e.idle()
	}
}

func concurrentTokens(e *env) {
	var last atomic.Uint64
	ctx := e.bounded()
	together(8, func(i int) {
		for range e.attempts {
			g, err := e.l.Lock(ctx, at(lock.X, "/a"), by(fmt.Sprint("goroutine ", i)))
			if err != nil {
				e.Errorf("Lock: %v", err)
				return
			}
			if before := last.Swap(uint64(g.Token())); before >= uint64(g.Token()) {
				e.Errorf("token %d is granted after %d", g.Token(), before)
			}
			e.check(g.Unlock(e.Context()), "Unlock")
		}
	})
}

// announced returns what the holder of a broken grant has not been notified of.
func announced(g *lock.Grant, work context.Context) error {
	if err := g.Check(); !errors.Is(err, lock.ErrLost) {
		return fmt.Errorf("the check of the broken grant returns %v", err)
	}
	if !closed(g.Lost()) {
		return errors.New("the channel Lost of the broken grant is not closed")
	}
	if err := context.Cause(work); !errors.Is(err, lock.ErrLost) {
		return fmt.Errorf("the cause of the context of the broken grant is %v", err)
	}
	return nil
}

func announcedFirst(e *env) {
	ctx := e.bounded()
	for range e.attempts {
		g := e.take("holder", at(lock.X, "/a"))
		work, cancel := g.Context(e.Context())
		together(4, func(i int) {
			var next *lock.Grant
			var err error
			switch i {
			case 0:
				e.check(e.l.Break(e.Context(), g.Token(), "an operator"), "Break")
				return
			case 1, 2:
				next, err = e.l.Lock(ctx, at(lock.X, "/"), by("next"))
			default:
				for next == nil && (err == nil || errors.Is(err, lock.ErrConflict)) {
					next, err = e.l.TryLock(ctx, at(lock.IS, "/a/b"), by("try"))
				}
			}
			if err != nil {
				e.Errorf("the next holder: %v", err)
				return
			}
			e.check(announced(g, work), "the next holder")
			e.check(next.Unlock(e.Context()), "Unlock")
		})
		cancel()
		if e.Failed() {
			return
		}
	}
	e.idle()
}

// meet does two things in one order, in the other, or at once.
func meet(round int, a, b func()) {
	switch round % 3 {
	case 0:
		a()
		b()
	case 1:
		b()
		a()
	default:
		together(2, func(i int) { []func(){a, b}[i]() })
	}
}

func cancelledAsGranted(e *env) {
	for round := range e.attempts {
		g := e.take("holder", at(lock.X, "/a"))
		c, behind := e.queue("waiting", at(lock.X, "/a")), e.queue("behind", at(lock.S, "/a"))
		meet(round, func() { c.cancel(errCancelled) }, func() { e.check(g.Unlock(e.Context()), "Unlock") })
		e.require(e.wait(c), "after the cancellation")
		switch {
		case c.err == nil:
			e.require(c.grant.Check(), "the grant")
			if behind.returned() {
				e.Fatal("two conflicting waits are granted")
			}
			e.unlock(c.grant)
		case !errors.Is(c.err, errCancelled) || c.grant != nil:
			e.Fatalf("a wait that is cancelled as it is granted: %v, %v", c.grant, c.err)
		}
		e.unlock(e.granted(behind))
		e.idle()
		e.calls = nil
	}
}

func oneCancelled(e *env) {
	o := &lock.Options{ID: "deploy", Owner: "deploy"}
	wait := func(ctx context.Context) (*lock.Grant, error) { return e.l.Lock(ctx, at(lock.X, "/a"), o) }
	for round := range e.attempts {
		g := e.take("holder", at(lock.X, "/a"))
		leaving := []*call{e.begin("Lock", wait)}
		e.require(e.waits(leaving[0], "deploy"), "Lock")
		// The suite cannot find out whether these calls have joined the first one.
		// The one that stays must be granted in either case.
		staying := e.begin("Lock", wait)
		for range 3 {
			leaving = append(leaving, e.begin("Lock", wait))
		}
		for range 10 {
			runtime.Gosched()
		}
		meet(round, func() {
			for _, c := range leaving {
				c.cancel(errCancelled)
			}
		}, func() { e.check(g.Unlock(e.Context()), "Unlock") })
		for _, c := range leaving {
			e.require(e.wait(c), "after the cancellation")
		}
		held := e.granted(staying)
		_, err := e.l.TryLock(e.Context(), at(lock.X, "/a"), nil)
		e.requireIs(err, lock.ErrConflict, "TryLock beside the grant")
		for _, c := range leaving {
			if c.err == nil && c.grant.Token() != held.Token() {
				e.Fatalf("one id has tokens %d and %d", c.grant.Token(), held.Token())
			}
		}
		e.unlock(held)
		e.idle()
		e.calls = nil
	}
}

func concurrentIDs(e *env) {
	ctx := e.bounded()
	for i := range e.attempts {
		o := &lock.Options{ID: fmt.Sprint("deploy-", i)}
		var got [8]*lock.Grant
		together(len(got), func(i int) {
			acquire := lockAll
			if i%2 == 0 {
				acquire = tryLock
			}
			var err error
			got[i], err = acquire(ctx, e.l, []lock.Request{at(lock.X, "/a")}, o)
			e.check(err, "an id, repeated at once")
		})
		if e.Failed() {
			return
		}
		for _, g := range got {
			if g.Token() != got[0].Token() {
				e.Fatalf("one id has tokens %d and %d", g.Token(), got[0].Token())
			}
		}
		e.unlock(got[0])
		e.idle()
	}
}
