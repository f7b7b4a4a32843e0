package lock

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Tree is the [Locker] in process. The zero Tree is ready, and holds nothing:
// no node, no goroutine. It is safe for concurrent use and must not be copied
// after its first use. One tree serves one system, or many that are its first
// segments: trees share nothing.
type Tree struct {
	config Config // never changes after NewTree

	// mu is held for as long as it takes to look at the requests that a call is
	// about (all of them for Snapshot, Revoke and Break): never across a wait, a
	// channel operation or a callback.
	mu      sync.Mutex
	trie    trie
	ids     map[string]*claim // of claims with an id
	arrival uint64            // of the latest claim
	token   Token             // of the latest grant
	held    int               // claims
	waiting int
	base    time.Time // what claims count their time from
	spare   *claim    // of Try, at most maxSpare
	spares  int
}

// Config is for [NewTree]. Nil, and the zero Config, mean the defaults.
type Config struct {
	// FirstToken is the least token that the tree grants. Default: 1. A service
	// that restarts passes one that is greater than every token that was granted
	// before, also to holders that have written nothing so far; a [Fence] knows
	// only those that have. Keep a bound ahead of [Snapshot].LastToken in a store
	// and raise it in time, or count the restarts in the upper bits: restarts<<32.
	FirstToken Token
	// MaxWaiters is how many acquisitions may wait at once; one more is
	// [ErrQueueFull]. Default, 0: no limit.
	MaxWaiters int
	// MaxHolders is how many holders a [ConflictError] names. Default: 16.
	MaxHolders int
	// Observer is told what the tree does. Default: nobody.
	Observer *Observer
}

const defaultMaxHolders = 16

// NewTree returns a tree with settings of its own. It panics if a number in the
// configuration is negative, or FirstToken leaves no room to count.
func NewTree(c *Config) *Tree {
	t := new(Tree)
	if c == nil {
		return t
	}
	if c.MaxWaiters < 0 || c.MaxHolders < 0 {
		panic("lock: NewTree: a limit is negative")
	}
	if c.FirstToken > math.MaxInt64 {
		panic("lock: NewTree: FirstToken " + strconv.FormatUint(uint64(c.FirstToken), 10) + " leaves no room to count")
	}
	t.config = *c
	t.token = max(c.FirstToken, 1) - 1
	return t
}

var _ Locker = (*Tree)(nil)

// TryLock implements [Locker].
func (t *Tree) TryLock(ctx context.Context, r Request, o *Options) (*Held, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return t.acquire(ctx, []Request{r}, o, false)
}

// Lock implements [Locker].
func (t *Tree) Lock(ctx context.Context, r Request, o *Options) (*Held, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return t.acquire(ctx, []Request{r}, o, true)
}

// TryLockAll implements [Locker].
func (t *Tree) TryLockAll(ctx context.Context, rs []Request, o *Options) (*Held, error) {
	rs, err := Normalize(rs)
	if err != nil {
		return nil, err
	}
	return t.acquire(ctx, rs, o, false)
}

// LockAll implements [Locker].
func (t *Tree) LockAll(ctx context.Context, rs []Request, o *Options) (*Held, error) {
	rs, err := Normalize(rs)
	if err != nil {
		return nil, err
	}
	return t.acquire(ctx, rs, o, true)
}

// acquire is all four. The requests are normalized.
func (t *Tree) acquire(ctx context.Context, rs []Request, o *Options, wait bool) (*Held, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o == nil {
		o = new(Options)
	}
	if ctx.Err() != nil {
		return nil, &ConflictError{Requests: slices.Clone(rs), Err: Ended(ctx)}
	}
	t.mu.Lock()
	if o.ID != "" {
		if c := t.ids[o.ID]; c != nil && !c.leaving {
			return t.join(ctx, c, rs, o, wait) // unlocks
		}
	}
	free := true
	var at place
	for i := 0; free && i < len(rs); i++ {
		var conflict bool
		at, conflict = t.trie.find(rs[i].Path.key(), rs[i].Mode)
		free = !conflict
	}
	switch {
	case !free && !wait && len(rs) == 1:
		return nil, t.refuseAt(at.node, rs, o)
	case !free && !wait:
		return nil, t.refuse(rs, o, ErrConflict, nil)
	case !free && t.config.MaxWaiters > 0 && t.waiting >= t.config.MaxWaiters:
		return nil, t.refuse(rs, o, ErrQueueFull, nil)
	}
	c := t.enter(rs, o)
	if free {
		t.grant(c)
		c.handles++
		event := t.granted(c, 0)
		t.mu.Unlock()
		t.deliver(event, c.held)
		return c.held, nil
	}
	c.state, c.granted, c.waiters = waiting, make(chan struct{}), 1
	t.waiting++
	return t.wait(ctx, c, t.waitingEvent(c)) // unlocks
}

