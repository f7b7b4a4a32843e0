package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// commit writes what was decided. The error is that of the store or of Edit.
func (c *call[S, E, T]) commit(ctx context.Context) error {
	payload, err := c.plan()
	if err != nil {
		return err
	}
	if c.m.along != nil {
		return c.commitAlong(ctx, payload)
	}
	c.lent = true
	if err := c.send(ctx, &c.draft); err != nil {
		return err
	}
	c.lent = false
	c.written(payload)
	c.tell()
	return nil
}

// plan fills the commit that was decided.
func (c *call[S, E, T]) plan() (payload T, err error) {
	states, d, ch := c.m.table.States, &c.d, &c.one[0]
	c.draft.Changes = c.one[:]
	ch.Expect, ch.From, ch.FromOrigin = c.before.Revision, c.before.State, c.before.Origin
	ch.Within, ch.Remove, ch.Before = d.Within, d.Removes, nil
	if c.aged && c.before.Exists() {
		ch.Before = &c.before
	}
	to := &ch.To
	to.Key, to.State, to.Origin, to.Target = c.before.Key, states[d.State].Name, states[d.Origin].Name, c.target()
	to.Sequence, to.Operation = d.Sequence, OpID(d.Operation)
	to.Actor, to.Reason = c.actor, c.reason
	to.Payload, to.Saved = c.before.Payload, c.before.Saved
	switch c.q.Verb {
	case decide.Add:
		to.Event = ""
	case decide.Override:
		to.Event = Overridden
	default:
		to.Event = c.m.table.Events[c.q.Event]
	}
	switch d.Work {
	case decide.SameWork:
		to.Owner, to.Epoch = c.before.Owner, c.before.Epoch
		to.Work, to.Args, to.Steps = c.before.Work, c.before.Args, c.before.Steps
		if states[d.State].Kind.Resting() {
			to.Steps = following(to.Steps)
		}
	case decide.NewWork:
		to.Owner, to.Epoch = c.m.self()
		to.Work, to.Args, to.Steps = c.work.Handler, c.work.Args, c.steps
	case decide.Redo:
		to.Owner, to.Epoch = c.m.self()
		to.Work, to.Args, to.Steps = c.before.Work, c.before.Args, c.before.Steps
	case decide.NoWork:
		to.Owner, to.Epoch = "", 0
		to.Work, to.Args, to.Steps = "", nil, nil
		if c.joins && d.Begins {
			to.Owner, to.Epoch = c.m.self()
		}
	}
	c.draft.Token, c.draft.Require, c.draft.Messages = c.tokens.next(), nil, nil
	if c.change != nil {
		c.draft.Require, c.draft.Messages = c.change.Require, c.change.Messages
	}
	return c.edit(to)
}

// written notes that a commit was, and tells who waits for that or has to end.
func (c *call[S, E, T]) written(payload T) {
	c.wrote, c.result = true, payload
	to := c.after()
	c.m.taken(to, c.task)
	c.m.watchers.tell(to.Key)
}

// tell tells the observer, who may panic, and therefore comes last.
func (c *call[S, E, T]) tell() {
	if tell := c.m.observer.Changed; tell != nil {
		tell(c.draft.Changes[0].Row(c.draft.Token))
	}
}

// target is where the object is heading: the state that the table says a
// transitional state leads to, or else what was said before in this operation.
func (c *call[S, E, T]) target() string {
	d := &c.d
	st := &c.m.table.States[d.State]
	switch {
	case st.Kind != fsm.Transitional:
		return ""
	case st.Target >= 0:
		return c.m.table.States[st.Target].Name
	case d.Begins:
		return ""
	}
	return c.before.Target
}

// edit sets the payloads of the record to write, and returns a copy of the
// present one for the caller.
func (c *call[S, E, T]) edit(to *StoredRecord) (payload T, err error) {
	switch c.d.Payload {
	case decide.Save:
		to.Saved = c.before.Payload
		if to.Saved == nil {
			to.Saved = RawPayload{} // the zero payload is kept too
		}
	case decide.Restore:
		to.Payload = c.before.Saved
	case decide.Keep, decide.Drop:
	}
	if !c.d.Saved {
		to.Saved = nil
	}
	if !c.before.Exists() {
		if to.Payload, err = c.m.pack(c.payload); err != nil {
			return payload, err
		}
	}
	if c.q.Edits {
		return c.edited(to)
	}
	payload, err = c.m.unpack(to.Payload)
	if err != nil && c.q.Verb == decide.Override && c.d.Removes {
		var none T // nothing of it is kept: who takes it away need not be able to read it
		return none, nil
	}
	return payload, err
}

// edited has the payload of the record to write edited. It stands by itself
// because what Edit sees is allocated, and most calls edit nothing.
func (c *call[S, E, T]) edited(to *StoredRecord) (T, error) {
	payload, err := c.m.unpack(to.Payload)
	if err != nil {
		return payload, err
	}
	if err := c.change.Edit(&payload); err != nil {
		return payload, err
	}
	if to.Payload, err = c.m.pack(payload); err != nil {
		return payload, err
	}
	// What Edit put into the payload may be shared with its caller.
	if !c.m.plain {
		payload, err = c.m.unpack(to.Payload)
	}
	return payload, err
}

// send commits, and settles an unknown outcome by sending the same token again.
// After an unknown outcome only two things are certain: nil, and a history in
// which the row at this commit's place has another token. A conflict alone may
// be with this very commit, once its row is trimmed or forgotten; a failed
// precondition may have held when the first sending, still under way, asked.
func (c *call[S, E, T]) send(ctx context.Context, commit *Commit) error {
	c.sent = true
	err := c.m.store.Commit(ctx, commit)
	if err == nil || !errors.Is(err, ErrUnknownOutcome) {
		return err
	}
	return c.sendAgain(ctx, commit, err)
}

func (c *call[S, E, T]) sendAgain(ctx context.Context, commit *Commit, unknown error) error {
	for range 2 {
		if ctx.Err() != nil { // the store can still be asked, for a moment
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), askAgainFor)
			defer stop()
		}
		err := c.m.store.Commit(ctx, commit)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrUnknownOutcome):
			unknown = err
		case c.disproved(ctx, commit, err):
			return err
		default:
			return &UnknownOutcomeError{Token: commit.Token, Err: again(unknown, err)}
		}
	}
	return &UnknownOutcomeError{Token: commit.Token, Err: unknown}
}

// askAgainFor is how long a lost answer is looked for when the caller has gone.
const askAgainFor = time.Second

// disproved reports whether a conflict proves that a commit was not written and
// never will be: another one has its place in the history.
func (c *call[S, E, T]) disproved(ctx context.Context, commit *Commit, err error) bool {
	historian, ok := c.m.historian()
	conflict, is := errors.AsType[*ConflictError](err)
	if !ok || !is {
		return false
	}
	to := &commit.Changes[conflict.Change].To
	rows, err := historian.History(ctx, to.Key, to.Sequence-1, 1)
	return err == nil && len(rows) == 1 && rows[0].Sequence == to.Sequence && rows[0].Token != commit.Token
}

// again joins two answers to one commit. An answer that would be certain, had
// nothing been sent before, is kept as text only: nobody is to act on it.
func again(unknown, err error) error {
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrPrecondition) {
		return fmt.Errorf("%w; sent again: %v", unknown, err)
	}
	return fmt.Errorf("%w; sent again: %w", unknown, err)
}
