package sqllock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// claim is one acquisition of this locker. It is the [lock.GrantDriver] of its Grant.
type claim struct {
	l        *Locker
	session  *session
	attempt  int64 // its number in the locker
	options  lock.Options
	asked    []lock.Request // normalized
	grant    *lock.Grant
	lose     func(*lock.LostError) bool
	answered chan struct{} // closed when the engine has answered the first call
	granted  chan struct{} // closed when it is held or cannot be any more
	released chan struct{} // closed when the engine has removed it or its session has ended
	freed    bool          // the engine has removed it; set before released is closed
	turn     chan struct{} // full during a conversion

	// Locker.mu guards these.
	state  state
	has    []lock.Request
	calls  int        // that wait for it or have returned its Grant
	number int64      // of arrival; 0 before the engine has answered
	token  lock.Token // 0: it was never held
}

type state uint8

const (
	entering state = iota // the first call waits for the engine's answer
	waiting               // in the engine
	held
	gone // from Locker.claims: it is released, or its session has ended
)

// hold makes the claim held. Locker.mu is held.
func (c *claim) hold(number, token int64) {
	if c.state == entering || c.state == waiting {
		c.state, c.number, c.token = held, number, lock.Token(token)
		close(c.granted)
	}
}

// drop takes the claim out of the locker. Locker.mu is held.
func (c *claim) drop() {
	c.state = gone
	delete(c.l.claims, c.attempt)
	if c.l.ids[c.options.ID] == c {
		delete(c.l.ids, c.options.ID)
	}
}

// Requests implements [lock.GrantDriver].
func (c *claim) Requests() []lock.Request {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return slices.Clone(c.has)
}

// Token implements [lock.GrantDriver].
func (c *claim) Token() lock.Token {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.token
}

// Check implements [lock.GrantDriver]. A process that was stopped sees the loss at its first
// Check, before any timer.
func (c *claim) Check() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.holds(c.session) {
		return nil
	}
	return &lock.LostError{Token: c.token, Reason: "the session was not renewed in time", Err: lock.ErrLost}
}

// GuardStatement returns a query for a transaction of the caller in the same database. It
// returns a row if the grant is held, and none if it was released, broken or lost, or has
// another token since an upgrade. A grant that it has found is held until the transaction
// ends: Unlock, Break and the end of the session wait. So what the transaction writes is
// committed before a later holder is granted. No clock is involved.
func (c *claim) GuardStatement() (query string, args []any) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	paths, _ := columns(c.has)
	return `SELECT 1 FROM (SELECT 1 FROM interlock_lock_requests
		WHERE tree = $1 AND path = ANY ($2) AND token = $3 FOR KEY SHARE) AS held HAVING count(*) = $4`,
		[]any{c.l.tree, paths, int64(c.token), len(paths)}
}

// Unlock implements [lock.GrantDriver]. If the session ends first, it returns [lock.ErrLost]: the
// engine frees the lock at the end of the TTL.
func (c *claim) Unlock(ctx context.Context) error {
	select {
	case <-c.release(ctx):
		if !c.freed {
			return errSession
		}
		return nil
	case <-ctx.Done():
		return lock.Ended(ctx)
	}
}

// release begins to remove the claim from the engine, once. It returns a channel that is
// closed when that is done, or when the session has ended.
func (c *claim) release(ctx context.Context) (done <-chan struct{}) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.remove(ctx)
}

// remove is release while Locker.mu is held.
func (c *claim) remove(ctx context.Context) (done <-chan struct{}) {
	l := c.l
	if c.state == gone {
		return c.released
	}
	generation := int64(0)
	if c.state != held {
		// The engine may receive the attempt later than this. Its generation is refused then.
		// Other attempts of the generation are refused with it, and are repeated.
		l.generation++
		generation = l.generation
	}
	c.drop()
	number := c.number
	paths, _ := columns(c.asked)
	l.releases.Go(func() {
		defer close(c.released)
		ctx, cancel := c.session.bound(context.WithoutCancel(ctx))
		defer cancel()
		repeat(ctx, func() (done bool) {
			l.mu.Lock()
			current := l.holds(c.session)
			l.mu.Unlock()
			if !current {
				return true
			}
			ctx, cancel := context.WithTimeout(ctx, l.config.TTL/3)
			defer cancel()
			err := l.query(ctx, "release", []any{l.tree, c.session.id, generation, c.attempt, number, paths}, new(any))
			c.freed = err == nil
			return c.freed
		})
	})
	return c.released
}

// Upgrade implements [lock.GrantDriver].
func (c *claim) Upgrade(ctx context.Context, m lock.Mode) error { return c.convert(ctx, true, m) }

// Downgrade implements [lock.GrantDriver].
func (c *claim) Downgrade(ctx context.Context, m lock.Mode) error { return c.convert(ctx, false, m) }

func (c *claim) convert(ctx context.Context, up bool, m lock.Mode) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return lock.Ended(ctx)
	}
	has := c.Requests()
	var changed []lock.Request
	for i, r := range has {
		to := m
		if up {
			to = lock.Join(r.Mode, m)
		} else if !r.Mode.Covers(m) {
			return &lock.InvalidError{What: "mode", Value: m.String(), Reason: "is not weaker than " + r.String()}
		}
		if has[i].Mode = to; to != r.Mode {
			changed = append(changed, has[i])
		}
	}
	if len(changed) == 0 {
		return nil
	}
	l, r := c.l, conflicts(changed)
	paths, modes := columns(has)
	var reason string
	d, err := l.decide(ctx, c.session, "convert", l.tree, c.session.id, c.attempt, up, paths, modes, r.low, r.high, r.mask, l.config.MaxHolders+1)
	switch {
	case err == nil && d.outcome == "granted":
		l.mu.Lock()
		defer l.mu.Unlock()
		c.has = has
		if up {
			c.token = lock.Token(d.number)
		}
		return nil
	case err == nil && d.outcome == "conflict":
		return l.refusal(changed, lock.ErrConflict, d.holders)
	case err == nil:
		reason, err = "the grant was broken, or its session has ended", lock.ErrNotHeld
	default:
		reason = fmt.Sprintf("the outcome of a conversion is unknown: %v", err)
	}
	// The engine has removed the claim or is to break it, or may convert it now or later. In each
	// case it is not certain what the holder has.
	c.lose(&lock.LostError{Token: c.Token(), Reason: reason, Err: lock.ErrLost})
	awaitSoon(c.release(ctx))
	return err
}
