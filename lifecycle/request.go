package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lock"
)

// request is one change of one object on its way to the store. A verb fills the
// first part; [transaction] fills the second part anew in every attempt.
type request struct {
	core           *core
	verb           string // "fire", "report"; in errors, and in the fingerprint of a client's request
	key            Key
	event          string         // by name, because the table may not have it; empty: no event
	ask            decide.Request // for package decide; the one of an outcome is made anew in every attempt
	Change[[]byte]                // with an Edit of the encoded payload

	byCaller bool     // a caller of the library makes the request, not the library
	invalid  error    // why the request is refused at once; nil: it is not
	payload  []byte   // of a new object
	result   decoder  // receives the payload that the object has afterwards; nil: it is only checked
	pinned   Revision // of the record that the request was decided on before; empty: none
	anyState bool     // it is decided again after a conflict: it is valid in whatever state the object is
	once     bool     // its commit is not sent again to resolve an unknown outcome

	work    *Work              // what starts with the operation; nil: nothing
	options func(*workOptions) // what a heartbeat changes in the work options; nil: nothing
	joins   bool               // the object takes part in an operation of this process
	outcome decide.Outcome     // of work, if the request writes one; 0: it does not
	ending  *operation         // whose outcome the request writes; nil: it writes none
	task    *Task              // of the operation that the request is about; nil: it is not about work of this process
	addedBy *request           // the request whose BeforeCommit has added this one; nil: none

	// onCommit runs after the commit and before the observers. Nil: nothing.
	onCommit func(*request)

	attempt
	done bool // the transaction has succeeded
}

// attempt is what one attempt to commit a request has found out and decided. The zero
// attempt has not begun.
type attempt struct {
	before   StoredRecord  // as the store has it, in the form of the manager's version
	stored   *StoredRecord // the same in the form of its own version; before, if that is the manager's
	version  string        // of the record to write
	earlier  *sentOutcome  // the attempt at the same outcome that was written before; nil: none
	known    decide.Record // what decisions depend on, from before
	decision decide.Decision
	after    []byte        // the payload to write
	edited   bool          // after is set
	older    *older        // version, if it is not the manager's; else nil
	change   *StoredChange // in the form of the manager's version; nil: nothing is to be written
	form     *StoredChange // the same in the form of the record's version; change, if that is the manager's
	token    Token         // of the commit; zero: nothing was written
	sent     time.Time     // before the commit, by the clock of this process; zero: nothing was sent
}

// written reports whether the request was committed.
func (r *request) written() bool { return r.token != Token{} }

// starts reports whether the decision starts an operation whose work this process does. An
// override to a state at rest has a new operation id too, but nothing is left to do.
func (r *request) starts() bool {
	d := &r.decision
	joined := r.joins && d.Begins && r.core.table.States[d.State].Kind == fsm.Transitional
	return joined || d.Work == decide.NewWork || d.Work == decide.Redo
}

// load reads the record and compares it with what the caller expects.
func (r *request) load(ctx context.Context) (err error) {
	if r.before, err = r.core.get(ctx, r.key); err != nil {
		return err
	}
	if r.task != nil {
		r.task.seeDeadline(&r.before)
	}
	if r.ending != nil {
		if r.earlier, err = r.ending.writtenBefore(ctx, &r.before); err != nil || r.earlier != nil {
			return err
		}
	}
	expect := cmp.Or(r.pinned, r.Expect)
	if expect != "" && expect != r.before.Revision || r.IfMatch != "" && !r.before.matches(r.IfMatch) {
		return &ConflictError{Expect: expect, From: r.before.State, Current: r.before}
	}
	if r.Fence != 0 && r.Fence < r.before.Fence {
		return &lock.StaleTokenError{Token: r.Fence, Highest: r.before.Fence}
	}
	r.core.complete(&r.before)
	r.stored = &r.before
	if r.before.Exists() && r.before.Version != r.core.version {
		stored := r.before
		r.stored = &stored
	}
	r.known, err = r.core.recognize(&r.before)
	if err != nil && r.discards() {
		r.before.Payload, r.before.Saved = nil, nil
		r.known, err = r.core.recognize(&r.before)
	}
	if err != nil {
		return err
	}
	switch {
	case r.ask.Verb == decide.Migrate:
		r.version = r.core.version
	case r.before.Exists():
		r.version = r.stored.Version
	default:
		r.version = r.core.newVersion()
	}
	r.older = r.core.olderVersion(r.version)
	creates := r.ask.Verb == decide.Create || r.ask.Verb == decide.Add
	switch {
	case r.Operation != 0 && r.before.Exists() && r.before.Operation != r.Operation:
		return stale(&r.before, r.version)
	case creates && !r.before.Exists() && (r.Operation != 0 || r.Admission != Token{}):
		return ErrNotFound // no operation of a missing object continues
	}
	return nil
}

