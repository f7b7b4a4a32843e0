package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What follows a commit, or a decision, that has failed.

// maxAttempts is how often a transaction is tried in all, see [transaction.mayRetry].
const maxAttempts = 16

// pin holds requests to the records of the first attempt, if they are not valid in
// every state. The bad schedule without it: a change that BeforeCommit has added
// meets a conflict, meanwhile the object itself is moved, and the next attempt
// fires the caller's event in a state that no guard of this call has seen, or an event
// that was to create the object in one that another caller has created.
func pin(requests []*request) {
	for _, r := range requests {
		switch {
		case r.anyState:
		case !r.before.Exists():
			r.ask.MayExist = false
		case r.IfMatch != "":
			r.IfMatch = r.before.etag()
		default:
			r.pinned = r.before.Revision
		}
	}
}

// overtaken returns the first request of the transaction whose object has moved
// since it was loaded, and its conflict. BeforeCommit reads other objects later than
// that, and what it finds may not fit any more: then its error is a conflict. Errors
// of the caller's own requests stay as they are.
func (t *transaction) overtaken(ctx context.Context, culprit *request, err error) (*request, *ConflictError) {
	if _, ok := errors.AsType[*hookError](err); !ok && culprit.addedBy == nil {
		return nil, nil
	}
	for i, r := range t.writes {
		ch := r.form
		now, err := r.core.get(ctx, r.key)
		if err == nil && now.Revision != ch.Expect {
			t.answered = true
			return r, &ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now}
		}
	}
	return nil, nil
}

// culprit returns the request that an answer of the store is about: the one whose
// change or precondition failed, else the first.
func (t *transaction) culprit(err error) *request {
	var conflict *ConflictError
	var again *RepeatedError
	var failed *PreconditionError
	blamed := func(*request) bool { return false }
	switch {
	case errors.As(err, &conflict) && conflict.Change < len(t.writes):
		return t.writes[conflict.Change]
	case ownerLost(err):
		blamed = func(r *request) bool { _, owned := r.writer(); return owned }
	case errors.As(err, &again):
		blamed = func(r *request) bool { return r.Request.ID == again.Row.Request && r.key.Machine == again.Row.Machine }
	case errors.As(err, &failed):
		blamed = func(r *request) bool { return slices.ContainsFunc(r.Require, failed.Precondition.equal) }
	}
	return t.writes[max(0, slices.IndexFunc(t.writes, blamed))]
}

// mayRetry is the one retry policy. It reports whether the next attempt may succeed
// after a conflict:
//
//   - A request about an operation (a report, an outcome, a heartbeat), or of Migrate, is
//     valid in whatever state the object is, so it is decided again.
//   - A request with ETags is valid as long as the object keeps the one that it had:
//     only its deadline has moved on.
//   - A request that creates an object is valid as long as the object does not
//     exist: only the numbers of the absent record have moved on.
//   - A change or precondition that BeforeCommit has added, or a precondition of such a
//     change: BeforeCommit runs again and may return something else.
//
// Any other conflict is the caller's: the request may be wrong for the state that
// the object is in now.
func (t *transaction) mayRetry(culprit *request, err error) bool {
	if errors.Is(err, ErrUnknownOutcome) {
		// A heartbeat that was written twice does no harm.
		return t.answered && !slices.ContainsFunc(t.writes, func(r *request) bool { return !r.decision.MetadataOnly })
	}
	if failed, ok := err.(*PreconditionError); ok {
		return t.answered && slices.ContainsFunc(t.hooked, failed.Precondition.equal)
	}
	conflict, ok := err.(*ConflictError)
	switch {
	case !ok:
		return false
	case culprit.addedBy != nil: // also one that expects another revision
		return conflict.Current.Key == culprit.key
	case !t.answered:
		return false
	case culprit.anyState, culprit.IfMatch != "" && conflict.Current.matches(culprit.before.etag()):
		return true
	}
	return conflict.From == "" && !conflict.Current.Exists()
}

// blame returns the caller's request that an error is about, and the error as it
// is about that request.
func (t *transaction) blame(ctx context.Context, requests []*request, culprit *request, err error) (*request, error) {
	if conflict, ok := err.(*ConflictError); ok && t.answered && conflict.From == "" && conflict.Current.Exists() {
		err = &existsError{conflict}
	}
	if culprit.addedBy == nil {
		if failed, ok := err.(*PreconditionError); ok && slices.ContainsFunc(t.hooked, failed.Precondition.equal) {
			err = &hookError{err}
		}
		if conflict, ok := err.(*ConflictError); ok && (culprit.Expect != "" || culprit.IfMatch != "") {
			err = &revisionError{conflict, culprit.IfMatch}
		}
	} else {
		err = &hookError{culprit.fail(ctx, err)}
	}
	for culprit.addedBy != nil {
		culprit = culprit.addedBy
	}
	return orRepeated(ctx, requests, culprit, err)
}

// hookError is an error of BeforeCommit or of a change that it has added.
type hookError struct{ error }

func (e *hookError) Unwrap() error { return e.error }

// resolveWithin is how long an unknown outcome is resolved after the caller's
// context has ended.
const resolveWithin = time.Second

// resolve finds out whether a commit of unknown outcome was written, by sending the same
// token again.
//
// After an unknown outcome only two answers are certain: success, and a conflict
// together with a history whose row at this commit's place has another token. A
// conflict alone may be with this very commit, once the store has trimmed its row.
// A failed precondition may have held when the first sending, which may still be
// under way, was checked.
func (c *core) resolve(ctx context.Context, commit *Commit, unknown error) error {
	for range 2 {
		if ctx.Err() != nil {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), resolveWithin)
			defer stop()
		}
		err := c.store.Commit(ctx, commit)
		switch {
		case err == nil || c.disproved(ctx, commit, err):
			return err
		case errors.Is(err, ErrUnknownOutcome):
			unknown = err
			continue
		}
		if unknown = sentAgain(unknown, err); ctx.Err() == nil {
			break
		}
	}
	return &UnknownOutcomeError{Token: commit.Token, Err: unknown}
}

// disproved reports whether a conflict proves that a commit was not written and
// never will be: another commit has its place in the history.
func (c *core) disproved(ctx context.Context, commit *Commit, err error) bool {
	conflict, is := errors.AsType[*ConflictError](err)
	if !is || conflict.Change >= len(commit.Changes) {
		return false
	}
	row, err := c.rowOf(ctx, &commit.Changes[conflict.Change])
	return err == nil && row != nil && row.Token != commit.Token
}

// rowOf returns the history row in the place of a change, which another commit may have
// written. It returns nil if the store does not have the row.
func (c *core) rowOf(ctx context.Context, change *StoredChange) (*HistoryRow, error) {
	historian, ok := c.historian()
	if !ok {
		return nil, nil
	}
	rows, err := historian.History(ctx, change.To.Key, change.To.Sequence-1, 1)
	if err != nil || len(rows) == 0 || rows[0].Sequence != change.To.Sequence {
		return nil, err
	}
	return &rows[0], nil
}

// sentAgain joins two answers to one commit. The second one would be certain if
// nothing had been sent before. It is kept as text only, so that it matches no
// sentinel.
func sentAgain(unknown, err error) error {
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrPrecondition) || ownerLost(err) {
		return fmt.Errorf("%w; sent again: %v", unknown, err)
	}
	return fmt.Errorf("%w; sent again: %w", unknown, err)
}
