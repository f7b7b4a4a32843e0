package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// resolveWithin is how long an unknown outcome is resolved after the caller's
// context has ended.
const resolveWithin = time.Second

// send commits, and resolves an unknown outcome by sending the same token again.
//
// After an unknown outcome only two answers are certain: success, and a conflict
// together with a history whose row at this commit's place has another token. A
// conflict alone may be with this very commit, once the store has trimmed its row.
// A failed precondition may have held when the first sending, which may still be
// under way, was checked.
func send(ctx context.Context, store Store, commit *Commit) error {
	unknown := store.Commit(ctx, commit)
	if !errors.Is(unknown, ErrUnknownOutcome) || commit.Changes[0].MetadataOnly {
		return unknown // metadata leaves no row to find the commit by
	}
	for range 2 {
		if ctx.Err() != nil {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), resolveWithin)
			defer stop()
		}
		err := store.Commit(ctx, commit)
		switch {
		case err == nil || disproved(ctx, store, commit, err):
			return err
		case !errors.Is(err, ErrUnknownOutcome):
			return &UnknownOutcomeError{Token: commit.Token, Err: sentAgain(unknown, err)}
		}
		unknown = err
	}
	return &UnknownOutcomeError{Token: commit.Token, Err: unknown}
}

// disproved reports whether a conflict proves that a commit was not written and
// never will be: another commit has its place in the history.
func disproved(ctx context.Context, store Store, commit *Commit, err error) bool {
	historian, ok := store.(Historian)
	conflict, is := errors.AsType[*ConflictError](err)
	if !ok || !is || conflict.Change >= len(commit.Changes) || !store.Capabilities().History {
		return false
	}
	to := &commit.Changes[conflict.Change].To
	rows, err := historian.History(ctx, to.Key, to.Sequence-1, 1)
	return err == nil && len(rows) == 1 && rows[0].Sequence == to.Sequence && rows[0].Token != commit.Token
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
