package locktest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/interlock-go/interlock/lock"
)

// Several returns one locker for several lockers of one tree, such as those of several
// processes, so that Run tests them together. Each acquisition and each Break is a
// call of the next one. The first one makes the acquisitions with an id: an id belongs to
// one process. Revoke is a call of each: a driver may notify a holder in another process
// soon after Revoke has returned.
func Several[L lock.Locker](lockers ...L) lock.Locker {
	s := &several{Locker: lockers[0]}
	for _, l := range lockers {
		s.all = append(s.all, l)
	}
	return s
}

// lockers returns the lockers that a locker under test consists of.
func lockers(l lock.Locker) []lock.Locker {
	if s, ok := l.(*several); ok {
		return s.all
	}
	return []lock.Locker{l}
}

type several struct {
	lock.Locker // the first one
	all         []lock.Locker
	calls       atomic.Uint64
}

func (s *several) next(o *lock.Options) lock.Locker {
	if o != nil && o.ID != "" {
		return s.Locker
	}
	return s.all[s.calls.Add(1)%uint64(len(s.all))]
}

func (s *several) TryLock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Grant, error) {
	return s.next(o).TryLock(ctx, r, o)
}

func (s *several) Lock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Grant, error) {
	return s.next(o).Lock(ctx, r, o)
}

func (s *several) TryLockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	return s.next(o).TryLockAll(ctx, rs, o)
}

func (s *several) LockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	return s.next(o).LockAll(ctx, rs, o)
}

func (s *several) Break(ctx context.Context, t lock.Token, reason string) error {
	return s.next(nil).Break(ctx, t, reason)
}

func (s *several) Revoke(ctx context.Context, t lock.Token, reason string) (err error) {
	for _, l := range s.all {
		err = errors.Join(err, l.Revoke(ctx, t, reason))
	}
	return err
}