// discards reports whether nothing of the payload is kept, so that it need not be readable.
func (r *request) discards() bool {
	return r.ask.Verb == decide.Override && r.Edit == nil && r.core.table.States[r.ask.To].Kind == fsm.Absent
}

// differ reports whether two tokens are known and differ.
func differ(a, b Token) bool { return a != Token{} && b != Token{} && a != b }

// decide sets the decision. A refusal is in the decision; the error is one of
// user code or the store.
func (r *request) decide(ctx context.Context) (err error) {
	ask := &r.ask
	switch {
	case r.earlier != nil:
		r.decision = decide.Decision{Row: -1, Verdict: decide.Repeated}
		return nil
	case r.before.Exists() && differ(r.Admission, r.before.Admission):
		// The numbers may be equal: the store has lost the commit that admitted the request's
		// operation. Some stores keep no token.
		r.decision = decide.Decision{Row: -1, Verdict: decide.Stale, Err: decide.ErrStale}
		return nil
	case r.outcome != 0 && !r.chooseEvent():
		return nil
	case ask.Verb == decide.Report:
		return r.decideReport(ctx)
	case ask.Verb == decide.Migrate && r.before.Exists():
		if r.stored.Version == r.version {
			r.decision = decide.Decision{Row: -1}
			return nil
		}
		r.Reason = fmt.Sprintf("from version %q to %q", r.stored.Version, r.version)
	case ask.MayExist:
		ask.Verb = decide.Fire
		if !r.known.Exists && r.Operation == 0 && r.Admission == (Token{}) {
			ask.Verb = decide.Create
		}
	}
	var few [4]error
	_, err = r.decideOnce(ctx, few[:0])
	if ask.Verb == decide.Heartbeat && r.decision.Err == nil {
		// The deadline of an operation that waits is set when its turn comes. Without a
		// deadline, only the options change.
		if changes := r.changesOptions(); changes || waits(&r.before) {
			r.decision.Write, r.decision.MetadataOnly = changes, changes
		}
	}
	return err
}

// decideReport decides a report. Of an object at rest it is first compared with the reports
// before it. In any other state only a report that the table refuses is: an accepted
// report, the usual case, reads no history.
func (r *request) decideReport(ctx context.Context) (err error) {
	ask, resting := &r.ask, r.core.resting(&r.before)
	if resting {
		if ask.Repeats, err = r.reportedBefore(ctx); err != nil {
			return err
		}
	}
	var few [4]error
	refusals, err := r.decideOnce(ctx, few[:0])
	if err != nil || r.decision.Verdict != decide.Refused {
		return err
	}
	if !resting && r.outcome == 0 {
		if ask.Repeats, err = r.reportedBefore(ctx); err != nil {
			return err
		}
		if ask.Repeats {
			_, err = r.decideOnce(ctx, refusals)
			return err
		}
	}
	if ctx.Err() != nil { // the refusal may be a guard's whose context has ended
		return Ended(ctx)
	}
	return undecided(r.decision.Err)
}

// undecided returns the reason of a refusal by guards, if they have met an outage: the
// reason of a guard matches [ErrUnavailable] or is that of a context that has ended.
// Otherwise it returns nil.
func undecided(err error) error {
	refused, ok := err.(*fsm.TransitionError)
	outages := []error{ErrUnavailable, context.DeadlineExceeded, context.Canceled}
	if !ok || refused.Err != fsm.ErrGuard || !slices.ContainsFunc(outages, func(e error) bool { return errors.Is(refused.Reason, e) }) {
		return nil
	}
	return &guardError{refused.Guard, refused.Reason}
}

// guardError is the reason of a guard that has met an outage. It does not match
// [fsm.ErrGuard], because the guard has not refused.
type guardError struct {
	guard  string
	reason error
}

