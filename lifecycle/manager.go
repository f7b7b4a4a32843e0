package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// Manager moves the objects of one machine: S are its states, E its events, T is
// the payload of a record. [New] makes one; the zero Manager is not usable. A
// Manager is safe for concurrent use and needs no closing. It caches no objects,
// keeps only running work in memory, and starts no goroutine except for that work and
// its outcome.
// Several managers in several processes may use one store.
//
// The caller of a method is responsible for the actor that it names. The library compares
// the actor with the rows of the table and authenticates nothing. A service derives the
// actor from the credentials of a request, never from its text. [fsm.Sweeper] is the actor
// of sweeps and of work without an event for its outcome: every method refuses it with
// [fsm.ErrWrongActor], and only Config.Observe may return it.
type Manager[S, E comparable, T any] struct {
	machine *fsm.Machine[S, E, T]
	core    *core
}

// AnyManager is a [Manager] of any types, for functions that do not depend on them.
type AnyManager interface{ untyped() *core }

func (m *Manager[S, E, T]) untyped() *core { return m.core }

// Machine returns the machine of the objects.
func (m *Manager[S, E, T]) Machine() *fsm.Machine[S, E, T] { return m.machine }

// QueueOf returns the queue of a manager's work: that of [Config], or else the manager's
// own one, which is a *[queue.Queuer] of [Key].
func QueueOf(m AnyManager) Queue { return m.untyped().queue }

// Config refines a [Manager]. The zero Config and nil are the defaults.
type Config[E comparable] struct {
	// Undo are the events that restore the payload from before the operation, in
	// the commit of their move. Default: none.
	Undo []E
	// Observer receives what happens. Default: nothing.
	Observer Observer
	// BeforeCommit runs before every commit that changes an object, for every verb,
	// outcomes of work and sweeps included. It returns additional changes and preconditions
	// for the same commit, or nil. The change is read only; a removal has Remove set and
	// the absent state in To. To has the payload after the change. A counter that also needs
	// the earlier payload reads the record by Store.Get: it is the record before the change
	// if its Revision is Expect, and otherwise the commit will be a conflict. The change has
	// the states and the payload of the manager's version, also if the record is of one of
	// Older; Store.Get returns such a record in its own form.
	//
	// BeforeCommit runs once for each change of the commit: those of a [Tx], and additional
	// changes of objects of its manager. The commit is [ErrInvalid] if it would change an
	// object twice.
	//
	// BeforeCommit runs without a lock, and again if an additional change meets a conflict or
	// an additional precondition fails in the commit, because of an object or of a grant. The
	// preconditions of an additional change are additional ones too. If an additional change
	// depends on the state that BeforeCommit has read, name that in [Change.Expect].
	// Heartbeats and other commits without a history row do not run BeforeCommit.
	//
	// Its error is the error of the call, and nothing is written. If the object
	// itself has moved meanwhile, the error is [ErrConflict] instead. If the error
	// matches [ErrPrecondition] and the change is the outcome of work that
	// succeeded, the outcome becomes a failure. Default: none.
	BeforeCommit func(ctx context.Context, change *StoredChange) (*Tx, error)

	// Limits bounds reasons, payloads, arguments and messages. Default: see [Limits].
	Limits Limits
	// Progress receives how far a long call of the manager is: what it does, how much is
	// done, and of how much. [Migrate] calls it after every record of its page, and
	// [Drain] every second with the pieces of work and the outcomes. It runs in the
	// goroutine of the caller, without a lock. Default: none.
	Progress func(what string, done, total int)

	// Version names the version of the table and the payload, for records: up to 255
	// bytes of text. A program that reads a record of a version which it has neither here
	// nor in Older refuses it with [ErrForeign]. Default: empty, as in records from before
	// versions were named.
	Version string
	// Older are earlier versions, the newest last. The manager reads their records as if
	// they were of this version, and a change of such a record writes it in the form of its
	// own version. A change into a state that the older version lacks is refused with
	// [fsm.ErrNotAllowed]. Until Switch is set, new objects are of the last of these
	// versions. Default: none.
	Older []Version
	// Switch permits new objects and [Migrate] to write Version. Set it when no
	// program that does not have Version runs any more. Default: false.
	Switch bool

	// The remaining fields are for operations, see [Manager.Do].

	// WorkerActor is the actor that reports how work ended. If the work succeeded, it fires
	// the first event of Done that the table permits, otherwise the first event of Failed.
	// If the work did not succeed and the table permits no event of Failed, the deadline
	// row of the state fires at once, unless that row does the work again. It is not
	// [fsm.Sweeper]. Default: none; Do is then refused.
	WorkerActor  fsm.Actor
	Done, Failed []E
	// Handlers are the functions that do work, by name. After a crash another
	// process calls its own function of that name. Default: none.
	Handlers map[string]Handler
	// Owner is this process. It has joined the store of the manager, see [Join]; otherwise
	// an operation is refused with [ErrMisconfigured]. Default: none; operations whose
	// process died are then found by their deadlines only.
	Owner *Owner
	// Queue is where work waits for its turn, one at a time for each object.
	// Managers whose objects share a limit share a queue. Default: a queue of this
	// manager with the queue's defaults, which [Drain] drains.
	Queue Queue
	// Inject returns the values of the context of [Manager.Do] and [Occupy] that
	// their work needs, such as the ids of a trace. The record keeps them with the
	// operation. [Limits].Carrier bounds them. Default: none.
	Inject func(ctx context.Context) map[string]string
	// Extract returns a context that is derived from ctx and has the values that Inject
	// returned. It is the context of the work, in whichever process that runs, and of
	// BeforeCommit and the Observer for the outcome of the work. Extract does not run
	// if Inject returned no values. Default: the work sees none.
	Extract func(ctx context.Context, values map[string]string) context.Context
	// Observe runs for every object that a sweep is about to move by its deadline
	// row. It may look at the outside world, and returns the event that reports
	// what it has found there, and the actor that reports it. Without an actor, or
	// with the row's own event and [fsm.Sweeper], the deadline row fires. After an
	// error the object stays unchanged until the next sweep. The sweep waits for
	// Observe, which runs without a lock. A panic continues in the caller of the
	// sweep. States that the table names Manual are not observed. Default: none.
	Observe func(ctx context.Context, stuck StoredRecord) (E, fsm.Actor, error)
}

