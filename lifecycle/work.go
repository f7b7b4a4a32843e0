package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// Work is what an operation does from its admission to its outcome: exactly one of
// Handler and Run. It is a value and may be used many times, unless it has With.
type Work struct {
	// Handler is the name of a function in [Config.Handlers], and Args are its
	// arguments. The record keeps both, so that another process can do the work if
	// this one dies.
	Handler string
	Args    []byte
	// Run is a function of this process and dies with it. It is refused if the table's
	// answer to a dead owner is to do the work again, in the state that the operation
	// enters or in one that the operation may enter later.
	Run func(context.Context) error
	// Timeout is how long one attempt may take; its context then ends. 0: no limit
	// except the object's deadline. The record keeps it with Handler: another
	// process that does the work gives it the same time, from its start.
	Timeout time.Duration
	// Retries repeats work that fails. The zero value means one attempt.
	Retries Retries
	// Class is the path of the queue's limits that apply, see
	// [queue.Action].Class. It is UTF-8 without NUL. The record keeps it with Handler.
	Class string
	// Preempt is what the work does to the work in front of it in the queue, see
	// [queue.Action].Preempt. It is for deletes.
	Preempt queue.Preempt
	// Also are further objects whose turns the work takes in the queue, of this
	// manager or of others that share the queue, without any change of theirs. They
	// need not exist. A process that does the work again does not take their turns.
	Also []Key
	// With are changes of other objects that take part in the operation: a disk that is
	// attached changes, and the machine that it is attached to. One commit admits all of
	// them or none, the work takes the turns of all of them in the queue, and one commit
	// writes the outcome for all of them, for each by the events of its own manager. The
	// outcome does not change an object that another writer has moved meanwhile, that has
	// no row for the outcome, or that is foreign ([ErrForeign]). A change that starts no
	// operation has no outcome.
	//
	// If another writer takes the operation's own object away, the outcome is Lost. The
	// other objects then get the outcome Canceled if this loss has ended the work.
	// Otherwise they get the outcome of the work: if the work returns nil, they get an
	// event of Done. A process that has lost its Owner writes nothing for them.
	//
	// This process owns the objects, like the operation's own object. If the process dies,
	// the sweeps of each manager find its objects by the manager's own table. The records
	// of the objects name no work, so Do refuses an operation whose work the table may do
	// again. Every manager needs the store and the Owner of this one, a WorkerActor and
	// Done.
	With *Tx

	carrier map[string]string // of Config.Inject
}

// Handler is a function that does work by name. Its result is the outcome: nil is
// success, an error or a panic is a failure. If the operation is taken away, its
// context ends and its result has no effect.
type Handler func(ctx context.Context, args []byte) error

// Func returns work that is a function of this process.
func Func(run func(context.Context) error) Work { return Work{Run: run} }

// Named returns work that is a registered function.
func Named(handler string, args []byte) Work { return Work{Handler: handler, Args: args} }

// workOptions is the form of [StoredRecord].WorkOptions.
type workOptions struct {
	Timeout time.Duration `json:"timeout,omitempty"` // in nanoseconds
	Class   string        `json:"class,omitempty"`
	Waiting bool          `json:"waiting,omitempty"` // see turn.go

	Carrier map[string]string `json:"carrier,omitempty"` // of Config.Inject

	// Of Retries, and then of the attempts; see attempts.go.
	Attempts int           `json:"attempts,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"`    // in nanoseconds
	MaxDelay time.Duration `json:"maxDelay,omitempty"` // in nanoseconds
	Failed   int           `json:"failed,omitempty"`   // attempts
	Error    string        `json:"error,omitempty"`    // of the last one
	Next     time.Time     `json:"next,omitzero"`      // the next attempt; zero: it is under way
}

// options returns what the record keeps beside the handler and its arguments, nil
// if that is nothing. No other process needs the time-out and the class of a function.
func (w *Work) options() []byte {
	options := workOptions{Attempts: w.Retries.Attempts, Delay: w.Retries.Delay, MaxDelay: w.Retries.MaxDelay, Carrier: w.carrier}
	if w.Handler != "" {
		options.Timeout, options.Class = w.Timeout, w.Class
	}
	return options.encode()
}

// encode returns the form of [StoredRecord].WorkOptions, nil for the defaults.
func (w workOptions) encode() []byte {
	data, err := json.Marshal(w)
	if err != nil {
		panic("lifecycle: work options: " + err.Error()) // numbers, strings and flags can always be encoded
	}
	if string(data) == "{}" {
		return nil
	}
	return data
}

// readOptions is the inverse of encode. The error matches [ErrForeign].
func readOptions(r *StoredRecord) (options workOptions, err error) {
	if len(r.WorkOptions) == 0 {
		return options, nil
	}
	if err := json.Unmarshal(r.WorkOptions, &options); err != nil {
		return options, fmt.Errorf("%w: work options: %w", ErrForeign, err)
	}
	return options, nil
}

// recordedWork returns the work that a record names. The error matches [ErrForeign].
func recordedWork(r *StoredRecord) (Work, error) {
	options, err := readOptions(r)
	if err != nil {
		return Work{}, err
	}
	return Work{
		Handler: r.Work, Args: r.Args, Timeout: options.Timeout, Class: options.Class,
		Retries: Retries{Attempts: options.Attempts, Delay: options.Delay, MaxDelay: options.MaxDelay},
		carrier: options.Carrier,
	}, nil
}

