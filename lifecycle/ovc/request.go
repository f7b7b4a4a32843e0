package ovc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/outage"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Options refine a request. The zero Options and nil are the defaults.
type Options struct {
	// With is the other object of an action on two: the disk of [AddDisk],
	// [AttachDisk] and [DetachDisk], the machine of [Assign] and [Attach].
	// Default: none; then the object alone is moved.
	With string
	// Run performs the action instead of [Config.Method]. It is a function of this
	// process and is lost with it. Default: none.
	Run func(context.Context) error
	// Timeout is how long the action may take once it has begun. Default: no
	// limit but that of self-healing.
	Timeout time.Duration
	// Args are arguments of the action for [Config].Method, such as the target of a
	// migration: a JSON value. The record has them, see [Model].Args, but for a migration,
	// which is in no record. Default: none.
	Args json.RawMessage
	// Attributes replace those of the object when the action begins, see [Model]. Default:
	// they stay as they are.
	Attributes json.RawMessage
	// Reason is kept in the object's history.
	Reason string
	// Administrator: the request is an administrator's. Only administrators pause,
	// resume and reset cloudspaces.
	Administrator bool
}

// Call is one method on an object.
type Call struct {
	Kind   Kind
	ID     string
	Method Event           // such as [Stop]; [Destroy] of a machine is stop, delete and destroy in sequence
	Disks  []string        // that are attached, detached, or deleted with the machine
	Args   json.RawMessage // of [Options]; each method of the sequence has them
}

// Migrate is the method of [Service.Migrate]. No table has it.
const Migrate Event = "migrate"

// methods is the name of the handler of actions.
const methods = "methods"

