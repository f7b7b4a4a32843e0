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
	attempt    int64             // of the latest claim
	generation int64             // of the next attempts
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
		c, first, err := l.enter(rs, o)
		switch {
		case wait && errors.Is(err, errSession): // the next one may begin soon
			sleep(ctx, firstPause)
			continue
		case err != nil:
			return nil, err
		case first:
			return l.request(ctx, c, wait)
		}
		select {
		case <-c.answered:
			if g, err := l.join(ctx, c, rs, o, wait); g != nil || err != nil {
				return g, err
			}
		case <-ctx.Done():
		}
	}
	return nil, &lock.ConflictError{Requests: rs, Err: lock.Ended(ctx)}
}

// enter returns the claim with the id, or a new one, which the caller requests.
func (l *Locker) enter(rs []lock.Request, o *lock.Options) (c *claim, first bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.ids[o.ID]; c != nil {
		return c, false, nil
	}
	if l.closed {
		return nil, false, ErrClosed
	}
	if !l.holds(l.session) {
		return nil, false, errSession
	}
	l.attempt++
	c = &claim{
		l: l, session: l.session, attempt: l.attempt, options: *o, asked: rs, has: rs, calls: 1,
		answered: make(chan struct{}), granted: make(chan struct{}), released: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	c.grant, c.lose = lock.NewGrant(c)
	l.claims[c.attempt] = c
	if o.ID != "" {
		l.ids[o.ID] = c
	}
	return c, true, nil
}

// join repeats the acquisition of a claim that the engine has answered. It returns neither a
// grant nor an error if the claim has gone.
func (l *Locker) join(ctx context.Context, c *claim, rs []lock.Request, o *lock.Options, wait bool) (*lock.Grant, error) {
	l.mu.Lock()
	covers := func(has, r lock.Request) bool { return has.Mode.Covers(r.Mode) }
	why, before := error(nil), c.number
	switch {
	case c.state == gone:
		l.mu.Unlock()
		return nil, nil
	case !slices.Equal(c.asked, rs), c.state == held && !slices.EqualFunc(c.has, rs, covers):
		why, before = lock.ErrIDInUse, math.MaxInt64
	case c.state == waiting && !wait:
		why = lock.ErrConflict
	default:
		c.calls++
	}
	l.mu.Unlock()
	if why == nil {
		return l.wait(ctx, c)
	}
	var blocking ranges
	if why == lock.ErrConflict {
		blocking = conflicts(rs)
	}
	found, err := l.report(ctx, blocking, o.ID, before, l.config.MaxHolders+1)
	switch {
	case err != nil:
		return nil, err
	case len(found) > 0:
	case why == lock.ErrConflict:
		// The engine has granted the claim, and the session has not read that yet.
		c.session.look()
		return l.join(ctx, c, rs, o, true)
	case l.isGone(c): // it was released before the engine looked
		return nil, nil
	}
	return nil, l.refusal(rs, why, found)
}

func (l *Locker) isGone(c *claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.state == gone
}

// refusal returns a ConflictError with as many holders as the configuration permits.
func (l *Locker) refusal(rs []lock.Request, why error, found []lock.Holder) error {
	err := &lock.ConflictError{Requests: slices.Clone(rs), Holders: found, Err: why}
	if len(found) > l.config.MaxHolders {
		err.Holders, err.More = found[:l.config.MaxHolders], true
	}
	return err
}

// request makes the first call for a claim.
func (l *Locker) request(ctx context.Context, c *claim, wait bool) (*lock.Grant, error) {
	d, err := l.send(ctx, c, wait)
	switch {
	case err != nil && ctx.Err() != nil && wait: // the request may have waited before its answer came
		return nil, l.cancelled(ctx, c, math.MaxInt64)
	case err != nil && ctx.Err() != nil:
		return nil, &lock.ConflictError{Requests: c.asked, Err: lock.Ended(ctx)}
	case err != nil:
		return nil, err
	case d.outcome == "conflict":
		return nil, l.refusal(c.asked, lock.ErrConflict, d.holders)
	case d.outcome == "full":
		return nil, l.refusal(c.asked, lock.ErrQueueFull, d.holders)
	}
	return l.wait(ctx, c)
}

// send sends a claim to the engine and records the answer. After an error, or a panic of the
// context, the engine may still grant the claim, so send removes it.
func (l *Locker) send(ctx context.Context, c *claim, wait bool) (d decision, err error) {
	defer close(c.answered)
	decided := false
	defer func() {
		if !decided {
			awaitSoon(c.release(ctx))
		}
	}()
	paths, modes := columns(c.asked)
	r := conflicts(c.asked)
	for d.outcome = "late"; d.outcome == "late"; { // the removal of another claim came first, see remove
		l.mu.Lock()
		generation := l.generation
		l.mu.Unlock()
		d, err = l.decide(ctx, c.session, "acquire", l.tree, c.session.id, generation, c.attempt, wait, paths, modes, r.low, r.high, r.mask,
			c.options.ID, c.options.Owner, c.options.Reason, l.config.MaxWaiters, l.config.MaxHolders+1)
		if err != nil {
			return d, err
		}
	}
	decided = true
	l.mu.Lock()
	defer l.mu.Unlock()
	switch d.outcome {
	case "granted":
		c.hold(d.number, d.number)
	case "waiting":
		c.number = d.number
		if c.state == entering { // it may be granted already, see apply
			c.state = waiting
		}
	case "ended":
		c.drop()
		return d, errSession
	default:
		c.drop()
	}
	return d, nil
}

// wait returns the grant of a claim when it is held. If the context ends first, it takes back
// the call, and with the last call the claim.
func (l *Locker) wait(ctx context.Context, c *claim) (g *lock.Grant, err error) {
	defer func() {
		if g == nil { // an error, or a panic of the context
			awaitSoon(l.leave(ctx, c))
		}
	}()
	ended := true
	select {
	case <-c.granted:
		// The context may have ended at the same time. It wins, so that an error means that
		// nothing is held.
		ended = ctx.Err() != nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	number, token := c.number, c.token
	l.mu.Unlock()
	switch {
	case ended:
		return nil, l.cancelled(ctx, c, number)
	case token == 0:
		return nil, errSession
	}
	return c.grant, nil
}

// cancelled returns the error of a wait whose context has ended, with the holders that
// arrived before a number, as of now.
func (l *Locker) cancelled(ctx context.Context, c *claim, before int64) error {
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	id := c.options.ID
	if before == math.MaxInt64 { // the claim itself may be in the tree, with its id
		id = ""
	}
	blockers, _ := l.report(soon, conflicts(c.asked), id, before, l.config.MaxHolders+1) // none without an answer
	return l.refusal(c.asked, lock.Ended(ctx), blockers)
}

// leave takes back one call. The channel is nil if others remain.
func (l *Locker) leave(ctx context.Context, c *claim) (done <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.calls--; c.calls > 0 {
		return nil
	}
	return c.remove(ctx)
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
