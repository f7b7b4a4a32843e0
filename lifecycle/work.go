package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// Work is what is done in an operation, from its admission to its outcome:
// exactly one of Handler and Run. It is a value and may be used many times.
type Work struct {
	// Handler is the name of a function in [Config.Handlers], and Args what it
	// is called with, each time with a copy. Both are kept in the record, so that
	// another process can do the work when this one has died.
	Handler string
	Args    []byte
	// Run is a function of this process, and dies with it. It is refused where
	// the table's answer to a dead owner is to do the work again.
	Run func(context.Context) error
	// Timeout is how long it may take; its context ends then. 0: no limit but
	// the object's deadline, which the sweeper acts on. It is kept with Handler:
	// another process that does the work gives it as long, from its beginning.
	Timeout time.Duration
	// QueueTimeout is how long it may wait for its turn, in the process that it
	// was asked for in. 0: no limit.
	QueueTimeout time.Duration
	// Class is the path of the queue's limits that apply, see
	// [queue.Action].Class. It is kept with Handler, too: a process whose queue
	// does not have it leaves the operation as it is, see [Unmoved].
	Class string
	// Preempt is for deletes: what they do to what is in front of them, see
	// [queue.Action].Preempt.
	Preempt queue.Preempt
	// Also are further objects whose turn it takes in the queue, of this manager
	// or of others that share the queue: nothing is done to them meanwhile. They
	// need not exist. A process that takes the operation over does not know them.
	Also []Key
}

// Handler is a function that does work by name. What it returns is the outcome:
// nil is success, an error or a panic definitive failure. Its context ends when
// the operation is taken away from it, and then nothing that it returns counts.
type Handler func(ctx context.Context, args []byte) error

// Func is work that is a function of this process.
func Func(run func(context.Context) error) Work { return Work{Run: run} }

// Named is work that is a registered function.
func Named(handler string, args []byte) Work { return Work{Handler: handler, Args: args} }

// Queue is where work waits for its turn: one at a time for each key, in order
// of admission. A [queue.Queuer] of keys is one. For actions on several objects it
// also needs SubmitAll, as a Queuer has it.
//
// The ticket is a Queuer's, because whose turn it is may be decided elsewhere, but
// the work is done here. A queue that several processes share, or that is kept in
// a database, is a Queuer in each of them, around whose actions it takes a place in
// what is shared before Admit, waits for its turn there in Guard, and leaves it
// after Settle, or if the action is refused.
type Queue interface {
	Submit(ctx context.Context, key Key, act *queue.Action) (*queue.Ticket[Key], error)
}

// Outcome is how the work of an operation ended. Every operation that was
// admitted has exactly one.
type Outcome uint8

const (
	// Succeeded: the work returned nil.
	Succeeded = Outcome(decide.Succeeded)
	// Failed: it returned an error.
	Failed = Outcome(decide.Failed)
	// Panicked: it panicked or called runtime.Goexit. The event is that of a
	// failure.
	Panicked = Outcome(decide.Panicked)
	// Canceled: it was told to end, by [Handle.Cancel] or the queue, or it
	// waited for longer than QueueTimeout.
	Canceled = Outcome(decide.Canceled)
	// TimedOut: it took longer than Timeout.
	TimedOut = Outcome(decide.TimedOut)
	// Lost: the operation was taken away from it, by a later operation, the
	// sweeper or a dead owner's heir, or somebody else has reported its end.
	// Nothing was written.
	Lost = Outcome(decide.Lost)
)

var outcomes = [...]string{"", "succeeded", "failed", "panicked", "canceled", "timed out", "lost"}

// String returns the outcome in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomes) && o > 0 {
		return outcomes[o]
	}
	return "Outcome(" + strconv.Itoa(int(o)) + ")"
}

// outcomeOf is what a queue's outcome means for the operation.
func outcomeOf(o queue.Outcome) Outcome {
	switch o {
	case queue.OK:
		return Succeeded
	case queue.Failed:
		return Failed
	case queue.Panicked:
		return Panicked
	case queue.TimedOut:
		return TimedOut
	}
	return Canceled
}

// OutcomeError is why an operation did not succeed.
type OutcomeError struct {
	Key
	Operation OpID
	Outcome   Outcome // Failed to Lost
	// Err is what the work or its [EditOutcome] returned, a [queue.PanicError],
	// why it was told to end, or ErrStale of a lost one.
	Err error
	// Unwritten is why the outcome is not in the record: no row of the table
	// takes its events, or the store failed. Sweeps will find the object, and
	// those of this manager say so if the table has no deadline for it.
	// Nil: it is, unless the operation was lost.
	Unwritten error
}

