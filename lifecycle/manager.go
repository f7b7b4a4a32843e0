package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// MaxID is the longest id of an object in bytes.
const MaxID = 255

// Manager moves the objects of one machine: S are its states, E its events, T
// the payload of a record. [New] makes one; the zero Manager is not usable. It
// is safe for concurrent use and needs no closing. Of the objects it keeps in
// memory only the work that it does, and it starts no goroutine but for that
// work. Several managers, in several processes, may work on one store.
type Manager[S, E comparable, T any] struct {
	machine  *fsm.Machine[S, E, T]
	table    *fsm.Table
	store    Store
	memory   *MemoryStore // the store, if it is one
	recaller Recaller     // the store, if it is one
	codec    Codec
	undo     []E
	observer Observer
	along    func(context.Context, *StoredChange) (Along, error)
	plain    bool // values of T hold no references
	empty    bool // and no bits
	makes    bool // there is an absent state, out of which events make objects
	redoes   bool // there are deadlines that may begin an operation anew
	verdicts [decide.Refused + 1]atomic.Uint64

	owner    *Owner
	worker   fsm.Actor
	events   decide.Events
	handlers map[string]Handler
	queue    Queue
	observe  func(context.Context, StoredRecord) (E, fsm.Actor, error)
	locks    func(context.Context, StoredRecord) ([]lock.Holder, error)
	tasks    tasks
	calls    sync.Pool // of *call

	operations sync.Pool // of *operation
	trusts     bool      // the queue calls nothing of an action that it has settled
	watchers   watchers
}

// Config refines a [Manager]. The zero Config and nil are the defaults.
type Config[E comparable] struct {
	// Undo are the events that put the payload back which the object had
	// before the operation, in the commit of their move. Default: none.
	Undo []E
	// Codec encodes payloads. Default: [JSON].
	Codec Codec
	// Observer is told what happens. Default: nobody.
	Observer Observer
	// Along is asked about every change of an object that is about to be
	// committed, by whatever verb, work's own outcomes and sweeps included: which
	// changes of other objects are made in the same commit, as by [Together], and
	// on which conditions. So objects that belong together are never seen apart.
	// The change is read only; a removal says so, and its To is in the absent
	// state. It runs without a lock, and is asked again if what it spoke of has
	// moved before the commit: a condition that does not hold, and a part that
	// meets a conflict. Its error is that of the call, and nothing is written; but
	// if the object itself has moved since, it is [ErrConflict]. Where it says
	// [ErrPrecondition] to the outcome of work that succeeded, the outcome is a
	// failure. Default: nothing goes along.
	Along func(ctx context.Context, ch *StoredChange) (Along, error)

	// What follows is for [Manager.Do] and its like.

	// Worker is the actor that says how work ended, by the first event of the
	// list that the table lets it say in the object's state: Done if it
	// succeeded, Failed if it returned an error or panicked. Canceled and
	// TimedOut are tried before Failed for work that was told to end, or took
	// too long. Where the table has none of them for work that did not succeed,
	// the row of the deadline is taken at once, unless it does the work again.
	// Default: none; then Do is refused.
	Worker                           fsm.Actor
	Done, Failed, Canceled, TimedOut []E
	// Handlers are the functions that do work by name: after a crash, another
	// process calls its own function of that name. Default: none.
	Handlers map[string]Handler
	// Owner is this process. Default: nobody; operations whose process died are
	// then found by their deadline alone.
	Owner *Owner
	// Queue is where work waits for its turn: one at a time for each object.
	// Managers of objects that share a limit share a queue. Default: a queue of
	// this manager, with the queue's defaults.
	Queue Queue
	// Observe is asked about every object that a sweep is about to move by the row
	// of its deadline, because that or its owner is gone: it may look at the
	// outside world and choose the event that tells what happened there, and the
	// actor who says it. What the table leaves to a person is left. Without an
	// actor, or with the row's own event by [fsm.Sweeper], the table's own row is
	// taken; after an error the object stays as it is until the next sweep. Steps
	// that were to follow are not done after another event. It runs without a lock,
	// and the sweep waits for it: for no longer than the context lasts, if it minds
	// that. A panic goes on in the caller of the sweep. Default: nobody looks.
	Observe func(ctx context.Context, stuck StoredRecord) (E, fsm.Actor, error)
	// Locks tells [Manager.Explain] who holds or awaits the locks that an
	// object's work needs, see [LocksOf]. Default: it is not asked.
	Locks func(context.Context, StoredRecord) ([]lock.Holder, error)
}