// New returns a manager of a machine's objects in a store. The error matches
// [ErrInvalid]: there is no machine or no store, the store's type is not
// comparable, [Join] did not make the Owner, the name of the machine begins with
// "interlock.", the name of a version is not up to 255 bytes of text, the older versions are
// not as [Version] demands, the configuration names an event or actor that the machine does
// not have, or the store is [Partial] and cannot keep what they need.
func New[S, E comparable, T any](m *fsm.Machine[S, E, T], store Store, config *Config[E]) (*Manager[S, E, T], error) {
	if config == nil {
		config = &Config[E]{}
	}
	if err := checkConfig(m, store, config); err != nil {
		return nil, err
	}
	table := m.Table()
	var undo []int
	var events decide.Events
	for _, field := range []struct {
		name    string
		events  []E
		indices *[]int
	}{{"Done", config.Done, &events.Done}, {"Failed", config.Failed, &events.Failed}, {"Undo", config.Undo, &undo}} {
		for _, e := range field.events {
			if m.EventIndex(e) < 0 {
				return nil, fmt.Errorf("%w: New: Config.%s: machine %s has no event %q", ErrInvalid, field.name, table.Name, fmt.Sprint(e))
			}
			*field.indices = append(*field.indices, m.EventIndex(e))
		}
	}
	older, err := newOlder(table, config)
	if err != nil {
		return nil, err
	}
	c := &core{
		table: table, store: store, retries: newRetries(), undo: undo,
		observer: config.Observer, beforeCommit: config.BeforeCommit, limits: config.Limits.withDefaults(), progress: config.Progress,
		owner: config.Owner, worker: config.WorkerActor, handlers: maps.Clone(config.Handlers), queue: config.Queue,
		version: config.Version, older: older, switched: config.Switch,
		events: events, watchers: &watchers{}, inject: config.Inject, extract: config.Extract,
	}
	if memory, ok := store.(*MemoryStore); ok {
		c.watchers = &memory.watchers
	}
	if c.owner != nil {
		c.self = c.owner.ref
	}
	if c.queue == nil {
		c.ownQueue = queue.Must[Key](nil)
		c.queue = c.ownQueue
	}
	if table.Name != ownersTable {
		c.owners = newOwners(store, DefaultTTL)
	}
	if err := c.checkStore(reflect.TypeFor[T]().Size() > 0); err != nil {
		return nil, err
	}
	mgr := &Manager[S, E, T]{machine: m, core: c}
	c.payloads = mgr
	if observe := config.Observe; observe != nil {
		c.observe = func(ctx context.Context, r StoredRecord) (sighting, error) {
			e, actor, err := observe(ctx, r)
			return sighting{event: m.EventIndex(e), name: fmt.Sprint(e), actor: actor}, err
		}
	}
	return mgr, nil
}

// Must is [New] for configurations that are constant. It panics with the error of
// New.
func Must[S, E comparable, T any](m *fsm.Machine[S, E, T], store Store, config *Config[E]) *Manager[S, E, T] {
	mgr, err := New(m, store, config)
	if err != nil {
		panic(err)
	}
	return mgr
}