// Error tells it in one line.
func (e *OutcomeError) Error() string {
	text := fmt.Sprintf("lifecycle: operation %d of %s %v", e.Operation, e.Key.text(), e.Outcome)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Unwritten != nil {
		text += "; not written: " + e.Unwritten.Error()
	}
	return oneLine(text)
}

// Unwrap returns Err and Unwritten.
func (e *OutcomeError) Unwrap() []error {
	var list []error
	for _, err := range []error{e.Err, e.Unwritten} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// Task is an operation as its work sees it: see [TaskOf]. It is safe for
// concurrent use.
type Task struct {
	Key
	Operation OpID
	Owner     string // empty: the manager has none
	Epoch     uint64
	With      []Companion // of [Manager.DoTogether]

	beats beater
	parts []AnyPart // of With, and those that are at rest

	mu   sync.Mutex
	ctx  *workContext // nil while it waits
	told error        // why the operation is not this one's any more
	edit any          // func(*T) error
	own  workContext  // ctx, most of the time
}

// beater is a [Manager].
type beater interface {
	beat(context.Context, *Task) error
}

// tell ends the work, or keeps it from beginning.
func (t *Task) tell(cause error) {
	t.mu.Lock()
	if t.told == nil {
		t.told = cause
	}
	var end context.CancelCauseFunc
	if t.ctx != nil {
		end = t.ctx.end
	}
	t.mu.Unlock()
	if end != nil {
		end(&toldError{t, Lost, cause})
	}
}

// begins makes the context of the work, and returns why it must not even begin.
func (t *Task) begins(ctx context.Context) (*workContext, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.own
	if t.ctx != nil { // a queue that tries again: the first one stays ended
		c = new(workContext)
	}
	c.Context, c.task = ctx, t
	t.ctx = c
	return c, t.told
}

type taskKey struct{}

// TaskOf returns the operation whose work runs with this context, or nil.
func TaskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// Beat prolongs the deadline of the object to the full time of its state, from
// now on, and is how work says that it gets on. The error is [ErrStale] if the
// operation was taken away, and the context of the work then ends; or the
// store's. The objects that take part in the operation get theirs prolonged, too,
// unless somebody else has moved them.
func (t *Task) Beat(ctx context.Context) error {
	err := t.beats.beat(ctx, t)
	for i := 0; i < len(t.parts) && err == nil; i++ {
		err = t.parts[i].beat(ctx)
	}
	return err
}

// Beat is [Task.Beat] from outside the work, for the operation of an object whose
// work waits or runs in this manager: one that waits for its turn for long is not
// stuck. The error is [ErrStale] if there is none, or its operation was taken
// away; or the store's.
func (m *Manager[S, E, T]) Beat(ctx context.Context, id string) error {
	t := m.tasks.of(id)
	err := fmt.Errorf("%w: no work waits or runs here", ErrStale)
	if t != nil {
		err = t.Beat(ctx)
	}
	if err != nil {
		return &Error{Verb: "beat", Machine: m.table.Name, ID: id, Err: err}
	}
	return nil
}

// EditOutcome changes the payload in the commit of the outcome, if the work that
// runs with this context succeeds. T must be the payload of the manager. The
// last call counts. An edit that fails, panics or is of another payload
// ([ErrInvalid]) makes the outcome a failure; it runs once for every attempt to
// commit, without any lock. Nil takes back what was said before. EditOutcome
// reports whether there is such work.
func EditOutcome[T any](ctx context.Context, edit func(*T) error) bool {
	t := TaskOf(ctx)
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.edit = nil
	if edit != nil {
		t.edit = edit
	}
	return true
}

// tasks are the operations whose work waits or runs in this manager: from their
// admission, so that what is taken away while it waits is told too.
type tasks struct {
	// How many may run, for who commits: if a commit sees none, the work of
	// whoever comes later begins by reading the record.
	n       atomic.Int32
	mu      sync.Mutex
	running map[string]*Task // by id: all are of one manager, and so of one machine
	loose   map[string]*Task // those that ended without knowing what was written
}

func (ts *tasks) add(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.running == nil {
		ts.running = map[string]*Task{}
	}
	ts.running[t.ID] = t
	ts.n.Store(int32(len(ts.running)))
	// Whatever was loose is over. It may have this very number: of an admission
	// that was not written after all.
	delete(ts.loose, t.ID)
}

func (ts *tasks) remove(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.running[t.ID] == t {
		delete(ts.running, t.ID)
		ts.n.Store(int32(len(ts.running)))
	}
}

// of returns the task that runs for an object, or nil.
func (ts *tasks) of(id string) *Task {
	if ts.n.Load() == 0 {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.running[id]
}

// waits reports whether work of an object was admitted, in the record's operation or
// before, and has not begun. Work of a later one says that the record is over.
func (ts *tasks) waits(r *StoredRecord) bool {
	t := ts.of(r.ID)
	if t == nil || t.Operation > r.Operation {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ctx == nil
}

// taken ends the work that a commit of this manager has taken the operation
// from, unless the commit is by the task itself.
func (m *Manager[S, E, T]) taken(now *StoredRecord, by *Task) {
	if by != nil {
		return // it was the object's operation until now: only later ones can be here
	}
	t := m.tasks.of(now.ID)
	// A record from before the task's operation says nothing about it. The bad
	// schedule: the outcome of an operation is committed; the next one is admitted,
	// and its task takes the place of the last; only then whoever wrote the outcome
	// comes here, with the record at rest.
	if t == nil || now.Operation < t.Operation || m.owns(t, now) {
		return
	}
	t.tell(stale(now))
}

// lookAround tells the work that other processes have taken the operation from,
// or a commit whose answer was lost, and takes steps out of records that nobody
// will do: the chain has ended and its waiter was told so.
func (m *Manager[S, E, T]) lookAround(ctx context.Context) error {
	running, loose := m.tasks.all()
	for _, t := range running {
		now, err := m.store.Get(ctx, t.Key)
		if err != nil {
			return err
		}
		m.taken(&now, nil)
	}
	for _, t := range loose {
		now, err := m.store.Get(ctx, t.Key)
		if err != nil {
			return err
		}
		if m.owns(t, &now) {
			continue // until its deadline, or a person, moves it
		}
		left := m.resting(&now) && now.Operation == t.Operation && now.Owner == t.Owner && now.Epoch == t.Epoch && len(now.Steps) > 0
		if left {
			err = m.release(ctx, &now)
		}
		if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknownOutcome) {
			return err
		}
		if err == nil {
			m.tasks.settled(t)
		}
	}
	return nil
}

// all returns the tasks that wait or run, and the loose ends.
func (ts *tasks) all() (running, loose []*Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return slices.Collect(maps.Values(ts.running)), slices.Collect(maps.Values(ts.loose))
}

// gaveUp reports whether a record is as an operation here left it whose outcome
// could not be written.
func (ts *tasks) gaveUp(r *StoredRecord) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.loose[r.ID]
	return t != nil && r.Operation == t.Operation && r.Owner == t.Owner && r.Epoch == t.Epoch
}

// unsettled notes a loose end; settled forgets it.
func (ts *tasks) unsettled(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.loose == nil {
		ts.loose = map[string]*Task{}
	}
	ts.loose[t.ID] = t
}

func (ts *tasks) settled(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.loose[t.ID] == t {
		delete(ts.loose, t.ID)
	}
}

// owns reports whether a task's operation goes on, and is still this process'.
func (m *Manager[S, E, T]) owns(t *Task, r *StoredRecord) bool {
	return r.Exists() && !m.resting(r) && r.Operation == t.Operation && r.Owner == t.Owner && r.Epoch == t.Epoch
}

// staleError is ErrStale with the record that an operation was lost to.
type staleError struct{ now StoredRecord }

func (e *staleError) Error() string {
	return fmt.Sprintf("%v: %s is %s in operation %d", ErrStale, e.now.Key.text(), stateOr(e.now.State), e.now.Operation)
}

func (e *staleError) Is(target error) bool { return target == ErrStale }

//go:noinline
func stale(r *StoredRecord) error { return &staleError{*r} }

// beat prolongs the deadline of a task's object.
func (m *Manager[S, E, T]) beat(ctx context.Context, t *Task) error {
	var last error
	for range maxAttempts {
		now, err := m.store.Get(ctx, t.Key)
		if err != nil {
			return err
		}
		var known decide.Record
		if err := m.known(&now, &known); err != nil {
			return err
		}
		if !m.owns(t, &now) {
			t.tell(stale(&now))
			return stale(&now)
		}
		within, _ := m.table.Deadline(known.State, known.Origin)
		_, last = m.touch(ctx, &now, &now, within)
		if !errors.Is(last, ErrConflict) && !errors.Is(last, ErrUnknownOutcome) {
			return last
		}
	}
	return last
}
