package etcdlock

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lock"
)

// Guard makes a write in etcd depend on a grant. The driver of every grant of a [Locker]
// implements it:
//
//	held := grant.Driver().(etcdlock.Guard).GuardCompare()
//	client.Txn(ctx).If(held).Then(clientv3.OpPut(key, value)).Commit()
type Guard interface {
	// GuardCompare returns a condition that is true exactly while etcd has the claim of
	// the grant. No clock is involved. It stays the same over conversions.
	GuardCompare() clientv3.Cmp
}

var _ Guard = (*acquisition)(nil)

// GuardCompare implements [Guard].
func (a *acquisition) GuardCompare() clientv3.Cmp {
	a.locker.mu.Lock()
	defer a.locker.mu.Unlock()
	return clientv3.Compare(clientv3.CreateRevision(a.key), "=", a.claim.arrival)
}

// Requests implements [lock.GrantDriver].
func (a *acquisition) Requests() []lock.Request {
	a.locker.mu.Lock()
	defer a.locker.mu.Unlock()
	return slices.Clone(a.claim.Requests)
}

// Token implements [lock.GrantDriver].
func (a *acquisition) Token() lock.Token {
	a.locker.mu.Lock()
	defer a.locker.mu.Unlock()
	return a.claim.token()
}

// Check implements [lock.GrantDriver].
func (a *acquisition) Check() error {
	a.locker.mu.Lock()
	defer a.locker.mu.Unlock()
	return a.check()
}

// check returns why the acquisition is lost. It compares the clock itself: in a process that
// was paused, run may still be asleep. It needs mu.
func (a *acquisition) check() error {
	if !time.Now().Before(a.session.until) {
		a.locker.end(a.session, notRenewed)
	}
	if a.fault != nil {
		return a.fault
	}
	return nil
}

// Unlock implements [lock.GrantDriver]. If the context ends first, the removal goes on. If the
// session ends first, it returns [lock.ErrLost]: etcd holds the claim until the lease ends.
func (a *acquisition) Unlock(ctx context.Context) error {
	a.locker.mu.Lock()
	a.end(nil, deleteKey)
	a.locker.mu.Unlock()
	err := a.awaitRemoval(ctx)
	if err == nil && a.kept {
		err = &lock.LostError{Token: a.Token(), Reason: "the session ended before the release", Err: lock.ErrLost}
	}
	return err
}

// Upgrade implements [lock.GrantDriver].
func (a *acquisition) Upgrade(ctx context.Context, m lock.Mode) error {
	return a.convert(ctx, ifUnchanged, func(v *view, next *claim) ([]*claim, error) {
		raised := &claim{key: a.key, arrival: never}
		for i, r := range next.Requests {
			if r.Mode = lock.Join(r.Mode, m); r != next.Requests[i] {
				next.Requests[i] = r
				raised.Requests = append(raised.Requests, r)
			}
		}
		if !v.free(raised) {
			return nil, v.refusal(raised, a.locker.config.MaxHolders, lock.ErrConflict)
		}
		if raised.Requests == nil {
			return nil, nil
		}
		next.Since, next.Token, next.Rank = time.Now(), 0, 0
		return v.renumbered(next), nil
	})
}

// Downgrade implements [lock.GrantDriver].
func (a *acquisition) Downgrade(ctx context.Context, m lock.Mode) error {
	return a.convert(ctx, noRequest, func(_ *view, next *claim) ([]*claim, error) {
		for i, r := range next.Requests {
			if !r.Mode.Covers(m) {
				return nil, &lock.InvalidError{What: "mode", Value: m.String(), Reason: "is not weaker than " + r.String()}
			}
			next.Requests[i].Mode = m
		}
		return []*claim{next}, nil
	})
}

// convert writes the claims that change returns for a view and a copy of the own claim, which
// has its token fixed. The grant then has what was written, also if the context ends before the
// view shows it.
func (a *acquisition) convert(ctx context.Context, when condition, change func(*view, *claim) ([]*claim, error)) error {
	if ctx.Err() != nil {
		return lock.Ended(ctx)
	}
	l := a.locker
	var next claim
	revision, left, err := l.write(ctx, a.session, when, func(v *view) ([]*claim, error) {
		c := v.claim(a.key)
		if c == nil {
			return nil, lock.ErrNotHeld
		}
		next = *c
		next.Requests, next.Token = slices.Clone(c.Requests), c.token()
		return change(v, &next)
	})
	if revision > 0 {
		next.modified = revision
		l.mu.Lock()
		a.replace(&next)
		l.mu.Unlock()
	}
	if left == deleteLate {
		// The key is deleted, and then the conversion cannot be written any more.
		l.mu.Lock()
		fault := a.lost("the outcome of a conversion is unknown")
		a.end(fault, deleteKey)
		l.mu.Unlock()
		a.lose(fault) // before convert returns; end may do it later
	}
	return err
}
