package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/decide"
)

// maxAttempts is how often a transaction is tried in all, see [transaction.retries].
const maxAttempts = 16

// apply takes requests through the steps of every change: load, decide, plan,
// commit, publish. All of them are written by one commit, or none is. Requests
// that are refused but optional are left out.
//
// The error is about the request that apply returns with it, and nothing is
// written then, except that [ErrUnknownOutcome] leaves it open.
func apply(ctx context.Context, requests []*request, require []Precondition) (*request, error) {
	for attempt := 1; ; attempt++ {
		t := transaction{store: requests[0].core.store, require: require}
		culprit, err := t.attempt(ctx, requests)
		switch {
		case err == nil:
			for _, r := range t.requests {
				r.done = true
			}
			t.publish(ctx)
			return nil, nil
		case attempt < maxAttempts && t.retries(culprit, err):
			pin(requests)
			t.observeCommit(ctx)
			continue
		}
		t.observeCommit(ctx)
		culprit, err = t.blame(ctx, culprit, err)
		return orRepeated(ctx, requests, culprit, err)
	}
}

// refused returns the error that apply would return if all objects stayed as they are,
// apart from the preconditions, and commits nothing.
func refused(ctx context.Context, requests []*request, require []Precondition) (*request, error) {
	t := transaction{store: requests[0].core.store, require: require}
	if culprit, err := t.gather(ctx, requests); err != nil {
		culprit, err = t.blame(ctx, culprit, err)
		return orRepeated(ctx, requests, culprit, err)
	}
	return nil, nil
}

// pin holds requests to the records of the first attempt, if they are not valid in
// every state. The bad schedule without it: a change that BeforeCommit has added
// meets a conflict, meanwhile the object itself is moved, and the next attempt
// fires the caller's event in a state that no guard of this call has seen.
func pin(requests []*request) {
	for _, r := range requests {
		switch {
		case r.retry || r.expect != "" || !r.before.Exists():
		case r.ifMatch != "":
			r.ifMatch = r.before.etag()
		default:
			r.expect = r.before.Revision
		}
	}
}

// transaction is one attempt to commit a list of requests.
type transaction struct {
	store    Store
	require  []Precondition // of the whole transaction
	requests []*request     // all of them
	writes   []*request     // those that write something, in the order of the commit
	hooked   []Precondition // those that BeforeCommit has added, and those of changes that it has added
	commit   Commit
	answered bool   // the error is the store's answer to the commit
	call     Stored // the commit, for the observer; without Call: nothing was sent, or there is none
}

