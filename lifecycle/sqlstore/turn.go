package sqlstore

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// turn is the right to write to an engine with one writer: waits here end when it
// is free, those in the engine are polls. Whoever is running takes it before those
// that sleep, who would have to be woken for every commit; but who has waited for
// patience gets it next. It also knows what was written last: many callers after
// one object need no turn to see that they are late.
type turn struct {
	mu      sync.Mutex
	taken   bool
	woken   bool      // somebody who was woken has not yet looked
	waiting []*waiter // the first one first
	last    writing
}

// patience is how long somebody is overtaken.
const patience = 10 * time.Millisecond

type waiter struct {
	ready chan struct{} // with room for one
	since time.Time
	given bool // it has the turn; guarded by turn.mu
}

// writing is what a commit of one object has made.
type writing struct {
	key    lifecycle.Key
	number int64
	token  lifecycle.Token
}

// take waits for the turn, unless it is too late for a job: another commit of this
// process has written its object, and the record is to be read. After true and nil,
// give must be called.
func (t *turn) take(ctx context.Context, j *job) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.late(j) {
		return false, nil
	}
	if !t.taken {
		t.taken = true
		return true, nil
	}
	w := &waiter{ready: make(chan struct{}, 1), since: time.Now()}
	t.waiting = append(t.waiting, w)
	for {
		t.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
			err = lifecycle.Ended(ctx)
		}
		t.mu.Lock()
		i := slices.Index(t.waiting, w)
		late := t.late(j)
		switch {
		case i >= 0 && err != nil: // nobody has woken it
			t.waiting = slices.Delete(t.waiting, i, i+1)
			return false, err
		case w.given && err == nil && !late:
			return true, nil
		case w.given:
			t.next()
			return false, err
		}
		t.woken = false
		switch {
		case err != nil || late:
			if !t.taken {
				t.next()
			}
			return false, err
		case !t.taken:
			t.taken = true
			return true, nil
		}
		t.waiting = slices.Insert(t.waiting, 0, w) // somebody was faster, who wakes the first one
	}
}

// late reports whether what a job of one object expects is older than what was
// written last. It is a guess, for an engine may lose what was written: the record
// tells.
func (t *turn) late(j *job) bool {
	if len(j.steps) != 1 || j.looked || t.last.number == 0 {
		return false
	}
	st := &j.steps[0]
	if st.ch.To.Key != t.last.key {
		return false
	}
	before, _ := st.vals[vExpectToken].([]byte)
	return st.expect < t.last.number || st.expect == t.last.number && !bytes.Equal(before, t.last.token[:])
}

// give ends a turn; a job that was written is noted.
func (t *turn) give(j *job, wrote bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wrote {
		t.last = writing{}
		if len(j.steps) == 1 {
			st := &j.steps[0]
			t.last = writing{st.ch.To.Key, st.expect + 1, j.c.Token}
		}
	}
	t.next()
}

// next frees the turn and wakes one who waits, unless somebody was woken already,
// who will look. REQUIRES: mu.
func (t *turn) next() {
	t.taken = false
	if len(t.waiting) == 0 {
		return
	}
	w := t.waiting[0]
	late := time.Since(w.since) > patience
	if t.woken && !late {
		return
	}
	t.waiting = slices.Delete(t.waiting, 0, 1)
	if late {
		w.given, t.taken = true, true
	} else {
		t.woken = true
	}
	w.ready <- struct{}{}
}
