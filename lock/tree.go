package lock

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/tee"
)

// Tree is the [Locker] of one process. The zero Tree is ready to use with default
// settings. An idle Tree holds no node and no goroutine. It is safe for concurrent
// use and must not be copied after its first use. One tree serves one system, or
// several systems that are its first segments. Trees share nothing.
type Tree struct {
	config Config // never changes after New

	// mu is held while a call looks at the requests that it concerns: all of them
	// for Revoke and Break. Snapshot releases it now and then. It is never held across
	// a wait, a channel operation or a callback.
	mu      sync.Mutex
	trie    trie
	ids     map[string]*claim // of claims with an id
	arrival uint64            // of the latest claim
	token   Token             // of the latest grant
	held    int               // claims
	waiting int
	all     claim     // the anchor of a ring of all claims in the order of their arrival
	base    time.Time // claims count their time from here
	spare   []*claim  // for Try, at most maxSpare
}

// Config has the settings of a [Tree]. Nil and the zero Config mean the defaults.
type Config struct {
	// FirstToken is the lowest token that the tree grants. Default, 0: 1. A service that
	// restarts passes a number greater than every token that it granted before. This
	// includes tokens of holders that have written nothing, which no [Fence] has seen.
	// Store a bound ahead of [Snapshot].LastToken and raise it in time, or count the
	// restarts in the upper bits: restarts<<32. The maximum is 1<<63 - 1.
	FirstToken Token
	// MaxWaiters is how many acquisitions may wait at once. One more is refused with
	// [ErrQueueFull]. Default, 0: no limit.
	MaxWaiters int
	// MaxHolders is how many holders a [ConflictError] lists. Default, 0: 16.
	MaxHolders int
	// Observer receives the events of the tree. Default: no functions.
	Observer Observer
}

const defaultMaxHolders = 16

// New returns a tree with these settings. The error is [ErrInvalid] if a limit is
// negative or FirstToken is above its maximum.
func New(config *Config) (*Tree, error) {
	t := new(Tree)
	if config == nil {
		return t, nil
	}
	switch c := config; {
	case c.MaxWaiters < 0:
		return nil, &InvalidError{"MaxWaiters", fmt.Sprint(c.MaxWaiters), "is negative"}
	case c.MaxHolders < 0:
		return nil, &InvalidError{"MaxHolders", fmt.Sprint(c.MaxHolders), "is negative"}
	case c.FirstToken > math.MaxInt64:
		return nil, &InvalidError{"FirstToken", fmt.Sprint(c.FirstToken), "is above 1<<63 - 1"}
	}
	t.config = *config
	t.token = max(config.FirstToken, 1) - 1
	return t, nil
}

// Must is [New] for settings that are constant. It panics where New returns an
// error.
func Must(config *Config) *Tree {
	t, err := New(config)
	if err != nil {
		panic(err.Error())
	}
	return t
}

var _ Locker = (*Tree)(nil)

// TryLock implements [Locker].
func (t *Tree) TryLock(ctx context.Context, r Request, o *Options) (*Grant, error) {
	return t.acquire(ctx, []Request{r}, o, false)
}

// Lock implements [Locker].
func (t *Tree) Lock(ctx context.Context, r Request, o *Options) (*Grant, error) {
	return t.acquire(ctx, []Request{r}, o, true)
}

// TryLockAll implements [Locker].
func (t *Tree) TryLockAll(ctx context.Context, rs []Request, o *Options) (*Grant, error) {
	return t.acquire(ctx, rs, o, false)
}

// LockAll implements [Locker].
func (t *Tree) LockAll(ctx context.Context, rs []Request, o *Options) (*Grant, error) {
	return t.acquire(ctx, rs, o, true)
}