// New returns a manager of a machine's objects in a store. It panics without a
// machine or a store, with an Owner that [Join] did not make, and if the
// configuration names an event or actor that the machine does not have.
func New[S, E comparable, T any](m *fsm.Machine[S, E, T], store Store, config *Config[E]) *Manager[S, E, T] {
	if m == nil || store == nil {
		panic("lifecycle: New needs a machine and a store")
	}
	if config == nil {
		config = &Config[E]{}
	}
	indexes := func(what string, events []E) (list []int) {
		for _, e := range events {
			i := m.EventIndex(e)
			if i < 0 {
				panic(fmt.Sprintf("lifecycle: New: %s has no event %v to %s by", m.Table().Name, e, what))
			}
			list = append(list, i)
		}
		return list
	}
	indexes("undo", config.Undo)
	if config.Owner != nil && config.Owner.records == nil {
		panic("lifecycle: New: the Owner was not made by Join")
	}
	if _, ok := m.Table().ActorIndex(config.Worker); config.Worker != "" && !ok {
		panic(fmt.Sprintf("lifecycle: New: %s has no actor %s to work", m.Table().Name, config.Worker))
	}
	payload := reflect.TypeFor[T]()
	mgr := &Manager[S, E, T]{
		machine: m, table: m.Table(), store: store, codec: config.Codec,
		undo: slices.Clone(config.Undo), observer: config.Observer, along: config.Along,
		plain: isPlain(payload), empty: payload.Size() == 0,
		owner: config.Owner, worker: config.Worker, queue: config.Queue, observe: config.Observe, locks: config.Locks, handlers: maps.Clone(config.Handlers),
		events: decide.Events{
			Done: indexes("end", config.Done), Failed: indexes("fail", config.Failed),
			Canceled: indexes("cancel", config.Canceled), TimedOut: indexes("time out", config.TimedOut),
		},
	}
	mgr.redoes = decide.MayRedo(mgr.table)
	mgr.makes = slices.ContainsFunc(mgr.table.States, func(s fsm.TableState) bool { return s.Kind == fsm.Absent })
	if mgr.queue == nil {
		mgr.queue = queue.Must[Key](nil)
	}
	mgr.memory, _ = store.(*MemoryStore)
	mgr.recaller, _ = store.(Recaller)
	_, mgr.trusts = mgr.queue.(*queue.Queuer[Key])
	if mgr.codec == nil {
		mgr.codec = JSON{}
	}
	return mgr
}

// Machine returns the machine.
func (m *Manager[S, E, T]) Machine() *fsm.Machine[S, E, T] { return m.machine }

// Change is what a call does besides moving the object. Nil is nothing. Nothing
// of it happens with an event that the table ignores. Texts are UTF-8 without
// NUL, or [ErrInvalid].
type Change[T any] struct {
	// Edit changes the payload, in the same commit. It works on a copy; if it
	// fails, nothing is written and its error is returned. It runs once for
	// every attempt, each on a copy of its own, and without any lock: what it
	// does beside editing is done as often. See [Recaller] for one attempt more
	// than there seem to be.
	Edit func(payload *T) error
	// Reason is kept in the record and its history.
	Reason string
	// Require are conditions on other objects, checked in the same commit.
	Require []Precondition
	// Messages are appended in the same commit.
	Messages []Message
	// Force takes rows that are forced only, too.
	Force bool
	// Expect is the revision that the object must have: of the record that the
	// caller has seen and decided on. It is ErrConflict if it has another one, or
	// is gone. Default: whatever it has.
	Expect Revision
	// Operation is what the call goes on with: if it is not the object's, the
	// error is [ErrStale]. Default: whatever the object is in. With it, who began
	// an operation cannot move one that somebody else has begun since. It is for
	// calls about an object that exists: [Manager.Do] does not make one then, and
	// of one that is gone the error is [ErrNotFound].
	Operation OpID
}

// Require is the precondition that an object of this manager is in one of the
// states; with none, that it does not exist. For a state that is not declared, such
// as that of a zero [Record], it holds for no object.
func (m *Manager[S, E, T]) Require(id string, states ...S) Precondition {
	p := Precondition{Key: m.key(id)}
	for _, s := range states {
		name := stateName(m.machine, s) // of one that is not declared: holds for no object
		if i := m.machine.StateIndex(s); i >= 0 && m.table.States[i].Kind == fsm.Absent {
			name = ""
		}
		p.States = append(p.States, name)
	}
	if len(states) == 0 {
		p.States = []string{""}
	}
	return p
}