func (e *guardError) Error() string {
	return fmt.Sprintf("guard %q cannot decide: %v", e.guard, e.reason)
}
func (e *guardError) Unwrap() error { return e.reason }

// changesOptions reports whether a heartbeat changes the work options.
func (r *request) changesOptions() bool {
	before, err := readOptions(&r.before)
	if r.options == nil || err != nil {
		return false
	}
	after := before
	r.options(&after)
	return !bytes.Equal(after.encode(), before.encode())
}

// decideOnce sets the decision. It runs the guards of the candidate rows unless
// their refusals are given, and returns the refusals.
func (r *request) decideOnce(ctx context.Context, refusals []error) ([]error, error) {
	table, ask := r.core.table, &r.ask
	ask.Undo = (ask.Verb == decide.Fire || ask.Verb == decide.Report) && slices.Contains(r.core.undo, ask.Event)
	var few [4]int
	rows, d, ok := ask.Candidates(table, &r.known, few[:0])
	if !ok {
		r.decision = d
		return nil, nil
	}
	if len(refusals) == 0 {
		var err error
		if refusals, err = r.runGuards(ctx, rows, refusals); err != nil {
			return nil, err
		}
	}
	r.decision = ask.Decide(table, &r.known, rows, refusals)
	return refusals, nil
}

// runGuards runs the caller's edit and the guards of rows, until one passes, and
// appends their refusals.
func (r *request) runGuards(ctx context.Context, rows []int, refusals []error) ([]error, error) {
	var present []byte
	if r.before.Exists() {
		present = r.before.Payload
	}
	for _, row := range rows {
		var refusal error
		if r.core.table.Rows[row].Guard != "" {
			err := r.runEdit()
			if err == nil {
				refusal, err = r.core.payloads.guard(ctx, row, present, r.after)
			}
			if err != nil {
				return nil, err
			}
		}
		refusals = append(refusals, refusal)
		if refusal == nil {
			break
		}
	}
	return refusals, nil
}

// runEdit sets the payload to write, once in an attempt: guards see it, and the
// commit writes it. An undo restores the payload before the caller's edit.
func (r *request) runEdit() (err error) {
	if r.edited {
		return nil
	}
	switch {
	case !r.before.Exists():
		r.after = r.payload
	case r.ask.Undo && r.known.Saved:
		r.after = r.before.Saved
	default:
		r.after = r.before.Payload
	}
	if r.Edit != nil {
		err = r.Edit(&r.after)
	}
	r.edited = err == nil
	return err
}

// refusal returns why the decision permits no change, in terms that users know,
// or nil. A report that is refused has a verdict.
func (r *request) refusal() error {
	d, ask := &r.decision, &r.ask
	switch {
	case d.Err != nil && ask.Verb == decide.Report:
		return nil
	case d.Err == ErrExists:
		return &existsError{&ConflictError{Current: r.before}}
	case d.Err == decide.ErrStale, d.Err != nil && ask.Verb == decide.Heartbeat:
		return stale(&r.before, r.version)
	case d.Err != nil:
		return d.Err
	case ask.Work && !d.Begins:
		return fmt.Errorf("%w: %s in %s starts no operation to work in", ErrInvalid, r.event, stateOr(r.before.State))
	case ask.Work && r.work.Run != nil && decide.MayRedo(r.core.table, d.State, d.Origin):
		return fmt.Errorf("%w: after a crash the work of %s may be done again: it needs a handler instead of a function",
			ErrMisconfigured, r.core.table.States[d.State].Name)
	case r.joins && r.starts() && decide.MayRedo(r.core.table, d.State, d.Origin):
		return fmt.Errorf("%w: after a crash the work of %s may be done again, and an object of Work.With has none",
			ErrMisconfigured, r.core.table.States[d.State].Name)
	case !d.Write && !r.before.Exists() && ask.Verb != decide.Report:
		return ErrNotFound // the table ignores the event, and there is no object
	}
	return nil
}

// fail returns the complete error of a request, after it has reported the error to
// the observer.
func (r *request) fail(ctx context.Context, err error) error {
	e := &Error{
		Verb: r.verb, Machine: r.core.table.Name, ID: r.key.ID, From: r.before.State, Event: r.event, Actor: r.ask.Actor, Err: err,
	}
	if refused := r.core.observer.Refused; refused != nil {
		refused(ctx, e)
	}
	return e
}
