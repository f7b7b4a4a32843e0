package lifecycle

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/internal/decide"
)

// Recaller is a [Store] that remembers records, so that a [Manager] need not read
// one before it writes. The manager decides on what is remembered first. If that
// leads to a commit, its comparison proves that the record is still that one: by
// its revision and state, and by [StoredChange].Before. Whatever else comes of it,
// be it a refusal, an event that is ignored, an error of Edit, a panic of a guard or
// a conflict, is dropped and nobody is told: everything is done again on the record
// as it is now. So an answer is never older than the call, and what it costs to be
// wrong is the attempt. An unknown outcome is the exception: it is settled and
// returned as ever.
//
// So guards and [Change].Edit may be called once more than without, on a record
// that is over: as a call that is tried again after a conflict would. What they do
// beside giving their answer is done twice then, and what they say, or panic with,
// the first time is not heard.
//
// What is read for its own sake, as by [Manager.Get], is never recalled, nor are
// the objects of several changes in one commit, or of managers with Config.Along.
type Recaller interface {
	// Recall returns a record as this store has last read or written it, false if
	// it remembers none. It is that of an object which exists. It need not be the
	// present one, but must be what Get has returned, or would have, for its
	// Revision: one that was committed, in every field. It does no I/O.
	//
	// After a conflict about the record, or an unknown outcome, the same one is
	// not recalled until it is read again. The Current of the store's conflicts
	// is as fresh as a Get that begins after Commit does; and of a commit that it
	// has refused, the store keeps nothing.
	Recall(key Key) (StoredRecord, bool)
}

// recall takes the record that the store remembers for the one before, and
// reports whether there is one to begin with.
func (c *call[S, E, T]) recall(ctx context.Context) bool {
	m := c.m
	if m.recaller == nil || c.told || c.q.Repeats || m.along != nil || ctx.Err() != nil {
		return false
	}
	if c.q.Verb < decide.Fire && !c.creates {
		return false // what is to be made is not there
	}
	key := m.key(c.id)
	r, ok := m.recaller.Recall(key)
	if !ok || r.Key != key || !r.Exists() {
		return false
	}
	c.before = r
	return true
}

// guess is attempt on the record that was recalled. If it is not settled, nothing
// was written, nobody was told, and the call is as it was: what the guess came to
// is no answer. The record is known then if a conflict has told it.
func (c *call[S, E, T]) guess(ctx context.Context) (settled bool, err error) {
	q, event, actor := c.q, c.event, c.actor
	payload, ok := c.foresee(ctx)
	if ok {
		c.lent = true
		err = c.send(ctx, &c.draft)
		switch {
		case err == nil:
			c.lent = false
			c.written(payload)
			c.tell()
			return true, nil
		case errors.Is(err, ErrUnknownOutcome):
			// It may be written. Nothing is sent under another token.
			return true, err
		}
	}
	c.q, c.event, c.actor, c.ignored = q, event, actor, false
	if lost, conflict := c.lost(err); conflict && lost.Change == 0 && lost.Current.Key == c.m.key(c.id) {
		c.before, c.told, c.aged = lost.Current, true, false
	}
	return false, nil
}

// foresee decides on the record that was recalled, and plans the commit; false if
// there is nothing to write. Guards and Edit may panic over a record that is over.
// If they do over the present one, too, nobody recovers it here.
func (c *call[S, E, T]) foresee(ctx context.Context) (payload T, ok bool) {
	c.told, c.aged, c.guesses = true, true, true
	defer func() {
		c.told, c.guesses = false, false
		if recover() != nil {
			ok = false
		}
	}()
	err := c.prepare(ctx)
	if err != nil || !c.d.Write {
		return payload, false
	}
	payload, err = c.plan()
	return payload, err == nil
}

// errGuess: to go on would cost more than to read the record does.
var errGuess = errors.New("lifecycle: only the present record tells")
