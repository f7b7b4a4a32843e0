package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lock"
)

// session is one life of a Locker in etcd: a lease with its keys.
//
//	until = when its last successful renewal was sent + 90 % of the TTL
//
// etcd counts the TTL from a later moment, the arrival of the renewal. So the holder
// stops before etcd ends the lease, if the rates of their clocks differ by less than
// 10 %.
type session struct {
	lease clientv3.LeaseID
	key   string
	ttl   time.Duration
	alive context.Context // ends with the session
	stop  func()          // ends alive; called by end

	// endings are the goroutines of acquisitions that have ended. None is added after the
	// end of the session.
	endings sync.WaitGroup

	// The Locker's mu guards these.
	until time.Time // with a monotonic reading
	names uint64    // the number of claims so far
}

const notRenewed = "the session was not renewed in time"

func (s *session) renewed(sent time.Time) { s.until = sent.Add(s.ttl / 10 * 9) }

// sessionEnd is the cause of a context that has ended with a session. The context of a caller
// may have a [lock.LostError] as its cause too: that of another grant.
type sessionEnd struct{ lost *lock.LostError }

func (e *sessionEnd) Error() string { return e.lost.Error() }

// ended returns the error of a context that has ended. If it has ended with a session, the
// context of the caller has not, and the error does not match that of a context.
func ended(ctx context.Context) error {
	if e, ok := context.Cause(ctx).(*sessionEnd); ok {
		return e.lost
	}
	return lock.Ended(ctx)
}

// within bounds a context to the time that a session is certain to live, and to its end.
func (l *Locker) within(ctx context.Context, s *session) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	until := s.until
	l.mu.Unlock()
	lost := func(reason string) error {
		return &sessionEnd{&lock.LostError{Reason: reason, Err: lock.ErrLost}}
	}
	ctx, end := context.WithCancelCause(ctx)
	ignore := context.AfterFunc(s.alive, func() { end(lost("the session has ended")) })
	ctx, cancel := context.WithDeadlineCause(ctx, until, lost(notRenewed))
	return ctx, func() { ignore(); cancel(); end(nil) }
}

// begin begins a session and returns when it is in the view.
func (l *Locker) begin(ctx context.Context) (*session, error) {
	sent := time.Now()
	lease, err := l.client.Grant(ctx, int64(l.config.TTL/time.Second))
	if err != nil {
		return nil, err
	}
	s := &session{
		lease: lease.ID, key: fmt.Sprintf("%s%016x", l.prefix, int64(lease.ID)),
		ttl: time.Duration(lease.TTL) * time.Second,
	}
	s.alive, s.stop = context.WithCancel(context.Background())
	s.renewed(sent)
	put, err := l.client.Put(ctx, s.key, "", clientv3.WithLease(s.lease))
	if err == nil {
		err = l.seen(ctx, put.Header.Revision)
	}
	if err != nil { // run begins another one soon: without this, each leaves a lease for the TTL
		l.endLease(ctx, s)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
	l.wake()
	return s, nil
}

// run keeps a session alive, and begins another one after its end, until ctx ends.
func (l *Locker) run(ctx context.Context, s *session) {
	for s != nil {
		reason := l.keep(ctx, s)
		l.mu.Lock()
		l.end(s, reason)
		l.mu.Unlock()
		// All holders must have been notified before others get their locks.
		s.endings.Wait()
		// The claims of the session block others until the lease ends: end it, if
		// etcd answers.
		l.endLease(ctx, s)
		s = nil
		for s == nil && ctx.Err() == nil {
			// A session that takes longer to begin has little time left for its first
			// renewal.
			bounded, cancel := context.WithTimeout(ctx, l.config.TTL/3)
			s, _ = l.begin(bounded)
			cancel()
			if s == nil {
				sleep(ctx, retryPause)
			}
		}
	}
}

// endLease ends the lease of a session, if etcd answers.
func (l *Locker) endLease(ctx context.Context, s *session) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	_, _ = l.client.Revoke(bounded, s.lease)
}

// keep renews a session until it ends, and returns the reason.
func (l *Locker) keep(ctx context.Context, s *session) (reason string) {
	l.mu.Lock()
	next := time.Until(s.until) - s.ttl/2 // at once, if Open has taken long to begin the session
	l.mu.Unlock()
	for {
		select {
		case <-time.After(next):
		case <-s.alive.Done():
			return "" // end was called with it
		case <-ctx.Done():
			return "the locker was closed"
		}
		sent := time.Now()
		err := l.renew(ctx, s)
		l.mu.Lock()
		late := !time.Now().Before(s.until)
		if next = retryPause; err == nil && !late {
			s.renewed(sent)
			next = s.ttl / 3
		}
		next = min(next, time.Until(s.until))
		l.mu.Unlock()
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return "the lease has ended"
		case late:
			return notRenewed
		}
	}
}

// renew renews the lease. Its answer alone proves nothing: versions of etcd before
// 3.5.23 and 3.6.5 also renew a lease that was revoked. So it reads the keys too, and
// obeys the orders among them, which a watch that hangs does not show.
func (l *Locker) renew(ctx context.Context, s *session) error {
	ctx, cancel := l.within(ctx, s)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, s.ttl/3)
	defer cancel()
	if _, err := l.client.KeepAliveOnce(ctx, s.lease); err != nil {
		return err
	}
	v, err := l.read(ctx, s.key)
	if err != nil {
		return err
	}
	if v.sessions[s.key] == 0 {
		return rpctypes.ErrLeaseNotFound
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range v.claims {
		if a := l.own[c.key]; a != nil {
			a.replace(c)
			a.obey(c)
		}
	}
	return nil
}

// end ends a session: all its grants are lost. Only the first call has an effect. It
// needs mu.
func (l *Locker) end(s *session, reason string) {
	if l.session != s {
		return
	}
	l.session = nil
	s.stop()
	for _, a := range l.own { // all are of the session
		a.end(a.lost(reason), keepKey)
	}
	l.wake()
}