func (t *Tree) acquire(ctx context.Context, rs []Request, o *Options, wait bool) (*Grant, error) {
	rs, err := Normalize(rs)
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		return nil, err
	}
	o = cmp.Or(o, new(Options))
	if ctx.Err() != nil {
		return nil, &ConflictError{Requests: rs, Err: Ended(ctx)}
	}
	t.mu.Lock()
	if c := t.ids[o.ID]; c != nil && c.breaking == nil { // a repeated acquisition
		switch {
		case !slices.Equal(c.asked, rs), !c.covers(rs): // a claim that waits has the modes that it wants
			return nil, t.refuse(ctx, rs, o, ErrIDInUse, c)
		case c.state == waiting && !wait:
			return nil, t.refuse(ctx, rs, o, ErrConflict, c)
		}
		return t.wait(ctx, c, nil) // unlocks
	}
	free := t.free(rs)
	switch {
	case !free && !wait:
		return nil, t.refuse(ctx, rs, o, ErrConflict, nil)
	case !free && t.config.MaxWaiters > 0 && t.waiting >= t.config.MaxWaiters:
		return nil, t.refuse(ctx, rs, o, ErrQueueFull, nil)
	}
	c := t.enter(rs, o)
	if free {
		t.grant(c)
		c.granted = atOnce
		return t.wait(ctx, c, t.grantedEvent(c, 0, 0)) // unlocks
	}
	c.state, c.granted = waiting, make(chan struct{})
	t.waiting++
	return t.wait(ctx, c, t.waitingEvent(c)) // unlocks
}

// atOnce is the closed channel of all claims that did not wait.
var atOnce = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// free reports whether no present request conflicts with these.
func (t *Tree) free(rs []Request) bool {
	for _, r := range rs {
		if _, free := t.trie.find(r.Path.key(), conflicting[r.Mode]); !free {
			return false
		}
	}
	return true
}

// enter makes the claim of normalized requests and puts it into the trie as the
// latest. The caller sets whether it is held or waits.
func (t *Tree) enter(rs []Request, o *Options) *claim {
	c := &claim{tree: t, options: *o, asked: rs, entries: make([]entry, len(rs))}
	c.grant, c.lose = NewGrant(c)
	t.arrive(c)
	// Look for conflicts of all requests before the first one enters the trie:
	// requests of one list never conflict with each other.
	for i, r := range rs {
		if _, free := t.trie.find(r.Path.key(), conflicting[r.Mode]); !free {
			c.entries[i].blocked = true
			c.blocked++
		}
	}
	for i, r := range rs {
		at, _ := t.trie.find(r.Path.key(), filter{})
		c.entries[i].claim, c.entries[i].Request = c, r
		t.trie.insert(at, &c.entries[i])
	}
	if o.ID != "" {
		if t.ids == nil {
			t.ids = map[string]*claim{}
		}
		t.ids[o.ID] = c
	}
	return c
}

// arrive makes a claim the latest one.
func (t *Tree) arrive(c *claim) {
	if t.all.newer == nil {
		t.all.older, t.all.newer = &t.all, &t.all
	}
	t.arrival++
	c.arrival, c.since = t.arrival, t.clock()
	c.link(&t.all)
}

// wait returns the grant of the claim when it is granted, or withdraws the claim.
// The tree is locked; wait unlocks it. The event is that of a new claim. The claim may be
// held already.
func (t *Tree) wait(ctx context.Context, c *claim, e event) (*Grant, error) {
	c.calls++
	t.mu.Unlock()
	// This call leaves the queue however it ends, also by a panic or Goexit in a
	// method of the context or in the observer.
	left := false
	defer func() {
		if !left {
			after, _ := t.leave(c, context.Canceled)
			after.run(context.WithoutCancel(ctx))
		}
	}()
	if e != nil {
		e(ctx)
	}
	granted := false
	select {
	case <-c.granted:
		granted = true
	case <-ctx.Done():
	}
	// A context whose Done is closed while its Err is nil breaks its contract and
	// must not get the lock, hence the test of granted.
	if !granted || ctx.Err() != nil {
		// Bad schedule: the grant and the end of the context come together, and a
		// caller that no longer waits gets the lock. So the context wins. A grant
		// that came meanwhile is released, unless another call has it too.
		why := Ended(ctx) // can panic; the call has not left the queue then
		left = true
		after, refused := t.leave(c, why)
		defer t.observeRefused(ctx, refused, refused.Requests, &c.options) // also if another event panics
		after.run(ctx)
		return nil, refused
	}
	t.mu.Lock()
	c.calls--
	c.returned = true
	left = true
	t.mu.Unlock()
	return c.grant, nil
}

