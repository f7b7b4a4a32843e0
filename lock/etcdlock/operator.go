package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// Holders implements [lock.Locker].
func (l *Locker) Holders(ctx context.Context, p lock.Path, s lock.Scope) ([]lock.Holder, error) {
	if !p.Valid() {
		return nil, &lock.InvalidError{What: "path", Reason: "is the zero Path"}
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	v, err := l.read(ctx, l.prefix)
	if err != nil {
		return nil, err
	}
	return v.holders(func(r lock.Request) bool {
		switch {
		case r.Path == p:
			return s&lock.At != 0
		case r.Path.Covers(p):
			return s&lock.Above != 0
		}
		return p.Covers(r.Path) && s&lock.Below != 0
	}), nil
}

// Snapshot implements [lock.Locker]. Nodes are claims, and no token of the tree is greater
// than LastToken.
func (l *Locker) Snapshot(ctx context.Context) (lock.Snapshot, error) {
	v, err := l.read(ctx, l.prefix)
	if err != nil {
		return lock.Snapshot{}, err
	}
	n := v.waiting(never)
	return lock.Snapshot{
		Holders: v.holders(func(lock.Request) bool { return true }),
		Held:    len(v.claims) - n, Waiting: n, Nodes: len(v.claims), LastToken: lock.Token((v.latest+1)*ranks - 1),
	}, nil
}

// Revoke implements [lock.Locker]. It returns when the holder is notified, or is certain to
// have lost its grant: after one TTL of the holder at most. If the context ends first, the
// order stands.
func (l *Locker) Revoke(ctx context.Context, t lock.Token, reason string) error {
	return l.order(ctx, t, &order{Reason: reason})
}

// Break implements [lock.Locker]. The holder's process obeys at once. If it does not, because
// it is gone, paused or cut off, Break waits for one TTL of the holder and deletes the
// claim. If the context ends first, the order stands, and Break can be called again.
func (l *Locker) Break(ctx context.Context, t lock.Token, reason string) error {
	return l.order(ctx, t, &order{Break: true, Reason: reason})
}

// order writes an order into the claim of a token and waits until its holder has obeyed.
func (l *Locker) order(ctx context.Context, t lock.Token, o *order) error {
	if err := (&lock.Options{Reason: o.Reason}).Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return ErrClosed
	}
	var c *claim
	written, _, err := l.write(ctx, nil, noRequest, func(v *view) ([]*claim, error) {
		c = v.find(func(c *claim) bool { return c.token() == t && v.free(c) })
		if c == nil || c.Order != nil && c.Order.Break && !o.Break {
			return nil, fmt.Errorf("%w: token %d", lock.ErrNotHeld, t)
		}
		next := *c
		next.Token, next.Order = t, o
		return []*claim{&next}, nil
	})
	if err != nil {
		return err
	}
	lease, err := l.client.TimeToLive(ctx, c.lease)
	if err != nil {
		return failed(ctx, "read the TTL of the holder", err)
	}
	// Every renewal reads the orders. So a holder that has not obeyed after one TTL has
	// renewed nothing since the order was written, and its Check has failed by now.
	patient, cancel := context.WithTimeout(ctx, time.Duration(lease.GrantedTTL)*time.Second)
	defer cancel()
	err = l.until(patient, func() (bool, <-chan struct{}) {
		now := l.view.claim(c.key)
		return l.view.revision >= written && (now == nil || now.Order == nil), l.changed
	})
	switch {
	case err == nil || errors.Is(err, ErrClosed):
		return err
	case ctx.Err() != nil:
		return lock.Ended(ctx)
	case !o.Break:
		return nil
	}
	if _, err = l.client.Delete(ctx, c.key); err != nil {
		return failed(ctx, "break", err)
	}
	return nil
}

// obey does what an operator has written into the claim. It needs mu.
func (a *acquisition) obey(c *claim) {
	switch {
	case c.Order == nil:
		return
	case c.Order.Break:
		// Also if the view does not show yet that the claim is held. Bad schedule
		// otherwise: the watch hangs, renewals go on, the operator deletes the key, and then
		// the view shows the grant first and the deletion later.
		a.end(a.lost(c.Order.Reason), deleteKey)
		return
	case c.modified <= a.obeyed:
		return
	}
	a.obeyed = c.modified
	why := a.lost(c.Order.Reason)
	why.Err = lock.ErrRevoked
	l := a.locker
	l.work.Go(func() {
		a.lose(why)
		// After an error the order may stay in the claim. The grant holds in any case.
		_, _, _ = l.write(context.Background(), a.session, noRequest, func(v *view) ([]*claim, error) {
			now := v.claim(a.key)
			if now == nil || now.Order == nil || now.Order.Break {
				return nil, nil
			}
			next := *now
			next.Token, next.Order = now.token(), nil
			return []*claim{&next}, nil
		})
	})
}
