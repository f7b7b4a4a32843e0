package blazar

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Config refines a [Service]. The zero Config and nil are the defaults.
type Config struct {
	// Plugins are the types of resources that can be reserved. Default: none.
	Plugins map[string]Plugin
	// Notice is how long before its end a lease without BeforeEnd has the event
	// before_end_lease. Default: such a lease has none.
	Notice time.Duration
	// Patience is how long [Service.Process] waits for one batch of events before
	// it goes on with the next. Default: a minute.
	Patience time.Duration
	// Now is the time by which events are due. Default: [time.Now].
	Now func() time.Time

	// Owner, Queue and Observer are those of the managers, see
	// [lifecycle.Config].
	Owner    *lifecycle.Owner
	Queue    lifecycle.Queue
	Observer lifecycle.Observer
}

// Service is the manager of leases: it has the methods that create, update and
// delete them, starts and ends them in time, and keeps the statuses of lease,
// reservations and events in step, in one commit each. [New] makes one; the zero
// Service is not usable. It is safe for concurrent use and needs no closing.
// Several services, in several processes, may work on one store.
//
// The managers give access to the records, to their history, and to explanations of
// objects that are stuck. A lease that is moved by them has to obey the table of
// relationships too, except by [lifecycle.Manager.Override]. The ids of the
// reservations and events of a lease begin with its own id and a slash. The store
// also has a record of the machine "calendar" for every event that is UNDONE, by
// which Process finds the events that are due.
type Service struct {
	Leases       *lifecycle.Manager[LeaseState, Call, LeaseSpec]
	Reservations *lifecycle.Manager[ReservationState, Call, ReservationSpec]
	Events       *lifecycle.Manager[EventState, Call, EventSpec]

	calendar *lifecycle.Manager[noteState, noteEvent, Due]
	looked   atomic.Pointer[time.Time] // when all events were read the last time
	config   Config
}

// New returns a service of the leases in a store. It panics without a store.
func New(store lifecycle.Store, config *Config) *Service {
	s := newService(config)
	s.Leases = lifecycle.Must(Lease, store, s.leases())
	s.Reservations = lifecycle.Must(ReservationRecord, store, &lifecycle.Config[Call]{Observer: s.config.Observer})
	s.Events = lifecycle.Must(EventRecord, store, s.events())
	s.calendar = lifecycle.Must(calendar, store, nil)
	return s
}

// newService returns a service without managers.
func newService(config *Config) *Service {
	s := &Service{}
	if config != nil {
		s.config = *config
	}
	if s.config.Now == nil {
		s.config.Now = time.Now
	}
	if s.config.Patience <= 0 {
		s.config.Patience = time.Minute
	}
	return s
}

func (s *Service) leases() *lifecycle.Config[Call] {
	return &lifecycle.Config[Call]{
		WorkerActor: Manager, Done: []Call{Done}, Failed: []Call{Fail},
		BeforeCommit: s.beforeCommit,
		Owner:        s.config.Owner, Queue: s.config.Queue, Observer: s.config.Observer,
	}
}

func (s *Service) events() *lifecycle.Config[Call] {
	return &lifecycle.Config[Call]{
		WorkerActor: Manager, Done: []Call{Done}, Failed: []Call{Fail},
		BeforeCommit: s.moveNote, Observe: s.observe,
		Owner: s.config.Owner, Queue: s.config.Queue, Observer: s.config.Observer,
	}
}

// observe keeps the sweep from moving an event whose lease is in an operation: the
// commit that ends the operation of the lease moves the event too.
func (s *Service) observe(ctx context.Context, stuck lifecycle.StoredRecord) (Call, fsm.Actor, error) {
	event, err := s.Events.Get(ctx, stuck.ID)
	if err != nil || event.Payload.Type == BeforeEndLease {
		return "", "", err
	}
	lease, err := s.Leases.Get(ctx, event.Payload.Lease)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return "", "", nil
	case err != nil:
		return "", "", err
	case lease.State.IsTransitional():
		return "", "", fmt.Errorf("%w: the lease is %s", lifecycle.ErrBusy, lease.State)
	}
	return "", "", nil
}

// Sweep acts on leases and events that are stuck, see [lifecycle.Manager.Sweep]. It
// sweeps the leases first, because their commits move their events too. Call it at
// the start of a process that has [Config].Owner: it finds what an earlier process of
// the same name has left, without waiting for deadlines.
func (s *Service) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	results, err := s.Leases.Sweep(ctx)
	if err != nil {
		return results, err
	}
	more, err := s.Events.Sweep(ctx)
	return append(results, more...), err
}