// leave ends one call's wait for a claim. The last call that leaves withdraws the
// claim, unless another call has returned its grant.
func (t *Tree) leave(c *claim, why error) (effects, *ConflictError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	refused := t.refusal(c.asked, why, c)
	c.calls--
	if c.calls > 0 || c.returned || c.state == gone {
		return effects{}, refused
	}
	return t.release(c), refused
}

// grant makes a claim without a blocked entry held. The tree is locked.
func (t *Tree) grant(c *claim) {
	t.token++
	t.held++
	c.state, c.token = held, t.token
}

// clock returns the time since the tree's first request. It is monotonic and
// cheaper than the time of day.
func (t *Tree) clock() time.Duration {
	if t.base.IsZero() {
		t.base = time.Now()
	}
	return time.Since(t.base)
}

// effects is what a call does after it has unlocked the tree.
type effects struct {
	granted []*claim // in the order of their arrival
	events  []event
}

// run wakes the waiting calls and calls the observer.
func (after *effects) run(ctx context.Context) {
	for _, c := range after.granted {
		close(c.granted)
	}
	tee.Each(after.events, func(e event) { e(ctx) })
}

func (after *effects) add(e event) {
	if e != nil {
		after.events = append(after.events, e)
	}
}

// release takes a present claim out of the tree and grants the claims that waited
// for it alone. The tree is locked; the caller runs the effects.
func (t *Tree) release(c *claim) (after effects) {
	if c.state == held {
		t.held--
		after.add(t.releasedEvent(c))
	} else {
		t.waiting--
	}
	if id := c.options.ID; id != "" && t.ids[id] == c {
		delete(t.ids, id)
		if len(t.ids) == 0 {
			t.ids = nil // a Go map does not shrink
		}
	}
	c.state = gone
	c.unlink()
	for i := range c.entries {
		e := &c.entries[i]
		key, m := e.Path.key(), e.Mode
		// One that is blocked behind another one of its list blocks nothing that the
		// other one does not block.
		behind := e.blocked && e.node.lists[m].firstBlocked != e
		t.trie.remove(e)
		if !behind {
			t.recheckBlocked(key, m, &after)
		}
	}
	t.grantReady(&after)
	if c.grant == nil {
		t.recycle(c)
	}
	return after
}

// recheckBlocked looks again at the blocked entries that conflict with mode m at a path,
// where an entry has gone or has become weaker. It collects the claims that have no
// blocked entry left.
func (t *Tree) recheckBlocked(key string, m Mode, after *effects) {
	if t.waiting == 0 {
		return
	}
	f := conflicting[m]
	f.onlyBlocked = true
	for l := range t.trie.visitLists(key, f) {
		for e := l.firstBlocked; e != nil && !t.trie.isBlocked(e); e = l.firstBlocked {
			e.unblock()
			if e.claim.blocked--; e.claim.blocked == 0 {
				after.granted = append(after.granted, e.claim)
			}
		}
	}
}

// grantReady grants the collected claims in the order of their arrival. No two of
// them conflict: the earlier would block the later.
func (t *Tree) grantReady(after *effects) {
	slices.SortFunc(after.granted, func(a, b *claim) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, c := range after.granted {
		now := t.clock()
		waited := now - c.since
		c.since = now
		t.waiting--
		t.grant(c)
		after.add(t.grantedEvent(c, waited, 0))
	}
}
