package sqllock

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/semaphore"

	"github.com/interlock-go/interlock/lock"
)

// Locker is the [lock.Locker] of a tree in a database. [Open] makes one. It is safe for
// concurrent use and must not be copied.
type Locker struct {
	db       *sql.DB
	listen   *pgx.ConnConfig
	tree     string
	config   Config
	stop     context.CancelFunc // of run
	ended    chan struct{}      // closed when run has returned
	releases sync.WaitGroup     // goroutines that remove claims; each ends with its session

	mu         sync.Mutex // guards what follows; not held during I/O
	session    *session
	closed     bool
	claims     map[int64]*claim  // by attempt: all that are not gone
	ids        map[string]*claim // those with an id
	attempts   int64             // the number of claims so far
	generation int64             // of the next attempts
	changed    chan struct{}     // closed and replaced after every change of the above
}

var _ lock.Locker = (*Locker)(nil)

// TryLock implements [lock.Locker]. The error is [lock.ErrLost], at once, while the Locker has
// no session: the engine has not answered for a TTL, and no new session could begin yet.
func (l *Locker) TryLock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Grant, error) {
	return l.acquire(ctx, []lock.Request{r}, o, false)
}

// Lock implements [lock.Locker]. While the Locker has no session, Lock waits for the next one.
// The error is [lock.ErrLost] if the session ends while the request waits.
func (l *Locker) Lock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Grant, error) {
	return l.acquire(ctx, []lock.Request{r}, o, true)
}

// TryLockAll implements [lock.Locker].
func (l *Locker) TryLockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	return l.acquire(ctx, rs, o, false)
}

// LockAll implements [lock.Locker].
func (l *Locker) LockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	return l.acquire(ctx, rs, o, true)
}

const maxPath = 2000 // a path is in an index

func (l *Locker) acquire(ctx context.Context, rs []lock.Request, o *lock.Options, wait bool) (*lock.Grant, error) {
	rs, err := lock.Normalize(rs)
	if err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = cmp.Or(o, new(lock.Options))
	for _, r := range rs {
		if p := r.Path.String(); len(p) > maxPath {
			return nil, &lock.InvalidError{What: "path", Value: p, Reason: fmt.Sprintf("is longer than %d bytes", maxPath)}
		}
	}
	for ctx.Err() == nil {
		if g, err := l.attempt(ctx, rs, o, wait); g != nil || err != nil {
			return g, err
		}
	}
	return nil, &lock.ConflictError{Requests: rs, Err: lock.Ended(ctx)}
}

// attempt is one round of acquire. It returns neither a grant nor an error if the claim with
// the same id, which it joined, has gone meanwhile: acquire tries again.
func (l *Locker) attempt(ctx context.Context, rs []lock.Request, o *lock.Options, wait bool) (g *lock.Grant, err error) {
	var c *claim
	first, none := false, errSession
	err = l.until(ctx, func() bool {
		switch {
		case l.closed:
			none = ErrClosed
			return true
		case !l.holds(l.session): // a Lock waits for the next one
			return !wait
		}
		if c = l.ids[o.ID]; c == nil {
			c, first = l.add(rs, o), true
		}
		c.calls++
		return true
	})
	if err != nil {
		return nil, &lock.ConflictError{Requests: rs, Err: err}
	}
	if c == nil {
		return nil, none
	}
	defer func() {
		if g == nil { // an error, or a panic of the context
			awaitSoon(c.leave(ctx))
		}
	}()
	if first {
		err := c.request(ctx, wait)
		if err != nil && (!wait || ctx.Err() == nil) {
			return nil, err
		} // a wait that ends early lists the holders, too
	}
	other := !slices.Equal(c.asked, rs)
	err = l.until(ctx, func() bool {
		return c.state == held || c.state == gone || c.state == waiting && (!wait || other)
	})
	// The grant and the end of the context may come together. The context wins, so that an
	// error means that nothing is held.
	if err == nil && ctx.Err() != nil {
		err = lock.Ended(ctx)
	}
	l.mu.Lock()
	state := c.state
	// A downgrade may have left less than what the id stands for.
	covers := func(has, r lock.Request) bool { return has.Mode.Covers(r.Mode) }
	other = other || state == held && !slices.EqualFunc(c.has, rs, covers)
	l.mu.Unlock()
	fault := c.grant.Check()
	switch {
	case errors.Is(fault, lock.ErrLost):
		return nil, fault
	case err != nil:
		return nil, c.refuse(ctx, rs, o, err)
	case state == gone: // another call has released it
		return nil, nil
	case other:
		return nil, c.refuse(ctx, rs, o, lock.ErrIDInUse)
	case state == held:
		return c.grant, nil
	}
	if err := c.refuse(ctx, rs, o, lock.ErrConflict); err != nil {
		return nil, err
	}
	c.session.look() // it has no news of the grant yet
	return l.attempt(ctx, rs, o, true)
}