// checkConfig returns what [New] refuses before it reads the events and the older versions.
func checkConfig[S, E comparable, T any](m *fsm.Machine[S, E, T], store Store, config *Config[E]) error {
	switch {
	case m == nil || store == nil:
		return fmt.Errorf("%w: New needs a machine and a store", ErrInvalid)
	case !reflect.TypeOf(store).Comparable():
		return fmt.Errorf("%w: New: a store of type %T cannot be compared with another one", ErrInvalid, store)
	case config.Owner != nil && config.Owner.core == nil:
		return fmt.Errorf("%w: New: Config.Owner was not made by Join", ErrInvalid)
	}
	for _, v := range append([]Version{{Name: config.Version}}, config.Older...) {
		if err := checkText("version", v.Name, MaxID); err != nil {
			return err
		}
	}
	table := m.Table()
	if _, own := any(m).(*fsm.Machine[ownerState, ownerEvent, ownerTerms]); !own && strings.HasPrefix(table.Name, "interlock.") {
		return fmt.Errorf("%w: New: machine names that begin with interlock. are the library's: %s", ErrInvalid, table.Name)
	}
	if config.WorkerActor == fsm.Sweeper {
		return fmt.Errorf("%w: New: Config.WorkerActor: only sweeps act as %s", ErrInvalid, fsm.Sweeper)
	}
	if _, ok := table.ActorIndex(config.WorkerActor); config.WorkerActor != "" && !ok {
		return fmt.Errorf("%w: New: Config.WorkerActor: machine %s has no actor %q", ErrInvalid, table.Name, config.WorkerActor)
	}
	return nil
}

// Create fires event e out of the absent state and creates the record. The payload
// is what guards see after the change; before it they see the zero payload. The
// change's Edit works on the payload.
//
// Errors: [ErrExists] with the present record, [ErrRepeated], those of
// [fsm.Machine.Next], [ErrInvalid], and those of the store. Nothing is written then,
// except after [ErrUnknownOutcome].
func (m *Manager[S, E, T]) Create(ctx context.Context, id string, e E, actor fsm.Actor, payload T, change *Change[T]) (Record[S, T], error) {
	return m.apply(ctx, m.creating(id, e, actor, payload, change))
}

func (m *Manager[S, E, T]) creating(id string, e E, actor fsm.Actor, payload T, change *Change[T]) *request {
	r := m.request(decide.Create, "create", id, &e, actor, change)
	r.payload, r.invalid = pack(payload, r.core.limits.Payload)
	return r
}

// Add creates a record in a state: the machine's initial one, or, for an object that exists
// already, any declared state at rest, which is neither transitional nor absent. In another
// state than the initial one the history row has the event [Overridden], because the table
// lets no object begin there. A deadline of the state counts from now. The actor must be
// declared. No guard runs.
//
// Errors: [fsm.ErrUnknownState], [ErrInvalid] for a state in which no object can be added,
// and those of [Manager.Create].
func (m *Manager[S, E, T]) Add(ctx context.Context, id string, state S, actor fsm.Actor, payload T, change *Change[T]) (Record[S, T], error) {
	return m.apply(ctx, m.adding(id, state, actor, payload, change))
}

func (m *Manager[S, E, T]) adding(id string, state S, actor fsm.Actor, payload T, change *Change[T]) *request {
	r := m.request(decide.Add, "add", id, nil, actor, change)
	r.payload, r.invalid = pack(payload, r.core.limits.Payload)
	if r.ask.To = m.machine.StateIndex(state); r.ask.To < 0 {
		r.invalid = m.unknownState(state, actor)
	} else if kind := m.machine.Kind(state); kind == fsm.Absent || kind == fsm.Transitional && r.ask.To != m.core.table.Initial {
		r.invalid = fmt.Errorf("%w: state %q is %v: only an object at rest can be added", ErrInvalid, fmt.Sprint(state), kind)
	} else if r.Reason == "" && r.ask.To != m.core.table.Initial {
		r.Reason = "added: it exists already"
	}
	return r
}

// unknownState returns the error for a state that a caller wants an object to enter.
func (m *Manager[S, E, T]) unknownState(state S, actor fsm.Actor) error {
	return &fsm.TransitionError{
		Machine: m.core.table.Name, To: fmt.Sprint(state), Actor: actor, Row: -1, Err: fsm.ErrUnknownState,
	}
}

