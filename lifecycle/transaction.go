package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// apply takes requests through the steps of every change: load, decide, plan,
// commit, publish. All of them are written by one commit, or none is. Reports that
// are refused are left out.
//
// The error is about the request that apply returns with it, and nothing is
// written then, except that [ErrUnknownOutcome] leaves it open.
func apply(ctx context.Context, requests []*request, require []Precondition) (*request, error) {
	for attempt := 1; ; attempt++ {
		t := transaction{store: requests[0].core.store, commit: Commit{Token: NewToken(), Require: slices.Clone(require)}}
		culprit, err := t.attempt(ctx, requests)
		if err == nil {
			t.publish(ctx)
		}
		if t.call.Call != "" { // the observer may panic: everything that the commit starts or ends comes before it
			t.writes[0].core.observer.Stored(ctx, t.call)
		}
		switch {
		case err == nil:
			return nil, nil
		case attempt == maxAttempts || !t.mayRetry(culprit, err):
			return t.blame(ctx, requests, culprit, err)
		}
		pin(requests)
	}
}

// refused returns the error that apply would return if all objects stayed as they are,
// apart from the preconditions, and commits nothing.
func refused(ctx context.Context, requests []*request) (*request, error) {
	t := transaction{store: requests[0].core.store}
	if culprit, err := t.gather(ctx, requests); err != nil {
		return t.blame(ctx, requests, culprit, err)
	}
	return nil, nil
}

// transaction is one attempt to commit a list of requests.
type transaction struct {
	store    Store
	requests []*request     // all of them
	writes   []*request     // those that write something, in the order of the commit
	hooked   []Precondition // those that BeforeCommit has added, and those of changes that it has added
	commit   Commit
	answered bool      // the error is the store's answer to the commit, or the conflict that it would be
	call     StoreCall // the commit, for the observer; without Call: nothing was sent, or there is none
}

// attempt loads, decides, plans and commits, once.
func (t *transaction) attempt(ctx context.Context, requests []*request) (*request, error) {
	if culprit, err := t.gather(ctx, requests); err != nil {
		if r, conflict := t.overtaken(ctx, culprit, err); conflict != nil {
			return r, conflict
		}
		return culprit, err
	}
	if len(t.writes) == 0 {
		return nil, nil
	}
	c, now := t.writes[0].core, time.Now()
	for _, r := range t.writes {
		r.sent = now
		t.commit.Changes = append(t.commit.Changes, *r.form)
		if owner, ok := r.writer(); ok {
			t.commit.Owner = owner
		}
	}
	err := t.store.Commit(ctx, &t.commit)
	// Metadata leaves no row to find the commit by.
	if errors.Is(err, ErrUnknownOutcome) && !t.commit.Changes[0].MetadataOnly && !t.writes[0].once {
		err = c.resolve(ctx, &t.commit, err)
	}
	if c.observer.Stored != nil {
		t.call = StoreCall{Machine: c.table.Name, Call: "commit", Err: err, Took: time.Since(now)}
	}
	if err != nil {
		t.answered = true
		culprit := t.culprit(err)
		if owner := culprit.core.owner; ownerLost(err) && owner != nil {
			if owner.livesOutside(ctx, t.store) {
				return culprit, fmt.Errorf("%w: owner %q has joined another store", ErrMisconfigured, owner.Name())
			}
			owner.lose()
		}
		return culprit, err
	}
	for i, r := range t.writes {
		r.token = t.commit.Token
		to, set := &r.change.To, &t.commit.Changes[i].To // what the store has set
		to.Revision, to.ChangedAt, to.Deadline = set.Revision, set.ChangedAt, set.Deadline
		to.Admission, to.ChangeToken = set.Admission, set.ChangeToken
	}
	return nil, nil
}

// gather prepares requests and, after them, those that BeforeCommit adds. The
// request that it returns is the one that the error is about.
func (t *transaction) gather(ctx context.Context, requests []*request) (*request, error) {
	for _, r := range requests {
		if r.core.store != t.store {
			return r, fmt.Errorf("%w: one transaction over different stores", ErrInvalid)
		}
		if slices.ContainsFunc(t.requests, func(other *request) bool { return other.key == r.key }) {
			return r, fmt.Errorf("%w: two changes of %s in one transaction", ErrInvalid, r.key.text())
		}
		t.requests = append(t.requests, r)
		if err := r.check(); err != nil {
			return r, err
		}
	}
	var added []*request
	for _, r := range requests {
		if err := r.prepare(ctx, t.commit.Token); err != nil {
			return r, err
		}
		if !r.decision.Write {
			continue
		}
		t.writes = append(t.writes, r)
		t.commit.Require = append(t.commit.Require, r.Require...)
		if r.addedBy != nil {
			t.hooked = append(t.hooked, r.Require...)
		}
		t.commit.Messages = append(t.commit.Messages, r.Messages...)
		if r.core.beforeCommit == nil || r.change.MetadataOnly { // a deadline that is extended is not a change of the object
			continue
		}
		more, err := t.runHook(ctx, r)
		if err != nil {
			return r, &hookError{err}
		}
		added = append(added, more...)
	}
	if len(added) == 0 {
		return nil, nil
	}
	return t.gather(ctx, added)
}

// runHook calls the BeforeCommit of the object's manager with a copy of the change, and
// returns the changes that it adds.
func (t *transaction) runHook(ctx context.Context, r *request) ([]*request, error) {
	change := *r.change
	more, err := r.core.beforeCommit(ctx, &change)
	if err != nil || more == nil {
		return nil, err
	}
	if err := more.use(); err != nil {
		return nil, err
	}
	t.hooked = append(t.hooked, more.require...)
	t.commit.Require = append(t.commit.Require, more.require...)
	for _, added := range more.requests {
		added.addedBy = r
	}
	return more.requests, nil
}

// publish makes the commit known: to work whose operation it ends, to callers that
// wait for a change of an object, and last to the observers, which may panic.
func (t *transaction) publish(ctx context.Context) {
	for _, r := range t.requests {
		r.done = true
	}
	for _, r := range t.writes {
		if !r.change.MetadataOnly {
			own := r.ending != nil && r.task == r.ending.task // an outcome takes no operation away from its own work
			if task := r.core.tasks.of(r.key.ID); task != nil && !own {
				task.changed(r)
			}
			r.core.watchers.wake(r.key)
		}
		if r.onCommit != nil {
			r.onCommit(r)
		}
	}
	for i, r := range t.writes {
		if changed := r.core.observer.Changed; changed != nil && !r.change.MetadataOnly {
			event := CommittedChange{HistoryRow: t.commit.Changes[i].Row(r.token)}
			if r.before.Exists() && !r.before.ChangedAt.IsZero() {
				event.InState = max(0, r.change.To.ChangedAt.Sub(r.before.ChangedAt)) // clocks may go back
			}
			changed(ctx, event)
		}
	}
}