// until waits until the condition holds, which is called with mu held.
func (l *Locker) until(ctx context.Context, holds func() bool) error {
	for {
		l.mu.Lock()
		done, changed := holds(), l.changed
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return lock.Ended(ctx)
		}
	}
}

// wake ends the waits for l.changed. Locker.mu is held.
func (l *Locker) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// add makes a claim of the current session. Locker.mu is held.
func (l *Locker) add(rs []lock.Request, o *lock.Options) *claim {
	l.attempts++
	c := &claim{
		l: l, session: l.session, attempt: l.attempts, options: *o, asked: rs, has: rs,
		released: make(chan struct{}), turn: semaphore.NewWeighted(1),
	}
	c.grant, c.lose = lock.NewGrant(c)
	l.claims[c.attempt] = c
	if o.ID != "" {
		l.ids[o.ID] = c
	}
	return c
}

// refuse returns the refusal of a call, with the holders of now that arrived before the claim.
// It returns nil for a conflict that has ended meanwhile.
func (c *claim) refuse(ctx context.Context, rs []lock.Request, o *lock.Options, why error) error {
	l := c.l
	l.mu.Lock()
	before := c.number
	l.mu.Unlock()
	blocking, id := conflicts(rs), o.ID
	switch {
	case why == lock.ErrIDInUse:
		blocking, before = ranges{}, math.MaxInt64
	case before == 0: // the claim itself may be in the tree, with its id
		id, before = "", math.MaxInt64
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	found, err := l.report(soon, blocking, id, before, l.config.MaxHolders+1)
	switch {
	case err != nil && ctx.Err() == nil:
		return err
	case why == lock.ErrConflict && len(found) == 0:
		return nil
	}
	return l.refusal(rs, why, found)
}

// refusal returns a ConflictError with as many holders as the configuration permits.
func (l *Locker) refusal(rs []lock.Request, why error, found []lock.Holder) error {
	err := &lock.ConflictError{Requests: slices.Clone(rs), Holders: found, Err: why}
	if len(found) > l.config.MaxHolders {
		err.Holders, err.More = found[:l.config.MaxHolders], true
	}
	return err
}

// answer is what the engine decides.
type answer struct {
	outcome string // granted, waiting, conflict, full, late, ended or gone
	number  int64  // of arrival; of a grant it is the token
	holders list[lock.Holder]
}

func (l *Locker) ask(ctx context.Context, s *session, function string, args ...any) (a answer, err error) {
	var number sql.NullInt64
	since := new(any) // which only holders show
	bounded, cancel := s.bound(ctx)
	defer cancel()
	err = l.query(bounded, function, args, &a.outcome, &number, since, &a.holders)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = errSession
	}
	a.number = number.Int64
	return a, err
}