// Fire moves an object by event e, if the table permits it to this actor. The
// order is fixed: candidate rows by state, event, actor and origin; the change's
// Edit, on a copy; the guards in order of the rows; compare-and-set; observers.
// Entering a transitional state from another kind of state starts an operation.
// Entering an absent state removes the record. For an event that the table
// ignores, nothing is written and the change is dropped: the result is the record
// that was read.
//
// The error is [ErrConflict] if another writer has moved the object meanwhile; see
// [Current]. Fire does not try again, because the request may be wrong for
// the state that the object is in now. Further: [ErrNotFound], [ErrBusy], [ErrRepeated],
// [ErrPrecondition], [ErrStale], [ErrInvalid], [ErrUnknownOutcome], those of
// [fsm.Machine.Next], of Edit and of the store. Nothing is written then, except
// after ErrUnknownOutcome.
func (m *Manager[S, E, T]) Fire(ctx context.Context, id string, e E, actor fsm.Actor, change *Change[T]) (Record[S, T], error) {
	return m.apply(ctx, m.request(decide.Fire, "fire", id, &e, actor, change))
}

// Override puts an object into a state without a row of the table. It skips rows,
// actors and guards, never the compare-and-set, the history or the operation id:
// an override is an operation of its own, so that reports about the present one
// are stale. Actor and reason are mandatory. An absent state removes the object. In a
// transitional state, the operation has no work and no owner, and sweeps fire the deadline
// row, see [Manager.Sweep]. The payload stays as the present operation has left it, because
// [Config].Undo is for events; Edit changes it. Prefer a forced row, if the table has one.
//
// The actor need not be declared, because the table permits nothing here: it is up to
// 255 bytes of text for the history, such as the account of the operator. It cannot be
// [fsm.Sweeper]. The caller decides which of its users may override.
//
// Errors: [ErrNotFound], [ErrInvalid] for an actor or a reason that is empty or
// blank, [fsm.ErrWrongActor] for the sweeper, [fsm.ErrUnknownState], [ErrConflict], those of
// Edit and of the store. Nothing is written then, except after [ErrUnknownOutcome].
func (m *Manager[S, E, T]) Override(ctx context.Context, id string, to S, actor fsm.Actor, reason string, change *Change[T]) (Record[S, T], error) {
	return m.apply(ctx, m.overriding(id, to, actor, reason, change))
}

func (m *Manager[S, E, T]) overriding(id string, to S, actor fsm.Actor, reason string, change *Change[T]) *request {
	r := m.request(decide.Override, "override", id, nil, actor, change)
	r.ask.To, r.Reason = m.machine.StateIndex(to), reason
	r.invalid = checkSigned("an override", actor, reason)
	if r.ask.To < 0 {
		r.invalid = m.unknownState(to, actor)
	}
	return r
}

// checkSigned refuses a verb that skips the table without an actor and a reason.
func checkSigned(verb string, actor fsm.Actor, reason string) error {
	if strings.TrimSpace(string(actor)) == "" || strings.TrimSpace(reason) == "" {
		return fmt.Errorf("%w: %s needs an actor and a reason", ErrInvalid, verb)
	}
	return nil
}

// apply performs a request and returns its result.
func (m *Manager[S, E, T]) apply(ctx context.Context, r *request) (Record[S, T], error) {
	if _, err := apply(ctx, []*request{r}, nil); err != nil {
		return Record[S, T]{}, r.fail(ctx, err)
	}
	return m.result(r), nil
}

// result returns the record as a request has left it. The request has succeeded.
func (m *Manager[S, E, T]) result(r *request) Record[S, T] {
	stored, state, origin := &r.before, r.known.State, r.known.Origin
	if r.written() {
		stored, state, origin = &r.change.To, r.decision.State, r.decision.Origin
	}
	status := fsm.Status[S]{State: m.machine.StateAt(state), Origin: m.machine.StateAt(origin)}
	payload, _ := r.decoded.(T)
	rec := newRecord(status, stored, payload)
	rec.Version = r.version
	return rec
}

// request makes a request of a verb. The event is nil if the verb names a state instead.
func (m *Manager[S, E, T]) request(verb decide.Verb, name, id string, e *E, actor fsm.Actor, change *Change[T]) *request {
	r := &request{
		core: m.core, verb: name, key: Key{m.core.table.Name, id}, byCaller: true, ask: decide.Request{Verb: verb, Actor: actor},
	}
	if e != nil {
		if r.ask.Event = m.machine.EventIndex(*e); r.ask.Event >= 0 {
			r.event = m.core.table.Events[r.ask.Event]
		} else {
			r.event = fmt.Sprint(*e)
		}
	}
	if change == nil {
		return r
	}
	r.Change = Change[[]byte]{
		Reason: change.Reason, Require: change.Require, Fence: change.Fence, Messages: change.Messages, Force: change.Force,
		Expect: change.Expect, IfMatch: change.IfMatch, Request: change.Request, Operation: change.Operation, Admission: change.Admission,
	}
	if change.Edit != nil {
		r.Edit = editBytes(change.Edit, m.core.limits.Payload)
	}
	r.ask.Force, r.ask.Edits = r.Force, r.Edit != nil
	return r
}