// Create fires event e out of the absent state and makes the record. Guards
// look at the given payload.
//
// Errors: [ErrExists] with the present record, those of [fsm.Machine.Next],
// [ErrInvalid], and those of the store. Nothing is written then, but for
// [ErrUnknownOutcome].
func (m *Manager[S, E, T]) Create(ctx context.Context, id string, e E, actor fsm.Actor, payload T) (rec Record[S, T], err error) {
	c := m.call("create", id, actor)
	c.event, c.payload = e, payload
	c.q.Verb, c.q.Event = decide.Create, m.machine.EventIndex(e)
	err = c.finish(ctx, &rec)
	return rec, err
}

// Add makes a record in the machine's initial state, for machines whose initial
// state is not absent. The actor must be declared.
//
// Errors: those of [Manager.Create].
func (m *Manager[S, E, T]) Add(ctx context.Context, id string, actor fsm.Actor, payload T) (rec Record[S, T], err error) {
	c := m.call("add", id, actor)
	c.payload = payload
	c.q.Verb = decide.Add
	err = c.finish(ctx, &rec)
	return rec, err
}

// Fire moves an object by event e, if the table lets this actor. The order is
// fixed: row, actor, origin, guard, Edit, compare-and-set, observers. Entering a
// transitional state from a resting one begins an operation; entering an absent
// state removes the record. Of an event that the table ignores nothing is written,
// nor of the change: the record has the revision from before.
//
// The error is [ErrConflict] if somebody else moved the object meanwhile, with
// the record that won (see [Manager.Winner]); Fire does not try again, because
// the request may no longer make sense. Further: [ErrNotFound], [ErrBusy],
// [ErrPrecondition], [ErrStale], [ErrInvalid], [ErrUnknownOutcome], those of
// [fsm.Machine.Next], of Edit and of the store. Nothing is written then, but
// for ErrUnknownOutcome.
func (m *Manager[S, E, T]) Fire(ctx context.Context, id string, e E, actor fsm.Actor, change *Change[T]) (rec Record[S, T], err error) {
	c := m.call("fire", id, actor)
	c.event = e
	c.fires(change)
	err = c.finish(ctx, &rec)
	return rec, err
}

// Get returns the record of an object. The error is [ErrNotFound], ErrInvalid,
// [ErrForeign] or the store's.
func (m *Manager[S, E, T]) Get(ctx context.Context, id string) (Record[S, T], error) {
	fail := func(err error) (Record[S, T], error) {
		return Record[S, T]{}, &Error{Verb: "get", Machine: m.table.Name, ID: id, Err: err}
	}
	if err := checkID(id); err != nil {
		return fail(err)
	}
	r, err := m.store.Get(ctx, m.key(id))
	if err != nil {
		return fail(err)
	}
	if !r.Exists() {
		return fail(ErrNotFound)
	}
	rec, err := m.record(&r)
	if err != nil {
		return fail(err)
	}
	return rec, nil
}

func (m *Manager[S, E, T]) key(id string) Key { return Key{Machine: m.table.Name, ID: id} }

// checkID refuses what not every store can hold as a key.
func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: empty id", ErrInvalid)
	case len(id) > MaxID:
		return fmt.Errorf("%w: id of %d bytes, more than %d", ErrInvalid, len(id), MaxID)
	}
	return checkText("id", id)
}

// checkText refuses what not every store can hold as text.
func checkText(what, text string) error {
	if ascii(text) {
		return nil // nearly every text
	}
	switch {
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: %s %q is not UTF-8", ErrInvalid, what, shown(text))
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("%w: NUL in %s %q", ErrInvalid, what, shown(text))
	}
	return nil
}

// ascii reports whether a text has ASCII characters only, and no NUL.
func ascii(text string) bool {
	for ; len(text) >= 8; text = text[8:] {
		// Eight at a time: one less, a NUL has the high bit, and so has what is
		// not ASCII. What a NUL borrows from the next one spoils nothing any more.
		eight := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
		if (eight|(eight-0x0101010101010101))&0x8080808080808080 != 0 {
			return false
		}
	}
	for i := range len(text) {
		if text[i]-1 >= utf8.RuneSelf-1 {
			return false
		}
	}
	return true
}
