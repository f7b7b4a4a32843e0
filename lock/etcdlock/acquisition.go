package etcdlock

import (
	"context"
	"errors"
	"fmt"
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
	claim   *claim        // nil until it was read
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

// apply takes over the claim of a view, and the state that it has there. It needs mu.
func (a *acquisition) apply(v *view, c *claim) {
	a.replace(c)
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

// replace takes over a version of the claim, unless the acquisition has a later one: the view may
// be behind a conversion. It needs mu.
func (a *acquisition) replace(c *claim) {
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

func (a *acquisition) awaitRemoval(ctx context.Context) error {
	select {
	case <-a.removed:
		return nil
	case <-ctx.Done():
		return lock.Ended(ctx)
	}
}
