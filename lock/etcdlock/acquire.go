package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// TryLock implements [lock.Locker]. The claim is one transaction. The error is
// [lock.ErrLost] if etcd does not answer until the session ends; and at once while the Locker
// has no session: etcd has not answered for a TTL, and no new session could begin yet.
func (l *Locker) TryLock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Grant, error) {
	return l.acquire(ctx, []lock.Request{r}, o, false)
}

// Lock implements [lock.Locker]. While the Locker has no session, Lock waits for the next
// one. The error is [lock.ErrLost] if the session ends while the request waits: it has lost
// its place.
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

func (l *Locker) acquire(ctx context.Context, rs []lock.Request, o *lock.Options, wait bool) (*lock.Grant, error) {
	rs, err := lock.Normalize(rs)
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		return nil, err
	}
	o = cmp.Or(o, new(lock.Options))
	for ctx.Err() == nil {
		g, err := l.attempt(ctx, rs, o, wait)
		_, detailed := errors.AsType[*lock.ConflictError](err)
		switch {
		case g != nil, detailed:
			return g, err
		case err != nil:
			return nil, &lock.ConflictError{Requests: rs, Err: err}
		}
	}
	return nil, &lock.ConflictError{Requests: rs, Err: lock.Ended(ctx)}
}

// attempt is one round of acquire. It returns neither a grant nor an error if the
// acquisition with the same id, which it joined, has changed meanwhile: acquire tries again.
func (l *Locker) attempt(ctx context.Context, rs []lock.Request, o *lock.Options, wait bool) (g *lock.Grant, err error) {
	var a *acquisition
	first := false
	err = l.until(ctx, func() (bool, <-chan struct{}) {
		if l.session == nil {
			return !wait && !l.closed, l.changed
		}
		if a = l.ids[o.ID]; a == nil {
			a, first = l.add(rs, o), true
		}
		a.calls++
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if a == nil { // only a Lock waits for a session
		return nil, &lock.LostError{Reason: "no session could begin yet", Err: lock.ErrLost}
	}
	defer func() {
		if g == nil { // an error, or a panic in a method of the context
			l.leave(ctx, a, first)
		}
	}()
	if first {
		err := a.enter(ctx, wait)
		if err != nil && (!wait || ctx.Err() == nil) {
			return nil, err
		} // a wait that ends early lists the holders, too
	}
	other := !slices.Equal(a.asked, rs)
	err = l.until(ctx, func() (bool, <-chan struct{}) {
		return a.state == held || a.state == gone || a.state == waiting && (!wait || other), a.changed
	})
	// Bad schedule: the grant and the end of the context come together, and a caller
	// that no longer waits gets the lock. So the context wins.
	if err == nil && ctx.Err() != nil {
		err = lock.Ended(ctx)
	}
	g, arrival, err := a.result(rs, err)
	if g != nil || arrival == 0 {
		return g, err
	}
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	v, unread := l.read(short, l.prefix)
	if unread != nil {
		v = l.current()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := v.claim(a.key)
	if c != nil && a.state == waiting {
		a.apply(v, c) // the watch may show later that it is held
	}
	if c != nil && err != lock.ErrIDInUse {
		arrival = c.arrival // the watch may not have shown the claim yet
	}
	if err == lock.ErrConflict && a.state != waiting || err == lock.ErrIDInUse && a.state == gone {
		return nil, nil
	}
	refused := &claim{key: a.key, arrival: arrival, record: record{Requests: rs, ID: o.ID}}
	return nil, v.refusal(refused, l.config.MaxHolders, err)
}

// enter writes the claim of a new acquisition, unless it is refused. After an error the
// acquisition is gone, unless a view has shown its claim.
//
// The claim of a Lock takes the last place unconditionally, so that no faster writer holds it
// up. What has arrived before it may refuse it then: the same id, or one more that waits than
// the limit permits.
func (a *acquisition) enter(ctx context.Context, wait bool) error {
	l, o := a.locker, &a.options
	how := ifUnchanged
	if wait {
		how = always
	}
	next := &claim{key: a.key, arrival: never, record: record{
		Requests: a.asked, Asked: a.asked, ID: o.ID, Owner: o.Owner, Reason: o.Reason, Since: time.Now(),
	}}
	revision, left, err := l.write(ctx, a.session, how, func(v *view) ([]*claim, error) {
		return []*claim{next}, l.refused(v, next, wait)
	})
	l.mu.Lock()
	switch {
	case err != nil && a.written > 0:
		// The claim is there, and another call with the id may have returned the Grant: only
		// this call has failed. The last call that leaves withdraws the claim.
		if a.state == waiting && l.refused(l.view, a.claim, wait) != nil {
			a.end(nil, deleteKey) // it came too late, see below: the other calls try again
		}
	case err != nil:
		a.end(nil, left)
	case a.state == entering && l.view.revision >= revision: // the key came and went between two watches
		a.end(a.lost("its key was deleted"), keepKey)
	default:
		a.written = revision
	}
	l.mu.Unlock()
	if err != nil || !wait {
		return err
	}
	_ = l.until(ctx, func() (bool, <-chan struct{}) { return a.state != entering, a.changed })
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.state == waiting {
		if err = l.refused(l.view, a.claim, wait); err != nil {
			a.end(nil, deleteKey)
		}
	}
	return err
}

// refused returns why a claim has to go, and nil if it is free or may wait.
func (l *Locker) refused(v *view, c *claim, wait bool) error {
	same := v.find(func(other *claim) bool { return other.arrival < c.arrival && c.ID != "" && c.ID == other.ID })
	limit := l.config.MaxWaiters
	var why error
	switch {
	case same != nil && !slices.Equal(same.Asked, c.Asked):
		why = lock.ErrIDInUse
	case v.free(c):
		return nil
	case !wait:
		why = lock.ErrConflict
	case limit > 0 && v.waiting(c.arrival) >= limit:
		why = lock.ErrQueueFull
	default:
		return nil
	}
	return v.refusal(c, l.config.MaxHolders, why)
}

// result returns the grant of an acquisition that is held, or why a call does not get it.
// The holders that arrived before its arrival are part of a refusal.
func (a *acquisition) result(rs []lock.Request, cancelled error) (g *lock.Grant, arrival int64, why error) {
	a.locker.mu.Lock()
	defer a.locker.mu.Unlock()
	if err := a.check(); err != nil {
		return nil, 0, err
	}
	if arrival = never; a.claim != nil {
		arrival = a.claim.arrival
	}
	// A downgrade may have left less than what the id stands for.
	covers := func(has, r lock.Request) bool { return has.Mode.Covers(r.Mode) }
	switch {
	case cancelled != nil:
		return nil, arrival, cancelled
	case a.state == gone:
		return nil, 0, nil // another call has released it
	case !slices.Equal(a.asked, rs) || a.state == held && !slices.EqualFunc(a.claim.Requests, rs, covers):
		return nil, never, lock.ErrIDInUse
	case a.state == waiting:
		return nil, arrival, lock.ErrConflict
	}
	return a.grant, arrival, nil
}

// leave ends a call without the Grant. The last one withdraws the claim, and so does the first
// one if it has not written the claim: no other call does. It waits for the removal for a
// short time, since its context may have ended.
func (l *Locker) leave(ctx context.Context, a *acquisition, first bool) {
	l.mu.Lock()
	if a.calls--; a.calls == 0 || first && a.written == 0 {
		how := deleteKey
		if a.state == entering {
			how = deleteLate
		}
		a.end(nil, how)
	}
	over := a.state == gone
	l.mu.Unlock()
	if over {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = a.awaitRemoval(ctx)
	}
}
