package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/interlock-go/interlock/lock"
)

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

// mark is what an operator has ordered of a grant.
type mark int

const (
	revoked mark = 1
	broken  mark = 2
)

func (l *Locker) mark(ctx context.Context, t lock.Token, how mark, reason string) error {
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