// deliver tells the observer of a grant that did not wait. If that panics, the
// caller never gets the handle, and nobody else could release it.
func (t *Tree) deliver(event *Granted, grant interface{ unlock() }) {
	if event == nil {
		return
	}
	told := false
	defer func() {
		if !told {
			grant.unlock()
		}
	}()
	t.config.Observer.Granted(*event)
	told = true
}

// enter makes the claim of normalized requests and puts it into the trie, where
// it is the latest. Whether it is held or waits is said by the caller.
func (t *Tree) enter(rs []Request, o *Options) *claim {
	c := &claim{tree: t, options: *o}
	c.asked = append(c.ask[:0], rs...)
	c.held, c.lose = NewHeld(c)
	c.entries = c.one[:]
	if len(rs) > 1 {
		c.entries = make([]entry, len(rs))
	}
	t.arrival++
	c.arrival, c.since = t.arrival, t.clock()
	// All are counted before the first is entered: they never conflict with
	// each other.
	for _, r := range rs {
		t.trie.root.visit(r.Path.key(), r.Mode, func(*entry) bool { c.blockers++; return true })
	}
	for i, r := range rs {
		key := r.Path.key()
		at, _ := t.trie.find(key, 0)
		c.entries[i].claim = c
		t.trie.insert(at, key, &c.entries[i], r.Mode)
	}
	if o.ID != "" {
		if t.ids == nil {
			t.ids = map[string]*claim{}
		}
		t.ids[o.ID] = c
	}
	return c
}

// join is a repeated acquisition. The tree is locked; join unlocks it.
func (t *Tree) join(ctx context.Context, c *claim, rs []Request, o *Options, wait bool) (*Held, error) {
	switch {
	case !slices.Equal(c.asked, rs), c.state == held && !c.covers(rs):
		return nil, t.refuse(rs, o, ErrIDInUse, c)
	case c.state == held:
		c.handles++
		t.mu.Unlock()
		return c.held, nil
	case !wait:
		return nil, t.refuse(rs, o, ErrConflict, c)
	}
	c.waiters++
	return t.wait(ctx, c, nil) // unlocks
}

// wait returns the claim's handle when it is granted, or withdraws it. The tree
// is locked; wait unlocks it, and tells the observer of a new claim.
func (t *Tree) wait(ctx context.Context, c *claim, event *Waiting) (*Held, error) {
	t.mu.Unlock()
	// However this call ends, also by a panic or Goexit in the context's
	// methods, it leaves its place in the queue.
	left := false
	defer func() {
		if !left {
			done, _ := t.leave(c, context.Canceled)
			t.finish(done)
		}
	}()
	if event != nil {
		t.config.Observer.Waiting(*event)
	}
	granted := false
	select {
	case <-c.granted:
		granted = true
	case <-ctx.Done():
	}
	// Granted is asked too: a context whose Done is closed while its Err is nil
	// breaks its contract, and must not get a lock for it.
	if !granted || ctx.Err() != nil {
		// Bad schedule: the grant and the end of the context come together, and
		// the caller, who has given up, is told that it holds. The context wins;
		// a grant that came meanwhile goes back, unless another call has it too.
		why := Ended(ctx) // may panic, and has not left then
		left = true
		done, refused := t.leave(c, why)
		t.finish(done)
		t.tellRefused(refused, &c.options)
		return nil, refused
	}
	t.mu.Lock()
	c.waiters--
	c.handles++
	left = true
	t.mu.Unlock()
	return c.held, nil
}

