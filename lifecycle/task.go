package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/decide"
)

// Task is an operation as its work sees it: see [TaskOf]. It is safe for
// concurrent use.
type Task struct {
	Key
	Operation OpID
	Admission Token  // identifies the operation, also after the store has lost commits
	Owner     string // empty: the manager has no Owner
	Epoch     uint64

	core *core
	with []*Task // the other objects of the operation

	timeout time.Duration // of the work; 0: none

	// Of an admission of unknown outcome: it may still be committed while the object
	// has the revision expect, see pendingFor.
	expect Revision
	since  time.Time // when the admission ended; zero: its outcome is known

	mu       sync.Mutex
	begun    time.Time               // when the last attempt has begun
	returned int                     // attempts in this process that have returned
	cancel   context.CancelCauseFunc // ends the work's context; nil: the work has not begun
	lost     error                   // why the operation was taken away; nil: it was not
	ended    Outcome                 // Lost or TimedOut, if that has ended the work
	edit     any                     // of EditOutcome in the last attempt, a func(*T) error; nil: none

	deadline time.Time // by the clock of this process, no later than the record's; zero: none
	recorded time.Time // the deadline of the record that it stands for, by the clock of the store
	sequence uint64    // of that record
}

// newTask returns the task of an operation as a record has it.
func newTask(c *core, r *StoredRecord) *Task {
	return &Task{Key: r.Key, Operation: r.Operation, Admission: r.Admission, Owner: r.Owner, Epoch: r.Epoch, core: c}
}

// owns reports whether the operation still goes on, and in this process.
func (t *Task) owns(r *StoredRecord) bool {
	return r.Exists() && !t.core.resting(r) && r.Operation == t.Operation &&
		!differ(t.Admission, r.Admission) && r.Owner == t.Owner && r.Epoch == t.Epoch
}

// loseIfTaken ends the work if a change has taken its operation away. The version is the one in
// whose form the store has the record.
func (t *Task) loseIfTaken(now *StoredRecord, version string) {
	// A record from before the task's operation does not concern the task. The bad
	// schedule: the outcome of an operation is committed, the next operation is
	// admitted and replaces its task, and only then the first commit is published.
	if now.Operation >= t.Operation && !t.owns(now) {
		t.lose(stale(now, version))
	}
}

// changed notes a change of the object: the work has another deadline now, or its operation was
// taken away.
func (t *Task) changed(r *request) {
	if now := &r.change.To; t.owns(now) {
		t.setDeadline(r)
	} else {
		t.loseIfTaken(now, r.version)
	}
}

// endError is the cause of a context whose work was ended by this package.
type endError struct {
	task    *Task
	outcome Outcome
	error
}

func (e *endError) Unwrap() error { return e.error }

// begin returns the context of the work, which ends when the operation is taken
// away. The error is why it must not begin. The caller calls end when the work has returned.
func (t *Task) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	number := t.returned + 1 // attempts follow one another
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, taskKey{}, taskAttempt{t, number}))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel, t.begun = cancel, time.Now()
	t.edit = nil // of an attempt that failed
	if t.lost != nil {
		t.ended = Lost
	}
	t.core.tasks.begin(t)
	return ctx, func() {
		cancel(nil)
		t.core.tasks.end(t)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.returned = number
	}, t.lost
}

// rest notes that the work pauses until its next attempt. If the operation is taken away
// meanwhile, cancel is called. The error is why it was taken away before.
func (t *Task) rest(cancel context.CancelCauseFunc) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel, t.ended = cancel, ""
	return t.lost
}

// lose ends the work, or keeps it from beginning.
func (t *Task) lose(cause error) {
	t.mu.Lock()
	if t.lost == nil {
		t.lost = cause
	}
	cancel := t.cancel
	t.mu.Unlock()
	if cancel != nil {
		cancel(&endError{t, Lost, cause})
	}
}

// end notes that the work was ended by this package.
func (t *Task) end(outcome Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = outcome
}

// outcome returns how the work ended, given what the queue has seen of it.
func (t *Task) outcome(seen Outcome) Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != "" && seen != Panicked {
		return t.ended
	}
	return seen
}

// excess returns for how long work that runs has run after its time-out; nil has not.
func (t *Task) excess() time.Duration {
	if t == nil || t.timeout == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.begun) - t.timeout
}

// taskAttempt is one run of the work, in its context.
type taskAttempt struct {
	task   *Task
	number int
}

type taskKey struct{}

// TaskOf returns the operation whose work runs with this context, or nil.
func TaskOf(ctx context.Context) *Task {
	a, _ := ctx.Value(taskKey{}).(taskAttempt)
	return a.task
}

// Heartbeat extends the deadline of the object to the full timeout of its state,
// from now on. Long work calls it while it makes progress. The same commit extends those
// of the objects that take part in the operation, unless another writer has moved them.
// The error is [ErrStale] if the operation was taken away, and the context of the work
// then ends; or the store's.
func (t *Task) Heartbeat(ctx context.Context) error {
	_, err := t.touch(ctx, nil, nil)
	if errors.Is(err, ErrStale) {
		t.lose(err)
	}
	return err
}