// editOptions changes the options of a record. The error matches [ErrForeign].
func editOptions(r *StoredRecord, edit func(*workOptions)) error {
	options, err := readOptions(r)
	if err != nil {
		return err
	}
	edit(&options)
	r.WorkOptions = options.encode()
	return nil
}

// checkWork refuses work that cannot be done.
func (c *core) checkWork(w *Work) error {
	switch {
	case (w.Run == nil) == (w.Handler == ""):
		return fmt.Errorf("%w: work needs either a handler or a function", ErrMisconfigured)
	case w.Handler != "" && c.handlers[w.Handler] == nil:
		return fmt.Errorf("%w: no handler %q in Config.Handlers", ErrMisconfigured, w.Handler)
	case w.Timeout < 0:
		return fmt.Errorf("%w: negative time-out of work", ErrInvalid)
	case w.Retries.Attempts < 0 || w.Retries.Delay < 0 || w.Retries.MaxDelay < 0:
		return fmt.Errorf("%w: negative number in the retries of work", ErrInvalid)
	}
	return checkText("class", w.Class, -1) // records keep it
}

// checkWorker refuses operations of a manager that cannot write their outcomes.
func (c *core) checkWorker() error {
	if c.worker == "" || len(c.events.Done) == 0 {
		return fmt.Errorf("%w: Config of %s names no WorkerActor or no Done event", ErrMisconfigured, c.table.Name)
	}
	return nil
}

// canDo reports whether this process can do the work of a handler, and report its outcome.
func (c *core) canDo(handler string) bool {
	return c.handlers[handler] != nil && c.checkWorker() == nil
}

// Queue is where work waits for its turn: one at a time for each key, in order of
// admission. A [queue.Queuer] of keys is one.
//
// The ticket is a Queuer's, because the work is done in this process even if the turns
// are shared with others, see [Shared].
type Queue interface {
	Submit(ctx context.Context, key Key, act *queue.Action) (*queue.Ticket[Key], error)
	SubmitAll(ctx context.Context, keys []Key, act *queue.Action) (*queue.Ticket[Key], error)
}

// Outcome is how the work of an operation ended, as text for people. Every operation that was
// admitted has exactly one outcome.
type Outcome string

// The outcomes of an operation. See [Config] for the events that report them.
const (
	// Succeeded: the work returned nil.
	Succeeded Outcome = "succeeded"
	// Failed: the work returned an error.
	Failed Outcome = "failed"
	// Panicked: the work panicked or called runtime.Goexit.
	Panicked Outcome = "panicked"
	// Canceled: the work was ended by [Ticket.Cancel] or by the queue.
	Canceled Outcome = "canceled"
	// TimedOut: the last attempt returned an error after Timeout.
	TimedOut Outcome = "timed out"
	// Lost: the operation was taken away, by a later operation, by the sweeper or
	// by another report of its end. The outcome of the work is not written for the object.
	// [Work].With describes what is written for the other objects of the operation.
	Lost Outcome = "lost"
)

// outcomeOf returns the operation's outcome for a queue's outcome.
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
	Admission Token // identifies the operation
	// Outcome is how the work ended. Succeeded is possible only with Unwritten: the
	// work has succeeded, and the record does not have that.
	Outcome Outcome
	// Err is what the work or its [EditOutcome] returned, a [queue.PanicError], the
	// cause that ended the work, or an error that matches ErrStale for a lost
	// operation.
	Err error
	// Unwritten is why the outcome is not in the record: no row of the table permits its
	// events, or the store failed until the deadline or the shutdown. Sweeps find the
	// object by its deadline, and sweeps of this manager report it if it has none. If a
	// guard, a hook or an observer panicked while the outcome was written or reported, it is
	// a [*queue.PanicError], and the record may have the outcome. Nil: the record has the
	// outcome, unless the operation was lost.
	Unwritten error
}

// Error returns one line.
func (e *OutcomeError) Error() string {
	text := fmt.Sprintf("lifecycle: operation %d of %s %v", e.Operation, e.Key.text(), e.Outcome)
	if e.Outcome == Succeeded {
		text = fmt.Sprintf("lifecycle: operation %d of %s: the work has succeeded", e.Operation, e.Key.text())
	}
	if e.Err != nil {
		text += ": " + fmt.Sprint(e.Err) // fmt recovers if Error panics
	}
	if e.Unwritten != nil {
		text += "; outcome not written: " + e.Unwritten.Error()
	}
	return oneLine(text)
}

// Unwrap returns Err and Unwritten.
func (e *OutcomeError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, e.Unwritten}, func(err error) bool { return err == nil })
}

// The carrier of an operation are the values of the caller's context that its work
// needs. The record keeps it in the work options, so that another process that does the
// work has it too.

// carrierOf returns the values of a caller's context.
func (c *core) carrierOf(ctx context.Context) map[string]string {
	if c.inject == nil {
		return nil
	}
	return maps.Clone(c.inject(ctx)) // the user may change its map
}

// carry returns a context with the values of a carrier.
func (c *core) carry(ctx context.Context, carrier map[string]string) context.Context {
	if c.extract == nil || len(carrier) == 0 {
		return ctx
	}
	return c.extract(ctx, maps.Clone(carrier))
}
