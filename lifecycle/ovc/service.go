package ovc

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Config refines a [Service]. The zero Config and nil are the defaults.
type Config struct {
	// Method does one method on the real object, such as stop of a machine. Its
	// context ends when the action is taken away. An error or a panic ends the
	// action, and the object goes back to where it was. It is called from many
	// goroutines, for one object one at a time. Default: methods do nothing and
	// succeed.
	Method func(ctx context.Context, call Call) error
	// StuckAfter is how long an object may be in a transition state before
	// [Service.SelfHeal] puts it back. Default: [StuckAfter].
	StuckAfter time.Duration
	// Retention is how long objects stay in the recycle bin. Default:
	// [Retention].
	Retention time.Duration
	// Observe runs for every object that is stuck. It may look at the real object,
	// and returns the event that reports what has happened to it, and the actor, such
	// as [Done] by [Worker]. Without an actor, the object goes back to where it was.
	// Default: none.
	Observe func(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error)
	// Owner is this process, if several work on one store. Default: none; the
	// actions of a dead process are then found by their deadlines only.
	Owner *lifecycle.Owner
	// MaxRunning bounds the actions that run at once, and MaxPerObject those that
	// wait and run in the queue of one object. Default: [queue.DefaultMaxRunning],
	// and no bound.
	MaxRunning, MaxPerObject int
	// Observer receives what happens to objects.
	Observer lifecycle.Observer
}

// Service moves the objects of one installation. [New] makes one; the zero
// Service is not usable. It is safe for concurrent use and starts no goroutine
// but those of the actions that run. [Queuer.Terminate] ends it in good order.
type Service struct {
	config   Config
	store    lifecycle.Store
	queuer   *Queuer
	managers map[Kind]*Manager
}

// New returns a service of the objects in a store. It panics without a store,
// and for a negative duration or number.
func New(store lifecycle.Store, config *Config) *Service {
	return newService(store, config, lifecycle.Must)
}

// newService makes its managers by a function of its caller, for tests.
func newService(store lifecycle.Store, config *Config, manage func(*machine, lifecycle.Store, *lifecycle.Config[Event]) *Manager) *Service {
	s := &Service{store: store, managers: make(map[Kind]*Manager)}
	if config != nil {
		s.config = *config
	}
	c := &s.config
	if c.StuckAfter == 0 {
		c.StuckAfter = StuckAfter
	}
	if c.Retention == 0 {
		c.Retention = Retention
	}
	if c.StuckAfter < 0 || c.Retention < 0 {
		panic("ovc: New: a negative duration")
	}
	s.queuer = newQueuer(c.MaxRunning, c.MaxPerObject)
	observer := c.Observer
	observer.Changed = func(ctx context.Context, row lifecycle.HistoryRow) {
		s.changed(row)
		if c.Observer.Changed != nil {
			c.Observer.Changed(ctx, row)
		}
	}
	for kind := range Kinds() {
		s.managers[kind] = manage(kind.machine(c.StuckAfter, c.Retention), store, &lifecycle.Config[Event]{
			WorkerActor: Worker, Done: []Event{Done}, Undo: []Event{Stuck},
			Handlers: map[string]lifecycle.Handler{methods: s.handle},
			Observe:  s.observe, Observer: observer, Owner: c.Owner, Queue: s.queuer.lanes,
		})
	}
	return s
}

// machine returns the machine of a kind with these deadlines.
func (k Kind) machine(stuckAfter, retention time.Duration) *machine {
	spec := k.table()
	for i := range spec.Rows {
		switch spec.Rows[i].Event {
		case Stuck:
			spec.Rows[i].Timeout = stuckAfter
		case Expire:
			spec.Rows[i].Timeout = retention
		}
	}
	return fsm.Must[Model](spec)
}

// Queuer returns the queues of the objects.
func (s *Service) Queuer() *Queuer { return s.queuer }

// Objects returns the manager of the objects of a kind, for everything that has
// no method here: lists, histories, reports, overrides. It is nil for a value that
// names no kind.
func (s *Service) Objects(kind Kind) *Manager { return s.managers[kind] }

// Add makes an object in the initial state of its kind: VIRTUAL, MODELED,
// CONFIRMED or ENABLED. Of the model, only the labels are taken.
//
// Errors: [lifecycle.ErrExists], [lifecycle.ErrInvalid], and the store's.
// Nothing is written then.
func (s *Service) Add(ctx context.Context, kind Kind, id string, model Model) (Record, error) {
	m, err := s.manager(kind)
	if err != nil {
		return Record{}, err
	}
	return m.Add(ctx, id, API, Model{Labels: model.Labels})
}

// Get returns an object. Errors: [lifecycle.ErrNotFound],
// [lifecycle.ErrInvalid], and the store's.
func (s *Service) Get(ctx context.Context, kind Kind, id string) (Record, error) {
	m, err := s.manager(kind)
	if err != nil {
		return Record{}, err
	}
	return m.Get(ctx, id)
}

func (s *Service) manager(kind Kind) (*Manager, error) {
	m := s.managers[kind]
	if m == nil {
		return nil, invalid("no kind of object is called %q", string(kind))
	}
	return m, nil
}

// key is that of an object in stores and queues.
func (k Kind) key(id string) lifecycle.Key {
	return lifecycle.Key{Machine: k.Machine().Name(), ID: id}
}

// kindOf is the kind of a machine's objects.
func kindOf(machine string) (Kind, bool) {
	for kind := range Kinds() {
		if kind.Machine().Name() == machine {
			return kind, true
		}
	}
	return "", false
}

// changed ends the queue of an object that is gone for good.
func (s *Service) changed(row lifecycle.HistoryRow) {
	kind, ok := kindOf(row.Machine)
	if ok && kind.Machine().Kind(State(row.To)) == fsm.Final {
		s.queuer.ended(row.Key)
	}
}
