package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lock"
)

// acquisition is a claim of this process, with the calls that wait for it. It is the
// [lock.GrantDriver] of its Grant.
//
//	entering -> waiting -> held -> gone
//
// The view moves it as far as held. Every state may go to gone.
type acquisition struct {
	locker  *Locker
	session *session
	key     string
	asked   []lock.Request // normalized
	options lock.Options
	grant   *lock.Grant
	lose    func(*lock.LostError) bool
	removed chan struct{} // closed when it is gone and its key is deleted, or its session is over
	kept    bool          // the key was not deleted for it; set before removed is closed

	// The Locker's mu guards these.
	state   state
	changed chan struct{} // closed and replaced after a change of state
	claim   *claim        // nil while it enters
	written int64         // a revision at which the claim was there; 0: none is known
	obeyed  int64         // the revision of the latest revocation
	calls   int           // that wait for it or have returned its Grant
	fault   *lock.LostError
}

type state uint8

const (
	entering state = iota
	waiting
	held
	gone
)

// removal is what remains to be done when an acquisition has ended.
type removal uint8

const (
	keepKey    removal = iota // the key does not exist, or ends with its session
	deleteKey                 // once it is deleted, it does not come back
	deleteLate                // a transaction that writes it may be under way: it must fail
)

// add makes an acquisition of the current session. It needs mu.
func (l *Locker) add(rs []lock.Request, o *lock.Options) *acquisition {
	s := l.session
	s.names++
	a := &acquisition{
		locker: l, session: s, key: fmt.Sprintf("%s/%016x", s.key, s.names),
		asked: rs, options: *o, removed: make(chan struct{}), changed: make(chan struct{}),
	}
	a.grant, a.lose = lock.NewGrant(a)
	l.own[a.key] = a
	if o.ID != "" {
		l.ids[o.ID] = a
	}
	return a
}

// follow takes over the claim of a view. It needs mu.
func (a *acquisition) follow(v *view, c *claim) {
	a.keep(c)
	a.written = c.arrival
	switch {
	case a.state == held:
	case v.free(c):
		a.move(held)
	case a.state == entering:
		a.move(waiting)
	}
	a.obey(c)
}

// keep takes over a version of the claim, unless the acquisition has a later one: the view may
// be behind a conversion. It needs mu.
func (a *acquisition) keep(c *claim) {
	if a.claim == nil || a.claim.modified < c.modified {
		a.claim = c
	}
}

func (a *acquisition) move(to state) {
	a.state = to
	close(a.changed)
	a.changed = make(chan struct{})
}

// lost returns a fault for end. It needs mu.
func (a *acquisition) lost(reason string) *lock.LostError {
	fault := &lock.LostError{Reason: reason, Err: lock.ErrLost}
	if a.claim != nil {
		fault.Token = a.claim.token()
	}
	return fault
}

// end ends an acquisition. In a goroutine of its own it first notifies the holder of a
// fault, and then deletes the key, until it succeeds or the session has ended. Only the
// first call has an effect. It needs mu.
func (a *acquisition) end(fault *lock.LostError, remove removal) {
	if a.state == gone {
		return
	}
	l := a.locker
	a.fault = fault
	a.move(gone)
	delete(l.own, a.key)
	if l.ids[a.options.ID] == a {
		delete(l.ids, a.options.ID)
	}
	a.session.endings.Go(func() {
		defer close(a.removed)
		if fault != nil {
			a.lose(fault)
		}
		a.kept = remove == keepKey
		for !a.kept && !a.remove(remove) {
			select {
			case <-time.After(retryPause):
			case <-a.session.alive.Done():
				a.kept = true
				return
			}
		}
	})
}

// remove deletes the key once, and reports whether it does not exist any more.
func (a *acquisition) remove(how removal) bool {
	l, s := a.locker, a.session
	ops := []clientv3.Op{clientv3.OpDelete(a.key)}
	if how == deleteLate {
		// Bad schedule without it: the caller stops waiting for the answer, the key is
		// deleted, and then the transaction arrives and locks for as long as the session
		// lives. Every such transaction compares the revision of the session's key.
		ops = append(ops, clientv3.OpPut(s.key, "", clientv3.WithIgnoreValue(), clientv3.WithIgnoreLease()))
	}
	ctx, cancel := l.within(context.Background(), s)
	defer cancel()
	r, err := l.client.Txn(ctx).Then(ops...).Commit()
	if err == nil && r.Responses[0].GetResponseDeleteRange().Deleted > 0 {
		_ = l.seen(ctx, r.Header.Revision) // the next request of this process finds the place free
	}
	return err == nil || errors.Is(err, rpctypes.ErrKeyNotFound) // of the session, which has ended
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
	v, failed := l.read(short, l.prefix)
	if failed != nil {
		v = l.current()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := v.claim(a.key)
	if c != nil && a.state == waiting {
		a.follow(v, c) // the watch may show later that it is held
	}
	if c != nil && err != lock.ErrIDInUse {
		arrival = c.arrival // the watch may not have shown the claim yet
	}
	if err == lock.ErrConflict && a.state != waiting || err == lock.ErrIDInUse && a.state == gone {
		return nil, nil
	}
	refused := &claim{key: a.key, arrival: arrival, record: record{Requests: rs, ID: o.ID, Owner: o.Owner}}
	return nil, v.refusal(refused, l.config.MaxHolders, err)
}

// result returns the grant of an acquisition that is held, or why a call does not get it.
// The holders that arrived before its arrival are part of a refusal.
func (a *acquisition) result(rs []lock.Request, ended error) (g *lock.Grant, arrival int64, why error) {
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
	case ended != nil:
		return nil, arrival, ended
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
	ended := a.state == gone
	l.mu.Unlock()
	if ended {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = a.awaitRemoval(ctx)
	}
}

func (a *acquisition) awaitRemoval(ctx context.Context) error {
	select {
	case <-a.removed:
		return nil
	case <-ctx.Done():
		return lock.Ended(ctx)
	}
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
