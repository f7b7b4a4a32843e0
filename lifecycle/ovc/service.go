package ovc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Config refines a [Service]. The zero Config and nil are the defaults.
type Config struct {
	// Method performs one method on the real object, such as stop of a machine. Its
	// context ends when the action is canceled. An error or a panic ends the action, and
	// the object returns to its origin. Many goroutines call Method, for one object one at
	// a time. Default: methods do nothing and succeed.
	Method func(ctx context.Context, call Call) error
	// StuckAfter is the time in a transition state after which [Service.SelfHeal] moves
	// an object back. Default: [StuckAfter].
	StuckAfter time.Duration
	// Retention is the time of objects in the recycle bin. Default: [Retention].
	Retention time.Duration
	// Observe runs for every object that is stuck, whose payload is a [Model] as JSON. It
	// may look at the real object, and returns the event that reports what has happened
	// to it, and the actor, such as [Done] by [Worker]. Without an actor, the object
	// returns to its origin. Default: none.
	Observe func(ctx context.Context, stuck lifecycle.StoredRecord) (Event, fsm.Actor, error)
	// Owner is this process, if several work on one store. Default: none; the
	// actions of a dead process are then found by their deadlines only.
	Owner *lifecycle.Owner
	// Shared: the processes that work on one store share the turns of its objects, see
	// [lifecycle.Turns]. An action of one process then starts after the action of another
	// one on the same object, a migration too. It needs Owner, in all processes. An action
	// that waits for another process, or for the store in its turn, counts under MaxRunning.
	// Default: each process has turns of its own.
	Shared bool
	// MaxRunning bounds the actions that run at once. Default: 1,024.
	MaxRunning int
	// Observer receives what happens to objects. Default: none.
	Observer lifecycle.Observer
}

// Service moves the objects of one installation. [New] makes one; the zero
// Service is not usable. It is safe for concurrent use and starts no goroutine
// except those of running actions. [Service.Close] ends it.
type Service struct {
	config   Config
	queuer   *queue.Queuer[lifecycle.Key]
	managers map[Kind]*Manager
}

// New returns a service for the objects in a store. The error is [lifecycle.ErrInvalid]
// if there is no store, for a negative duration or number, and for Shared without Owner.
func New(store lifecycle.Store, config *Config) (*Service, error) {
	s := &Service{managers: make(map[Kind]*Manager)}
	if config != nil {
		s.config = *config
	}
	c := &s.config
	if store == nil || c.StuckAfter < 0 || c.Retention < 0 {
		return nil, invalid("store %T, StuckAfter %v, Retention %v", store, c.StuckAfter, c.Retention)
	}
	c.StuckAfter = cmp.Or(c.StuckAfter, StuckAfter)
	c.Retention = cmp.Or(c.Retention, Retention)
	var err error
	if s.queuer, err = queue.New(&queue.Config[lifecycle.Key]{MaxRunning: c.MaxRunning}); err != nil {
		return nil, fmt.Errorf("ovc: %w: %w", lifecycle.ErrInvalid, err)
	}
	var turns *lifecycle.Turns
	if c.Shared {
		if turns, err = lifecycle.NewTurns(c.Owner, nil); err != nil {
			return nil, err
		}
	}
	for kind := range Kinds() {
		machine := fsm.Must[Model](kind.spec(c.StuckAfter, c.Retention))
		s.managers[kind], err = lifecycle.New(machine, store, &lifecycle.Config[Event]{
			WorkerActor: Worker, Done: []Event{Done}, Undo: []Event{Stuck},
			Handlers: map[string]lifecycle.Handler{methods: s.handle},
			Observe:  s.observe, Observer: c.Observer, Owner: c.Owner, Queue: lifecycle.Shared(s.queuer, turns),
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Must is [New] for arguments that are constant. It panics with the error of New.
func Must(store lifecycle.Store, config *Config) *Service {
	s, err := New(store, config)
	if err != nil {
		panic(err)
	}
	return s
}

// Queuer returns the queues of the objects, by [Kind.Key]. An object has a queue while an
// action waits or runs there.
func (s *Service) Queuer() *queue.Queuer[lifecycle.Key] { return s.queuer }

// Close refuses further actions and waits for those that wait or run. The error is
// [queue.ErrNotDrained] if ctx ends first: the actions continue, and Close may be called
// again.
func (s *Service) Close(ctx context.Context) error {
	err := s.queuer.Terminate(ctx)
	for _, m := range s.managers {
		err = errors.Join(err, lifecycle.Drain(ctx, m))
	}
	return err
}

// Objects returns the manager of the objects of a kind, for lists, histories, reports and
// overrides. It is nil for a value that is not a kind.
func (s *Service) Objects(kind Kind) *Manager { return s.managers[kind] }

// Add adds an object in a static state. The empty state is the initial one of the kind:
// VIRTUAL, MODELED, CONFIRMED or ENABLED. Any other state is for an object that exists
// already; nothing is performed, and its time in the recycle bin counts from now. A disk
// that is attached is added with its VM, and the machine with its Disks: the service
// compares neither with the other.
//
// Errors: [lifecycle.ErrExists]; [lifecycle.ErrInvalid] for a transition state, for
// attributes that are not JSON, for the VM of a disk that is neither ASSIGNED nor
// TOBEDELETED, for Disks of anything but a deployed machine, for a disk that is twice in
// Disks, and for an id in the model that no object can have; [fsm.ErrUnknownState]; and the
// store's. Nothing is written then.
func (s *Service) Add(ctx context.Context, kind Kind, id string, state State, model Model) (Record, error) {
	m, err := s.manager(kind)
	if err != nil {
		return Record{}, err
	}
	if state == "" {
		state = kind.Machine().StateAt(kind.Machine().Table().Initial)
	}
	if err := model.check(kind, state); err != nil {
		return Record{}, err
	}
	return m.Add(ctx, id, state, API, model, nil)
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
		return nil, invalid("%q is not a kind of object", string(kind))
	}
	return m, nil
}