// attempt loads, decides, plans and commits, once.
func (t *transaction) attempt(ctx context.Context, requests []*request) (*request, error) {
	t.commit = Commit{Token: NewToken(), Require: slices.Clone(t.require)}
	if culprit, err := t.gather(ctx, requests); err != nil {
		if r, lost := t.overtaken(ctx, culprit, err); lost != nil {
			return r, lost
		}
		return culprit, err
	}
	if len(t.writes) == 0 {
		return nil, nil
	}
	now := time.Now()
	for i, r := range t.writes {
		r.change, r.sent = &t.commit.Changes[i], now
		if owner, ok := r.writer(); ok {
			t.commit.Owner = owner
		}
	}
	stored := t.stored()
	err := send(ctx, t.store, stored)
	if c := t.writes[0].core; c.observer.Stored != nil {
		t.call = Stored{Machine: c.table.Name, Call: "commit", Err: err, Took: time.Since(now)}
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
	for _, r := range t.writes {
		r.token = t.commit.Token
		if r.form != nil { // what the store has set
			to, set := &r.change.To, &r.form.To
			to.Revision, to.ChangedAt, to.Deadline = set.Revision, set.ChangedAt, set.Deadline
			to.Admission, to.ChangeToken = set.Admission, set.ChangeToken
		}
	}
	return nil, nil
}

// stored returns the commit with every change in the form of its record's version.
func (t *transaction) stored() *Commit {
	if !slices.ContainsFunc(t.writes, func(r *request) bool { return r.form != nil }) {
		return &t.commit
	}
	stored := t.commit
	stored.Changes = slices.Clone(t.commit.Changes)
	for i, r := range t.writes {
		if r.form != nil {
			stored.Changes[i] = *r.form
			r.form = &stored.Changes[i]
		}
	}
	return &stored
}

// gather prepares requests and, after them, those that BeforeCommit adds. The
// request that it returns is the one that the error is about.
func (t *transaction) gather(ctx context.Context, requests []*request) (*request, error) {
	for _, r := range requests {
		if r.core.store != t.store {
			return r, fmt.Errorf("%w: one transaction over different stores", ErrInvalid)
		}
		if slices.ContainsFunc(t.requests, func(other *request) bool { return other.key() == r.key() }) {
			return r, fmt.Errorf("%w: two changes of %s in one transaction", ErrInvalid, r.key().text())
		}
		t.requests = append(t.requests, r)
		if err := r.check(); err != nil {
			return r, err
		}
	}
	var added []*request
	for _, r := range requests {
		n := len(t.commit.Changes)
		t.commit.Changes = append(t.commit.Changes, StoredChange{})
		change := &t.commit.Changes[n]
		if err := r.prepare(ctx, change, t.commit.Token); err != nil {
			t.commit.Changes = t.commit.Changes[:n]
			return r, err
		}
		if !r.decision.Write {
			t.commit.Changes = t.commit.Changes[:n]
			continue
		}
		t.writes = append(t.writes, r)
		t.commit.Require = append(t.commit.Require, r.require...)
		if r.by != nil {
			t.hooked = append(t.hooked, r.require...)
		}
		t.commit.Messages = append(t.commit.Messages, r.messages...)
		more, err := t.runHook(ctx, r, change)
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

// prepare loads the record, decides, and plans the change, if the decision is to
// write one.
func (r *request) prepare(ctx context.Context, change *StoredChange, token Token) (err error) {
	r.attempt = attempt{}
	if err = r.repeated(ctx); err == nil {
		err = r.load(ctx)
	}
	if err == nil {
		err = r.decide(ctx)
		r.decision = r.core.fitVersion(r.version, r.decision)
	}
	if err == nil && !(r.optional() && r.decision.Err != nil) {
		err = r.refusal()
		switch {
		case err != nil:
		case r.decision.Write:
			if err = r.plan(change, token); err == nil {
				err = r.planForm(change)
			}
		case r.result != nil && r.before.Exists():
			err = r.decode(r.before.Payload) // the table ignores the event
		}
	}
	if _, edit := errors.AsType[*editError](err); r.outcome != 0 && !edit && errors.Is(err, ErrForeign) {
		// The record is foreign. However often it is tried, nothing can be written,
		// and the outcomes of other objects do not depend on this one.
		r.decision = decide.Decision{Row: -1, Verdict: decide.Refused, Err: err}
		return nil
	}
	return err
}

// writer returns the owner that must be alive when the request is written: a process
// that was declared dead neither starts operations nor reports about them. All
// requests of one commit that have a writer have the same one.
func (r *request) writer() (OwnerRef, bool) {
	if r.starts() {
		return r.core.self(), r.core.owner != nil
	}
	return OwnerRef{r.ask.Owner, r.ask.Epoch}, r.ask.Owned && r.ask.Owner != ""
}

// runHook calls the BeforeCommit of the object's manager and returns the changes that
// it adds. A deadline that is extended is no change of the object.
func (t *transaction) runHook(ctx context.Context, r *request, change *StoredChange) ([]*request, error) {
	if r.core.beforeCommit == nil || change.MetadataOnly {
		return nil, nil
	}
	seen := *change // the hook gets a copy
	more, err := r.core.beforeCommit(ctx, &seen)
	if err != nil || more == nil {
		return nil, err
	}
	if err := more.use(); err != nil {
		return nil, err
	}
	t.hooked = append(t.hooked, more.require...)
	t.commit.Require = append(t.commit.Require, more.require...)
	for _, added := range more.requests {
		added.by = r
	}
	return more.requests, nil
}

// overtaken returns the first request of the transaction whose object has moved
// since it was loaded, and its conflict. BeforeCommit reads other objects later than
// that, and what it finds may not fit any more: then its error is a conflict. Errors
// of the caller's own requests stay as they are.
func (t *transaction) overtaken(ctx context.Context, culprit *request, err error) (*request, *ConflictError) {
	if _, ok := errors.AsType[*hookError](err); !ok && culprit.by == nil {
		return nil, nil
	}
	for i, r := range t.writes {
		ch := &t.commit.Changes[i]
		now, err := r.core.get(ctx, r.key())
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
	if lost, ok := errors.AsType[*ConflictError](err); ok && lost.Change < len(t.writes) {
		return t.writes[lost.Change]
	}
	if ownerLost(err) {
		for _, r := range t.writes {
			if _, ok := r.writer(); ok {
				return r
			}
		}
	}
	if again, ok := errors.AsType[*RepeatedError](err); ok {
		for _, r := range t.writes {
			if r.client.ID == again.Row.Request && r.core.table.Name == again.Row.Machine {
				return r
			}
		}
	}
	if failed, ok := errors.AsType[*PreconditionError](err); ok {
		for _, r := range t.writes {
			if slices.ContainsFunc(r.require, failed.Precondition.equal) {
				return r
			}
		}
	}
	return t.writes[0]
}

// retries is the one retry policy. It reports whether the next attempt may succeed
// after a conflict:
//
//   - A request about an operation (a report, an outcome, a heartbeat) is valid in
//     whatever state the object is, so it is decided again.
//   - A request with ETags is valid as long as the object keeps the one that it had:
//     only its deadline has moved on.
//   - A request that creates an object is valid as long as the object does not
//     exist: only the numbers of the absent record have moved on.
//   - A change or precondition that BeforeCommit has added, or a precondition of such a
//     change: BeforeCommit runs again and may return something else.
//
// Any other conflict is the caller's: the request may be wrong for the state that
// the object is in now.
func (t *transaction) retries(culprit *request, err error) bool {
	if errors.Is(err, ErrUnknownOutcome) {
		// A heartbeat that was written twice does no harm.
		return t.answered && !slices.ContainsFunc(t.writes, func(r *request) bool { return !r.decision.MetadataOnly })
	}
	if failed, ok := err.(*PreconditionError); ok {
		return t.answered && slices.ContainsFunc(t.hooked, failed.Precondition.equal)
	}
	lost, ok := err.(*ConflictError)
	switch {
	case !ok:
		return false
	case culprit.by != nil: // also one that expects another revision
		return lost.Current.Key == culprit.key()
	case !t.answered:
		return false
	case culprit.retry, culprit.ifMatch != "" && lost.Current.matches(culprit.before.etag()):
		return true
	}
	return lost.From == "" && !lost.Current.Exists()
}

// blame returns the caller's request that an error is about, and the error as it
// is about that request.
func (t *transaction) blame(ctx context.Context, culprit *request, err error) (*request, error) {
	if lost, ok := err.(*ConflictError); ok && t.answered && lost.From == "" && lost.Current.Exists() {
		err = &existsError{lost}
	}
	if culprit.by == nil {
		if failed, ok := err.(*PreconditionError); ok && slices.ContainsFunc(t.hooked, failed.Precondition.equal) {
			err = &hookError{err}
		}
		if lost, ok := err.(*ConflictError); ok && culprit.named {
			err = &revisionError{lost, culprit.ifMatch}
		}
		return culprit, err
	}
	err = &hookError{culprit.fail(ctx, err)}
	for culprit.by != nil {
		culprit = culprit.by
	}
	return culprit, err
}

// publish makes the commit known: to work whose operation it ends, to callers that
// wait for a change of an object, and last to the observers, which may panic.
func (t *transaction) publish(ctx context.Context) {
	for _, r := range t.writes {
		if r.change.MetadataOnly {
			continue
		}
		if r.ending == nil || r.task != r.ending.task {
			r.core.tasks.changed(r)
		}
		r.core.watchers.wake(r.key())
	}
	for _, r := range t.writes {
		if r.onCommit != nil {
			r.onCommit(r)
		}
	}
	for _, r := range t.writes {
		if changed := r.core.observer.Changed; changed != nil && !r.change.MetadataOnly {
			changed(ctx, Changed{HistoryRow: cmp.Or(r.form, r.change).Row(r.token), InState: r.inState()})
		}
	}
	t.observeCommit(ctx)
}

// observeCommit reports the commit to the observer of its first change. The function may
// panic, so it comes after everything that the commit has to start or end.
func (t *transaction) observeCommit(ctx context.Context) {
	if t.call.Call != "" {
		t.writes[0].core.observer.Stored(ctx, t.call)
	}
}

// inState returns how long the object was in its state before the change that was
// committed.
func (r *request) inState() time.Duration {
	if r.before.ChangedAt.IsZero() || !r.before.Exists() {
		return 0
	}
	return max(0, r.change.To.ChangedAt.Sub(r.before.ChangedAt)) // clocks may go back
}

// hookError is an error of BeforeCommit or of a change that it has added.
type hookError struct{ err error }

func (e *hookError) Error() string { return e.err.Error() }
func (e *hookError) Unwrap() error { return e.err }
