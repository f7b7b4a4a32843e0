package sqllock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/lock"
)

// session is a locker in the engine. Its grants hold while it is renewed.
//
//	the locker sends a renewal at t      the grants hold until t + 0.9 TTL
//	the engine records it at u, u >= t   the engine removes the locks after u + TTL
//
// So a loss is announced before the engine grants again, if the clock of the engine runs less
// than 10 % faster than that of the process.
type session struct {
	id    int64
	wake  chan struct{}   // full when the engine has news
	alive context.Context // ends with the session
	stop  func()          // ends alive

	renewed time.Time // when the last successful renewal was sent; guarded by Locker.mu
}

// bound returns a context that ends with the session too. A statement of the session has no
// effect after that, and a connection that hangs must not hold the call.
func (s *session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	ended := context.AfterFunc(s.alive, cancel)
	return ctx, func() { ended(); cancel() }
}

// look makes the session read the news, soon after the call.
func (s *session) look() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already, and looks later than now
	}
}

const (
	firstPause   = 20 * time.Millisecond // before a failed statement is repeated
	longestPause = time.Second
)

// begin begins a session in the place of another one, which is over.
func (l *Locker) begin(ctx context.Context, former int64) (*session, error) {
	s := &session{wake: make(chan struct{}, 1), renewed: time.Now()}
	s.alive, s.stop = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeoutCause(ctx, l.config.TTL/3, errSlow)
	defer cancel()
	err := l.query(ctx, "begin", []any{l.tree, former, l.config.TTL.Milliseconds()}, &s.id)
	return s, err
}

// repeat calls try until it is done or the context ends.
func repeat(ctx context.Context, try func() (done bool)) {
	for pause := firstPause; ctx.Err() == nil && !try(); pause = min(2*pause, longestPause) {
		sleep(ctx, pause)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// holds reports whether the grants of the session hold. Time is that of the monotonic clock.
// Locker.mu is held.
func (l *Locker) holds(s *session) bool { return s.alive.Err() == nil && l.left(s) > 0 }

// left returns how long the grants of the session hold without a renewal.
func (l *Locker) left(s *session) time.Duration { return l.config.TTL*9/10 - time.Since(s.renewed) }

// run keeps sessions, one after the other, until the context ends.
func (l *Locker) run(ctx context.Context, s *session) {
	defer close(l.ended)
	for ctx.Err() == nil { // Close ends the last session
		l.keep(ctx, s)
		repeat(ctx, func() (done bool) {
			next, err := l.begin(ctx, s.id)
			if err != nil {
				return false
			}
			s = next
			l.mu.Lock()
			defer l.mu.Unlock()
			l.session = s
			return true
		})
	}
}

// end ends a session. Its holders are notified, and its waiting calls return an error.
func (l *Locker) end(s *session, reason string) {
	l.mu.Lock()
	s.stop()
	claims := l.claims
	l.claims, l.ids = map[int64]*claim{}, map[string]*claim{}
	for _, c := range claims {
		if c.state != held {
			close(c.granted)
		}
		c.state = gone
		close(c.released)
	}
	l.mu.Unlock()
	for _, c := range claims {
		c.lose(&lock.LostError{Token: c.Token(), Reason: reason, Err: lock.ErrLost})
	}
}

// keep renews the session until the context ends, or until it cannot hold any more, and ends
// it then.
func (l *Locker) keep(ctx context.Context, s *session) {
	listening, stop := context.WithCancel(ctx)
	var listener sync.WaitGroup
	listener.Go(func() { l.listenTo(listening, s) })
	defer listener.Wait()
	defer stop()
	var pause time.Duration
	var err error // of the latest tick
	for ctx.Err() == nil {
		l.mu.Lock()
		left := l.left(s)
		l.mu.Unlock()
		if left <= 0 || errors.Is(err, errEnded) {
			l.end(s, cmp.Or(err, errLate).Error()) // before the listener ends, which may take a while
			return
		}
		pause, err = l.tick(ctx, s, left)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-time.After(min(pause, left)):
		}
	}
}

var (
	errSlow  = errors.New("a session did not begin within a third of the TTL")
	errLate  = errors.New("the session was not renewed in time")
	errEnded = errors.New("the engine has ended the session")
)

// news is what happened to a claim.
type news struct {
	Attempt int64  `json:"attempt"`
	Number  int64  `json:"number"`
	Token   int64  `json:"token"`
	Mark    mark   `json:"mark"`
	Why     string `json:"why"`
}

// tick renews the session if it is time, reads the news, and returns when to come again: for
// the next renewal, and for any session that may expire, so that what waits for it is granted.
func (l *Locker) tick(ctx context.Context, s *session, left time.Duration) (pause time.Duration, err error) {
	attempts, paths := []int64{}, []string{}
	l.mu.Lock()
	renew := time.Since(s.renewed) >= l.config.TTL/3
	for _, c := range l.claims {
		if c.state != held {
			attempts, paths = append(attempts, c.attempt), append(paths, key(c.asked[0].Path))
		}
	}
	l.mu.Unlock()
	var alive bool
	var due float64
	var all list[news]
	sent := time.Now()
	ctx, cancel := context.WithTimeout(ctx, min(left, l.config.TTL/3))
	defer cancel()
	if err := l.query(ctx, "tick", []any{l.tree, s.id, renew, attempts, paths}, &alive, &due, &all); err != nil {
		return firstPause, err
	}
	if !alive {
		return 0, errEnded
	}
	l.mu.Lock()
	// A renewal whose answer comes too late does not bring a grant back that Check has
	// reported as lost.
	if renew && l.holds(s) {
		s.renewed = sent
	}
	pause = l.config.TTL/3 - time.Since(s.renewed)
	l.mu.Unlock()
	for _, n := range all {
		l.apply(n)
	}
	expiry := time.Duration(due*float64(time.Second)) + time.Millisecond
	return max(min(pause, expiry), time.Millisecond), nil
}

// apply does what the engine reports of a claim.
func (l *Locker) apply(n news) {
	l.mu.Lock()
	c := l.claims[n.Attempt]
	if c != nil && n.Token > 0 {
		c.hold(n.Number, n.Token)
	}
	if c != nil && c.state != held {
		// A mark that the locker has made itself is faster than the tick that reads the grant.
		// That tick reads the mark too.
		l.session.look()
		c = nil
	}
	l.mu.Unlock()
	switch {
	case c == nil: // it was released meanwhile, or comes again
	case n.Mark == revoked:
		c.lose(&lock.LostError{Token: c.Token(), Reason: n.Why, Err: lock.ErrRevoked})
	case n.Mark == broken:
		c.lose(&lock.LostError{Token: c.Token(), Reason: n.Why, Err: lock.ErrLost})
		c.release(context.Background())
	}
}

// listenTo wakes the session when the engine notifies it, until the context ends. After a lost
// connection it wakes, too: a notification may be lost.
func (l *Locker) listenTo(ctx context.Context, s *session) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		conn, err := pgx.ConnectConfig(ctx, l.listen)
		if err == nil {
			_, err = conn.Exec(ctx, fmt.Sprintf("LISTEN interlock_lock_%d", s.id))
			for err == nil {
				pause = firstPause
				s.look()
				_, err = conn.WaitForNotification(ctx)
			}
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
			_ = conn.Close(closing)
			cancel()
		}
		sleep(ctx, pause)
	}
}
