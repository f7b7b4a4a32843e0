package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// errUnsettled is of a commit of which the store cannot say what became of it,
// or says what cannot be.
var errUnsettled = errors.New("storetest: a commit is not settled")

// settle commits, and after an unknown outcome sends the same commit again until
// the store can say what became of it. It reports whether it was written, and
// otherwise what the store said, or errUnsettled.
func (t *trial) settle(ctx context.Context, c *lifecycle.Commit) (wrote bool, err error) {
	sent := again(c)
	unknown := false
	for end := time.Now().Add(t.patience); ; {
		twin := again(sent)
		err := send(ctx, t.store, twin)
		switch {
		case err == nil:
			c.Changes = twin.Changes
			return true, nil
		case errors.Is(err, lifecycle.ErrUnknownOutcome):
			unknown = true
		case errors.Is(err, lifecycle.ErrConflict), errors.Is(err, lifecycle.ErrPrecondition):
			// It is true also of a commit that was sent before: had that been
			// written, its token would be known.
			return false, err
		case errors.Is(err, lifecycle.ErrClosed), errors.Is(err, lifecycle.ErrInvalid), errors.Is(err, errors.ErrUnsupported):
			return false, fmt.Errorf("%w: it has only lost its way: %w", errUnsettled, err)
		case !unknown:
			return false, err
		}
		if ctx.Err() != nil {
			ctx = t.Context() // the caller has gone, the store can still be asked
		}
		if time.Now().After(end) {
			return false, fmt.Errorf("%w within %v: %w", errUnsettled, t.patience, err)
		}
		time.Sleep(time.Millisecond) // an engine that starts is not helped by haste
	}
}

// recover repeats a read until it succeeds: what has cut a connection may make
// one or two calls fail.
func (t *trial) recover(what string, read func() error) {
	t.Helper()
	for end := time.Now().Add(t.patience); ; {
		err := read()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s fails for %v after its connection was cut: %v", what, t.patience, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// recovered waits until the store has thrown away every connection that was
// broken: until as many reads at once as it may have connections all succeed.
func (t *trial) recovered() {
	t.Helper()
	t.recover("Get", func() error {
		var errs [16]error
		together(len(errs), func(i int) { _, errs[i] = t.store.Get(t.Context(), key("a")) })
		return errors.Join(errs[:]...)
	})
}

// wait waits for a channel to be closed, as long as is reasonable.
func (t *trial) wait(what string, closed <-chan struct{}) {
	t.Helper()
	late := time.NewTimer(t.patience)
	defer late.Stop()
	select {
	case <-closed:
	case <-late.C:
		t.Fatalf("%s takes longer than %v", what, t.patience)
	}
}

// reread reads an object, however often it takes.
func (t *trial) reread(k lifecycle.Key) (r lifecycle.StoredRecord) {
	t.Helper()
	t.recover("Get", func() (err error) {
		r, err = t.store.Get(t.Context(), k)
		return err
	})
	return r
}

// rows reads the history of an object, however often it takes.
func (t *trial) rows(k lifecycle.Key) (rows []lifecycle.HistoryRow) {
	t.Helper()
	t.recover("History", func() (err error) {
		rows, err = t.store.(lifecycle.Historian).History(t.Context(), k, 0, all)
		return err
	})
	return rows
}

// judge demands that a store has told the truth about a commit that nobody
// contests, whatever happened to its connection: err is what Commit returned,
// were the records before it. It returns the records as they are now.
func (t *trial) judge(c *lifecycle.Commit, err error, were []lifecycle.StoredRecord) (now []lifecycle.StoredRecord, wrote bool) {
	t.Helper()
	said := "nothing that is wrong"
	if err != nil {
		said = err.Error()
	}
	switch {
	case err == nil:
		wrote = true
	case errors.Is(err, lifecycle.ErrUnknownOutcome):
		if wrote, err = t.settle(t.Context(), c); err != nil {
			t.Fatalf("a commit that nobody contests had an unknown outcome (%s) and is, sent again: %v", said, err)
		}
	case errors.Is(err, lifecycle.ErrConflict):
		t.Fatalf("a commit that nobody contests is a conflict: %v", err)
	}
	for i := range were {
		r := t.reread(were[i].Key)
		ch := &c.Changes[i]
		switch {
		case !wrote:
			same(t, "a commit that was not written, as the store says ("+said+"): "+in(&were[i]), r, were[i])
		case ch.Remove:
			if r.Exists() {
				t.Errorf("a removal was acknowledged, the object is %s", in(&r))
			}
		default:
			same(t, "a commit that is acknowledged", r, ch.To)
		}
		if t.store.Capabilities().History {
			with := 0
			for _, row := range t.rows(were[i].Key) {
				if row.Token == c.Token {
					with++
				}
			}
			if wrote != (with == 1) || with > 1 {
				t.Errorf("the store says (%s), the history has %d rows with the token", said, with)
			}
		}
		now = append(now, r)
	}
	if t.Failed() {
		t.FailNow()
	}
	return now, wrote
}
