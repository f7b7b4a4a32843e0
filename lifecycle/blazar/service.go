package blazar

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/timeouts"
	"github.com/interlock-go/interlock/lifecycle"
)

// Config refines a [Service]. The zero Config and nil are the defaults.
type Config struct {
	// Plugins are the types of resources that can be reserved. Default: none.
	Plugins map[string]Plugin
	// Patience is how long [Service.Process] waits for one batch of events before
	// it continues with the next. Default: a minute.
	Patience time.Duration
	// Timeouts are the times that methods may take, by the status of the lease meanwhile,
	// such as STARTING. All processes on a store need the same. Default, for a status that
	// is not among them: [MethodTimeout].
	Timeouts map[LeaseState]time.Duration
	// Now is the clock by which events are due. Default: [time.Now].
	Now func() time.Time

	// Owner, Queue and Observer are those of the managers, see
	// [lifecycle.Config].
	Owner    *lifecycle.Owner
	Queue    lifecycle.Queue
	Observer lifecycle.Observer
}

// Service is the manager of leases: its methods create, update and delete them, it starts
// and ends them in time, and it changes the statuses of a lease, its reservations and its
// events that belong together in one commit. [New] makes one; the zero Service is not
// usable. It is safe for concurrent use and needs no closing. Several services, in several
// processes, may work on one store.
//
// The managers give access to the records, to their history, and to explanations of
// objects that are stuck. A lease that is moved by them has to obey the table of
// relationships too. [lifecycle.Manager.Override] skips that table: it moves the events of
// the lease to statuses that the table allows, and no reservation, because the operator
// has to find out which of them have resources. The ids of the reservations and events of a
// lease begin with its own id and a slash.
type Service struct {
	Leases       *lifecycle.Manager[LeaseState, Call, LeaseSpec]
	Reservations *lifecycle.Manager[ReservationState, Call, ReservationSpec]
	Events       *lifecycle.Manager[EventState, Call, EventSpec]

	config Config
}

// New returns a service of the leases in a store. The error is that of [lifecycle.New],
// and [lifecycle.ErrInvalid] for a timeout that is not positive or belongs to a status
// without one.
func New(store lifecycle.Store, config *Config) (*Service, error) {
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
	leases, events, err := machines(s.config.Timeouts)
	if err != nil {
		return nil, fmt.Errorf("blazar: new service: %w: %w", lifecycle.ErrInvalid, err)
	}
	if s.Leases, err = lifecycle.New(leases, store, &lifecycle.Config[Call]{
		WorkerActor: Manager, Done: []Call{Done}, Failed: []Call{Fail}, BeforeCommit: s.beforeCommit,
		Owner: s.config.Owner, Queue: s.config.Queue, Observer: s.config.Observer,
	}); err != nil {
		return nil, err
	}
	s.Reservations = lifecycle.Must(Reservation, store, &lifecycle.Config[Call]{Observer: s.config.Observer})
	s.Events = lifecycle.Must(events, store, &lifecycle.Config[Call]{Observer: s.config.Observer})
	return s, nil
}

// machines returns those of leases and events with these timeouts. An event is in progress
// for as long as the start or the end of its lease.
func machines(changed map[LeaseState]time.Duration) (
	leases *fsm.Machine[LeaseState, Call, LeaseSpec], events *fsm.Machine[EventState, Call, EventSpec], err error,
) {
	lease, err := timeouts.Set(leaseTable(), changed)
	if err != nil {
		return nil, nil, err
	}
	longest := max(cmp.Or(changed[LeaseStarting], MethodTimeout), cmp.Or(changed[LeaseTerminating], MethodTimeout))
	event, err := timeouts.Set(eventTable(), map[EventState]time.Duration{EventInProgress: longest})
	if err != nil {
		return nil, nil, err
	}
	return fsm.Must[LeaseSpec](lease), fsm.Must[EventSpec](event), nil
}

// Sweep acts on leases that are stuck, see [lifecycle.Manager.Sweep]; the commit moves
// their events too. Call it at the start of a process that has [Config].Owner: it finds
// the operations of an earlier process of the same name without waiting for deadlines.
func (s *Service) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	return s.Leases.Sweep(ctx)
}