// job is the work of an action in its record.
type job struct {
	Kind    Kind            `json:"kind"`
	ID      string          `json:"id"`
	Methods []Event         `json:"methods"`
	Disks   []string        `json:"disks,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
}

// Do requests an action on an object and returns after its admission: the
// object has the transition state of the action then, and the action is in the
// object's queue. [Ticket.Wait] returns the outcome: the desired state, or, if a
// method failed, the state where the action began.
//
// An action on a machine's disks moves machine and disk in one commit, from
// either side: attach_disk of a machine with a disk is attach of the disk with
// the machine. A machine that is deleted or destroyed takes its attached disks with
// it. Every other action on an attached disk moves the disk alone,
// in the queue of its machine too.
//
// Errors: [ErrBusy] if the object, or another one that takes part, is in a
// transition state; [ErrOtherAction] if another action was faster;
// [fsm.ErrNotAllowed] if the state has no such action, [fsm.ErrUnknownEvent] if
// the kind has none; [fsm.ErrWrongActor] for an action of administrators or workers;
// [lifecycle.ErrNotFound]; [lifecycle.ErrPrecondition] for a disk of another machine;
// [lifecycle.ErrInvalid]; [queue.ErrStopping], [queue.ErrTerminated] and the store's.
// Nothing is written and nothing is queued then, except after
// [lifecycle.ErrUnknownOutcome].
func (s *Service) Do(ctx context.Context, kind Kind, id string, action Event, options *Options) (*Ticket, error) {
	if _, err := s.manager(kind); err != nil {
		return nil, err
	}
	options, err := options.checked()
	if err != nil {
		return nil, err
	}
	if options.With != "" && (partner[action] == "" || kind.Machine().EventIndex(action) < 0) {
		return nil, invalid("%s of a %s has no other object", action, kind)
	}
	administrative := kind == KindCloudspace && (action == Pause || action == Resume || action == Reset)
	if administrative && !options.Administrator {
		return nil, &lifecycle.Error{
			Verb: "do", Machine: kind.Machine().Name(), ID: id, Event: string(action), Actor: API, Err: fsm.ErrWrongActor,
		}
	}
	r := &request{s: s, kind: kind, id: id, action: action, options: options}
	t, err := r.do(ctx)
	if errors.Is(err, queue.ErrStopping) {
		// In the document the state is checked before the queue.
		if rec, failed := s.Get(ctx, kind, id); failed == nil && IsTransition(rec.State) {
			err = fmt.Errorf("%w: %s %q is %s: %w", lifecycle.ErrBusy, kind, id, rec.State, err)
		}
	}
	return t, refusal(kind, id, err)
}

// checked returns the options, nil ones as the defaults. It refuses arguments that cannot
// be recorded.
func (o *Options) checked() (*Options, error) {
	if o == nil {
		return &Options{}, nil
	}
	if o.Run != nil && len(o.Args) > 0 {
		return nil, invalid("a function instead of the methods has no arguments")
	}
	return o, lifecycle.Limits{}.CheckPayload(Model{Args: o.Args})
}

// request is one call of Do.
type request struct {
	s       *Service
	kind    Kind
	id      string
	action  Event
	options *Options
}

func (r *request) do(ctx context.Context) (*Ticket, error) {
	with := r.options.With
	switch {
	case r.kind == KindVM && with != "":
		return r.pair(ctx, r.id, with, partner[r.action])
	case r.kind == KindDisk && r.action != Detach && with != "":
		return r.pair(ctx, with, r.id, r.action)
	case r.kind == KindDisk:
		return r.disk(ctx)
	case r.kind == KindVM && (r.action == Delete || r.action == Destroy):
		return r.withDisks(ctx)
	}
	m := r.s.managers[r.kind]
	return m.Do(ctx, r.id, r.action, API, r.work(r.job()), r.ownChange(nil))
}

func (r *request) job(disks ...string) job {
	j := job{Kind: r.kind, ID: r.id, Methods: []Event{r.action}, Disks: disks, Args: r.options.Args}
	if r.kind == KindVM && r.action == Destroy {
		j.Methods = []Event{Stop, Delete, Destroy}
	}
	return j
}

// change is the change of an object that takes part in the action. The arguments are in the
// record of the requested object; those of an earlier action are not kept beside this one.
func (r *request) change(edit func(*Model) error) *change {
	return &change{Reason: r.options.Reason, Edit: func(m *Model) error {
		m.Args = nil
		if edit == nil {
			return nil
		}
		return edit(m)
	}}
}

// ownChange is the change of the requested object: it has the arguments, and may get other
// attributes.
func (r *request) ownChange(edit func(*Model) error) *change {
	return r.change(func(m *Model) error {
		m.Args = r.options.Args
		if len(r.options.Attributes) > 0 {
			m.Attributes = r.options.Attributes
		}
		if edit == nil {
			return nil
		}
		return edit(m)
	})
}

func (r *request) work(j job) lifecycle.Work {
	work := lifecycle.Named(methods, j.encode())
	if run := r.options.Run; run != nil {
		work = lifecycle.Func(func(ctx context.Context) error {
			if err := r.s.extendDeadline(ctx); err != nil {
				return err
			}
			return run(ctx)
		})
	}
	work.Timeout = r.options.Timeout
	return work
}

// Migrate moves a machine to another node. It changes neither status nor model. It waits
// for its turn in the machine's queue. Meanwhile one action of a user is accepted, and
// performed after it. A machine that does not exist when its turn comes is not migrated:
// the ticket's outcome is [queue.Skipped].
//
// Errors: [ErrBusy] for a machine in a transition state, [fsm.ErrNotAllowed] for
// one that is not running, paused or halted; [lifecycle.ErrNotFound],
// [lifecycle.ErrInvalid], [queue.ErrStopping], [queue.ErrTerminated], and the
// store's.
func (s *Service) Migrate(ctx context.Context, vm string, options *Options) (*queue.Ticket[lifecycle.Key], error) {
	options, err := options.checked()
	if err != nil {
		return nil, err
	}
	if options.With != "" || len(options.Attributes) > 0 {
		return nil, invalid("a migration has no other object, and changes no attributes")
	}
	m := s.managers[KindVM]
	rec, err := m.Get(ctx, vm)
	if err != nil {
		return nil, err
	}
	switch {
	case IsTransition(rec.State):
		err := fmt.Errorf("%w: machine %q is %s", lifecycle.ErrBusy, vm, rec.State)
		return nil, &RefusedError{Reason: ErrBusy, Kind: KindVM, ID: vm, Err: err}
	case !slices.Contains(migrates, rec.State):
		return nil, &lifecycle.Error{
			Verb: "occupy", Machine: VM.Name(), ID: vm, From: string(rec.State), Event: string(Migrate), Err: fsm.ErrNotAllowed,
		}
	}
	r := &request{s: s, kind: KindVM, id: vm, action: Migrate, options: options}
	ticket, err := lifecycle.Occupy(ctx, m, vm, string(Migrate), r.work(r.job()), migrates...)
	return ticket, refusal(KindVM, vm, err)
}

// migrates are the states in which a machine can be migrated. In a transition state the
// action of the machine waits behind the migration.
var migrates = []State{
	Running, Paused, Halted, Pausing, Resuming, Stopping, Rebooting, Resetting,
	AddingDisk, AttachingDisk, DetachingDisk, Deleting, Destroying,
}

// handle performs the work of an action.
func (s *Service) handle(ctx context.Context, args []byte) error {
	var j job
	if err := json.Unmarshal(args, &j); err != nil {
		return fmt.Errorf("ovc: %w: %w", lifecycle.ErrForeign, err)
	}
	if err := s.extendDeadline(ctx); err != nil {
		return err
	}
	if s.config.Method == nil {
		return nil
	}
	for _, method := range j.Methods {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.config.Method(ctx, Call{Kind: j.Kind, ID: j.ID, Method: method, Disks: j.Disks, Args: j.Args}); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
	return nil
}

// extendDeadline extends the deadline of an action that had to wait for its turn, so that
// the action has the whole time from here on. A store that is unavailable delays the action.
func (s *Service) extendDeadline(ctx context.Context) error {
	task, action := lifecycle.TaskOf(ctx), queue.Current[lifecycle.Key](ctx)
	if task == nil || action == nil {
		return nil
	}
	if i := action.Info(); i.Started.Sub(i.Accepted) < s.config.StuckAfter/10 {
		return nil
	}
	return outage.Outlast(ctx, func() error { return task.Heartbeat(ctx) })
}

func (j *job) encode() []byte {
	data, err := json.Marshal(j)
	if err != nil {
		panic("ovc: " + err.Error()) // strings and valid JSON can be encoded
	}
	return data
}