// touch sets the deadlines of the operation's objects by one commit, and changes the work
// options of its own object and of the others. Other objects that another writer has moved
// meanwhile, or that are foreign, are left out. It returns the request about its own object.
func (t *Task) touch(ctx context.Context, own, others func(*workOptions)) (*request, error) {
	var requests []*request
	for i, task := range append([]*Task{t}, t.with...) {
		r := task.request("heartbeat", decide.Heartbeat)
		r.onCommit, r.options = task.setDeadline, others
		if i == 0 {
			r.options = own
		}
		requests = append(requests, r)
	}
	for {
		culprit, err := apply(ctx, requests, nil)
		i := slices.Index(requests, culprit)
		if i < 1 || ownerLost(err) || !errors.Is(err, ErrStale) && !errors.Is(err, ErrForeign) {
			return requests[0], err
		}
		requests = slices.Delete(requests, i, i+1)
	}
}

// request makes a request about the operation.
func (t *Task) request(name string, verb decide.Verb) *request {
	return &request{
		core: t.core, verb: name, key: t.Key, Change: Change[[]byte]{Admission: t.Admission}, anyState: true, task: t,
		ask: decide.Request{Verb: verb, Operation: uint64(t.Operation), Owned: true, Owner: t.Owner, Epoch: t.Epoch},
	}
}

// Heartbeat is [Task.Heartbeat] from outside the work, for the operation of an
// object whose work waits or runs in this manager. The error is [ErrStale] if
// there is none, or if its operation was taken away; or the store's.
func (m *Manager[S, E, T]) Heartbeat(ctx context.Context, id string) error {
	t := m.core.tasks.of(id)
	err := fmt.Errorf("%w: no work waits or runs in this manager", ErrStale)
	if t != nil {
		err = t.Heartbeat(ctx)
	}
	if err != nil {
		return m.core.failed("heartbeat", id, err)
	}
	return nil
}

// EditOutcome changes the payload in the commit of the outcome, if the work that
// runs with this context succeeds. T must be the payload of the manager. A later
// call replaces an earlier one; nil removes it. An edit that fails, panics or is of
// another payload ([ErrInvalid]) makes the outcome a failure. The edit runs once in
// every attempt to commit, without any lock. EditOutcome returns false if no work
// runs with this context.
func EditOutcome[T any](ctx context.Context, edit func(*T) error) bool {
	a, _ := ctx.Value(taskKey{}).(taskAttempt)
	t := a.task
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.number <= t.returned {
		return false
	}
	t.edit = nil
	if edit != nil {
		t.edit = edit
	}
	return true
}

// tasks are the operations whose work waits or runs in this manager, from their
// admission, so that work which still waits learns that its operation was taken
// away.
type tasks struct {
	mu         sync.Mutex       // the last lock that a goroutine acquires
	admitted   map[string]*Task // by id
	inTurn     map[string]*Task // by id: their work runs in its turn; admitted may have a later one
	unresolved []*Task          // ended without knowing what was written
}

func (ts *tasks) add(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.admitted == nil {
		ts.admitted = map[string]*Task{}
	}
	ts.admitted[t.ID] = t
	// An earlier operation is over now. It may have this very number, if its
	// admission was not written after all.
	ts.unresolved = slices.DeleteFunc(ts.unresolved, func(u *Task) bool { return u.ID == t.ID && u.Operation <= t.Operation })
}

// remove notes the end of an operation. If it was abandoned, its work may run on, but holds
// up no other operation.
func (ts *tasks) remove(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, of := range []map[string]*Task{ts.admitted, ts.inTurn} {
		if of[t.ID] == t {
			delete(of, t.ID)
		}
	}
}

// begin notes that the work of a task runs.
func (ts *tasks) begin(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.inTurn == nil {
		ts.inTurn = map[string]*Task{}
	}
	ts.inTurn[t.ID] = t
}

// end notes that the work of a task has returned. If its operation was abandoned, work of a
// later one may run.
func (ts *tasks) end(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.inTurn[t.ID] == t {
		delete(ts.inTurn, t.ID)
	}
}

// atWork returns the task of an object whose work runs in its turn, or nil.
func (ts *tasks) atWork(id string) *Task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.inTurn[id]
}

// of returns the task of an object, or nil.
func (ts *tasks) of(id string) *Task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.admitted[id]
}

// waits reports whether work of an object waits for its turn here, for the
// operation of the record or an earlier one. Work of a later operation means that
// the record is out of date.
func (ts *tasks) waits(r *StoredRecord) bool {
	t := ts.of(r.ID)
	if t == nil || t.Operation > r.Operation {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancel == nil
}

// all returns the tasks that wait or run, and the unresolved ones.
func (ts *tasks) all() (admitted, unresolved []*Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return slices.Collect(maps.Values(ts.admitted)), slices.Clone(ts.unresolved)
}

// addUnresolved notes an operation that this process has ended without knowing what was
// written. One object may have several: any of its admissions of unknown outcome may be
// the one that is committed.
func (ts *tasks) addUnresolved(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.unresolved = append(ts.unresolved, t)
}

// removeUnresolved forgets an unresolved operation.
func (ts *tasks) removeUnresolved(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.unresolved = slices.DeleteFunc(ts.unresolved, func(u *Task) bool { return u == t })
}

// staleError is ErrStale with the record that the operation was lost to.
type staleError struct {
	now     StoredRecord
	version string // in whose form the store has it
}

func stale(r *StoredRecord, version string) error { return &staleError{*r, version} }

func (e *staleError) Error() string {
	return fmt.Sprintf("%v: %s is %s in operation %d", ErrStale, e.now.Key.text(), stateOr(e.now.State), e.now.Operation)
}

// Is matches [ErrStale].
func (e *staleError) Is(target error) bool { return target == ErrStale }