// leave ends one call's wait for a claim, and the claim with the last of them.
func (t *Tree) leave(c *claim, why error) (finished, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	refused := t.refusal(&t.trie.root, c.asked, &c.options, why, c)
	c.waiters--
	if c.waiters > 0 || c.handles > 0 || c.state == gone {
		return finished{}, refused
	}
	return t.release(c), refused
}

// grant makes a claim held that nothing blocks. The tree is locked.
func (t *Tree) grant(c *claim) {
	c.state = held
	c.token = t.nextToken()
	t.held++
}

func (t *Tree) nextToken() Token {
	t.token++
	return t.token
}

// clock returns the time since the tree's first request: monotonic, and cheaper
// than the time of day.
func (t *Tree) clock() time.Duration {
	if t.base.IsZero() {
		t.base = time.Now()
	}
	return time.Since(t.base)
}

// finished is what is to be done after the mutex is unlocked.
type finished struct {
	ready    []*claim // granted by it, in the order of their arrival
	granted  []*Granted
	released *Released
}

// release takes a present claim out of the tree and grants what waited for
// nothing else. The tree is locked; the caller calls finish after unlocking it.
func (t *Tree) release(c *claim) (done finished) {
	wasHeld := c.state == held
	if wasHeld {
		t.held--
	} else {
		t.waiting--
	}
	if c.held != nil {
		c.last = c.present() // what Requests says from now on
		if c.options.ID != "" && t.ids[c.options.ID] == c {
			delete(t.ids, c.options.ID)
			if len(t.ids) == 0 {
				t.ids = nil // a Go map does not shrink
			}
		}
	}
	if wasHeld {
		done.released = t.released(c)
	}
	c.state = gone
	for i := range c.entries {
		e := &c.entries[i]
		key, m := e.node.key, e.mode
		t.trie.remove(e)
		if t.waiting > 0 {
			done.ready = t.unblock(c, key, m, 0, done.ready)
		}
	}
	t.grantReady(&done)
	if c.held == nil {
		t.recycle(c)
	}
	return done
}

// unblock takes the pairs off that later waiting claims had with an entry of c
// in mode from, and have no more in mode to, and collects the claims that were
// blocked by nothing else.
//
// An earlier claim that waits has never counted c: it was not blocked by what
// came after it.
func (t *Tree) unblock(c *claim, key string, from, to Mode, ready []*claim) []*claim {
	own := Request{pathOf(key), to}
	t.trie.root.visit(key, from, func(o *entry) bool {
		w := o.claim
		if w == c || w.state != waiting || w.arrival < c.arrival || to != 0 && own.Conflicts(o.request()) {
			return true
		}
		if w.blockers--; w.blockers == 0 {
			ready = append(ready, w)
		}
		return true
	})
	return ready
}

// grantReady grants claims that have no blocker left, in the order of their
// arrival. None of them conflicts with another: the later would be blocked.
func (t *Tree) grantReady(done *finished) {
	if len(done.ready) > 1 {
		slices.SortFunc(done.ready, func(a, b *claim) int {
			if a.arrival < b.arrival {
				return -1
			}
			return 1
		})
	}
	for _, w := range done.ready {
		now := t.clock()
		waited := now - w.since
		w.since = now
		t.waiting--
		t.grant(w)
		if event := t.granted(w, waited); event != nil {
			done.granted = append(done.granted, event)
		}
	}
}

// finish wakes the calls whose claims were granted and tells the observer. The
// tree is not locked.
func (t *Tree) finish(done finished) {
	for _, w := range done.ready {
		close(w.granted)
	}
	t.tellReleased(done.released)
	for _, event := range done.granted {
		t.config.Observer.Granted(*event)
	}
}

// Ended returns the error of a context that has ended, for use by engines: it
// matches ctx.Err() and the cause.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil { // of a context that is done, against its contract
		err, cause = context.Canceled, context.Canceled
	}
	if cause == err {
		return fmt.Errorf("lock: given up: %w", err)
	}
	return fmt.Errorf("lock: given up: %w: %w", err, cause)
}
