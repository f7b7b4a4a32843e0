package lifecycle

import (
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
	pinned   Revision // of the record that the request was decided on before; empty: none
	anyState bool     // it is decided again after a conflict: it is valid in whatever state the object is
	once     bool     // its commit is not sent again to resolve an unknown outcome

	work      *Work              // what starts with the operation; nil: nothing
	options   func(*workOptions) // what a heartbeat changes in the work options; nil: nothing
	joins     bool               // the object takes part in an operation of this process
	ending    *operation         // whose outcome the request writes; nil: it writes none
	succeeded bool               // the work of ending has
	task      *Task              // of the operation that the request is about; nil: it is not about work of this process
	addedBy   *request           // the request whose BeforeCommit has added this one; nil: none

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
	decoded  any           // the payload that the object has afterwards; nil: nothing needs it
	edited   bool          // after is set
	refusals []error       // of the guards of the candidate rows, until one passes; nil: they have not run
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

// writer returns the owner that must be alive when the request is written: a process
// that was declared dead neither starts operations nor reports about them. All
// requests of one commit that have a writer have the same one.
func (r *request) writer() (OwnerRef, bool) {
	if r.core.owner != nil && r.starts() {
		return r.core.self, true
	}
	return OwnerRef{r.ask.Owner, r.ask.Epoch}, r.ask.Owned && r.ask.Owner != ""
}

// prepare loads the record, decides, and plans the change, if the decision is to
// write one.
func (r *request) prepare(ctx context.Context, token Token) (err error) {
	r.attempt = attempt{}
	if r.Request.ID != "" {
		err = r.requestedBefore(ctx)
	}
	if err == nil {
		err = r.load(ctx)
	}
	if err == nil {
		err = r.decide(ctx)
	}
	if err == nil && r.older != nil {
		r.decision = r.older.fit(r.core.table, r.decision, r.before.Exists())
	}
	if err == nil {
		err = r.refusal()
	}
	switch {
	case err != nil:
	case r.decision.Write:
		err = r.plan(token)
		if err == nil && (r.older != nil || r.ask.Verb == decide.Migrate) {
			err = r.planForm()
		}
	case r.decision.Err == nil && r.byCaller && r.ask.Verb != decide.Report: // the table ignores the event
		r.decoded, err = r.core.payloads.decode(r.before.Payload)
	}
	if r.ending != nil && errors.Is(err, ErrForeign) {
		// The record is foreign. However often it is tried, nothing can be written,
		// and the outcomes of other objects do not depend on this one.
		r.decision = decide.Decision{Row: -1, Verdict: decide.Refused, Err: err}
		return nil
	}
	return err
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
	r.known, r.stored, err = r.core.recognize(&r.before)
	if err != nil && r.discards() {
		r.before.Payload, r.before.Saved = nil, nil
		r.known, r.stored, err = r.core.recognize(&r.before)
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
	return nil
}

// get reads a record. The observer receives the call.
func (c *core) get(ctx context.Context, key Key) (StoredRecord, error) {
	began := time.Now()
	r, err := c.store.Get(ctx, key)
	if stored := c.observer.Stored; stored != nil {
		stored(ctx, StoreCall{Machine: c.table.Name, Call: "get", Err: err, Took: time.Since(began)})
	}
	return r, err
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
	ask, exists := &r.ask, r.before.Exists()
	continues := r.Operation != 0 || r.Admission != Token{}
	switch {
	case r.earlier != nil:
		r.decision = decide.Decision{Row: -1, Verdict: decide.Repeated}
		return nil
	case exists && (r.Operation != 0 && r.Operation != r.before.Operation || differ(r.Admission, r.before.Admission)):
		// The tokens may differ although the numbers are equal: the store has lost the commit
		// that admitted the request's operation. Some stores keep no token.
		r.decision = decide.Decision{Row: -1, Verdict: decide.Stale, Err: decide.ErrStale}
		return nil
	case !exists && continues && (ask.Verb == decide.Create || ask.Verb == decide.Add):
		r.decision = decide.Decision{Row: -1, Verdict: decide.Refused, Err: ErrNotFound}
		return nil
	case r.ending != nil && !r.chooseEvent():
		return nil
	case ask.Verb == decide.Report:
		return r.decideReport(ctx)
	case ask.Verb == decide.Migrate && exists:
		if r.stored.Version == r.version {
			r.decision = decide.Decision{Row: -1}
			return nil
		}
		r.Reason = fmt.Sprintf("from version %q to %q", r.stored.Version, r.version)
	case ask.MayExist:
		ask.Verb = decide.Fire
		if !exists && !continues {
			ask.Verb = decide.Create
		}
	}
	err = r.decideOnce(ctx)
	if changes := r.options != nil; ask.Verb == decide.Heartbeat && r.decision.Err == nil && (changes || waits(&r.before)) {
		// The deadline of an operation that waits is set when its turn comes. Without a
		// deadline, only the options change.
		r.decision.Write, r.decision.MetadataOnly = changes, changes
	}
	return err
}

// decideOnce sets the decision. The caller's edit and the guards of the candidate rows run
// once in an attempt, until a guard passes.
func (r *request) decideOnce(ctx context.Context) error {
	table, ask := r.core.table, &r.ask
	ask.Undo = (ask.Verb == decide.Fire || ask.Verb == decide.Report) && slices.Contains(r.core.undo, ask.Event)
	var few [4]int
	rows, d, ok := ask.Candidates(table, &r.known, few[:0])
	if !ok {
		r.decision = d
		return nil
	}
	var present []byte
	if r.before.Exists() {
		present = r.before.Payload
	}
	guarded := rows
	if r.refusals != nil { // the guards have run
		guarded = nil
	}
	for _, row := range guarded {
		var refusal error
		if table.Rows[row].Guard != "" {
			err := r.runEdit()
			if err == nil {
				refusal, err = r.core.payloads.guard(ctx, row, present, r.after)
			}
			if err != nil {
				return err
			}
		}
		if r.refusals = append(r.refusals, refusal); refusal == nil {
			break
		}
	}
	r.decision = ask.Decide(table, &r.known, rows, r.refusals)
	return nil
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
	case r.ask.Restores(&r.known):
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