// request sends a new claim to the engine and records the answer. After an error, or a panic
// of the context, the engine may still grant the claim, so request removes it.
func (c *claim) request(ctx context.Context, wait bool) (err error) {
	l := c.l
	decided := false
	defer func() {
		if !decided {
			awaitSoon(c.release(ctx))
		}
	}()
	paths, modes := columns(c.asked)
	r := conflicts(c.asked)
	a := answer{outcome: "late"}
	for a.outcome == "late" {
		l.mu.Lock()
		generation := l.generation
		l.mu.Unlock()
		a, err = l.ask(ctx, c.session, "acquire", l.tree, c.session.id, generation, c.attempt, wait, paths, modes, r.low, r.high, r.mask,
			c.options.ID, c.options.Owner, c.options.Reason, l.config.MaxWaiters, l.config.MaxHolders+1)
		switch {
		case err != nil && ctx.Err() != nil:
			return &lock.ConflictError{Requests: c.asked, Err: lock.Ended(ctx)}
		case err != nil:
			return err
		}
	}
	decided = true
	l.mu.Lock()
	defer l.mu.Unlock()
	switch a.outcome {
	case "granted":
		c.hold(a.number, a.number)
		return nil
	case "waiting":
		c.number = a.number
		if c.state == asking { // it may be granted already, see apply
			c.state = waiting
		}
		l.wake()
		return nil
	}
	if c.state != gone {
		c.drop()
		close(c.released)
	}
	switch a.outcome {
	case "conflict":
		return l.refusal(c.asked, lock.ErrConflict, a.holders)
	case "full":
		return l.refusal(c.asked, lock.ErrQueueFull, a.holders)
	}
	return errSession
}

// patience bounds how long a call that ends with an error waits for its own removal.
const patience = 2 * time.Second

func awaitSoon(done <-chan struct{}) {
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// Holders implements [lock.Locker].
func (l *Locker) Holders(ctx context.Context, p lock.Path, s lock.Scope) ([]lock.Holder, error) {
	if err := (lock.Request{Path: p, Mode: lock.X}).Validate(); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var r ranges
	if s&lock.Above != 0 {
		r.above(p, allModes)
	}
	if s&lock.At != 0 {
		r.at(p, allModes)
	}
	if s&lock.Below != 0 {
		r.below(p, allModes)
	}
	return l.report(ctx, r, "", math.MaxInt64, math.MaxInt32)
}

// Snapshot implements [lock.Locker]. LastToken is the latest number of the database: any tree
// may have used it for a grant, a request that waits, or a session.
func (l *Locker) Snapshot(ctx context.Context) (s lock.Snapshot, err error) {
	var all ranges
	all.at(lock.Root(), allModes)
	all.below(lock.Root(), allModes)
	err = l.query(ctx, "snapshot", []any{l.tree, all.low, all.high, all.mask}, (*list[lock.Holder])(&s.Holders), &s.Held, &s.Waiting, &s.LastToken)
	s.Nodes = len(s.Holders)
	return s, err
}

// Revoke implements [lock.Locker]. The holder in another process is notified soon after.
func (l *Locker) Revoke(ctx context.Context, t lock.Token, reason string) error {
	return l.mark(ctx, t, revoked, reason)
}

// Break implements [lock.Locker]. It waits until the process of the holder has announced the
// loss, or its session has ended. If the context ends first, that still happens.
func (l *Locker) Break(ctx context.Context, t lock.Token, reason string) error {
	err := l.mark(ctx, t, broken, reason)
	if err != nil {
		return err
	}
	for pause := time.Millisecond; err == nil; pause = min(2*pause, longestPause) {
		sleep(ctx, pause)
		// The session of the holder may have expired, and no locker may be left that ends it.
		if err = l.query(ctx, "sweep", []any{l.tree, 0}, new(bool)); err == nil {
			err = l.mark(ctx, t, broken, reason)
		}
	}
	if errors.Is(err, lock.ErrNotHeld) {
		return nil
	}
	return err
}

// mark is what an operator wants of a grant.
type mark int

const (
	revoked mark = 1
	broken  mark = 2
)

func (l *Locker) mark(ctx context.Context, t lock.Token, how mark, reason string) error {
	if ctx.Err() != nil {
		return lock.Ended(ctx)
	}
	if err := (&lock.Options{Reason: reason}).Validate(); err != nil {
		return err
	}
	var session, attempt sql.NullInt64
	if err := l.query(ctx, "mark", []any{l.tree, int64(t), int(how), reason}, &session, &attempt); err != nil {
		return err
	}
	if !session.Valid {
		return fmt.Errorf("%w: token %d", lock.ErrNotHeld, t)
	}
	l.mu.Lock()
	own := session.Int64 == l.session.id
	l.mu.Unlock()
	if own {
		l.apply(news{Attempt: attempt.Int64, Mark: how, Why: reason})
	}
	return nil
}
