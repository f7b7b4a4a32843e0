package sqlstore

import (
	"context"
	"math/rand/v2"
	"time"
)

// mostBroken is the number of attempts after errors that time alone does not heal:
// broken connections (a pool may keep connections that ended long ago), and keys of
// another unique index, which may belong to a row that is being removed.
const mostBroken = 3

// retry decides whether a call is made again. It is the only place that does.
type retry struct {
	until    time.Time // the end of attempts while other transactions are in the way
	attempts int
	broken   int
}

func (s *shared) retries() *retry { return &retry{until: time.Now().Add(s.config.RetryFor)} }

// again waits before the next attempt. It reports false if the error is final, the
// time is over, or the context ends.
func (r *retry) again(ctx context.Context, err error) bool {
	switch classify(err) {
	case refused:
		return false
	case busy:
		if !time.Now().Before(r.until) {
			return false
		}
	case noAnswer, duplicate:
		if r.broken++; r.broken > mostBroken {
			return false
		}
	}
	r.attempts++
	return pause(ctx, r.attempts)
}

// pause waits for a random time that grows with the attempts, up to about 60 ms. It
// reports whether the context lasts.
func pause(ctx context.Context, attempts int) bool {
	most := min(time.Millisecond<<min(attempts-1, 10), 50*time.Millisecond)
	timer := time.NewTimer(rand.N(most) + most/4)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
