package tumblebug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/timeouts"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// System is CB-Tumblebug over a store and the clouds: it creates MCIs, performs the
// actions of users on MCIs and VMs, and reports their status. [New] makes one; the
// zero System is not usable. It is safe for concurrent use.
//
// Requests return as soon as they are admitted. Their operations continue in
// goroutines of the system's queues. The program calls [System.Sweep] often enough, for
// example by [lifecycle.Run].
type System struct {
	provider   Provider
	mcis       *lifecycle.Manager[State, Event, MCISpec]
	vms        *lifecycle.Manager[State, Event, VMSpec]
	queue      *queue.Queuer[lifecycle.Key] // of requests to providers
	operations *queue.Queuer[string]        // of MCIs, by id
	classes    map[string]queue.Limit       // of the queue: the limits of providers and regions
	owner      *lifecycle.Owner
	poll       time.Duration
	closed     atomic.Bool

	mu     sync.Mutex
	doubts map[string]*evidence // against the state of a VM at rest, by its id
}

// Config refines a [System]. The zero Config and nil are the defaults.
type Config struct {
	// Base is the parent of the contexts of work. It must not end before
	// [System.Close] has returned: work that ends with it has failed. Default:
	// context.Background().
	Base context.Context
	// Owner is this process, as [lifecycle.Join] made it. Every process needs one if
	// several processes share the store. Default: none; sweeps then find the operations
	// of a process that died by their deadlines only, and a sweep of another process
	// moves a VM to Undefined that waits for its turn for longer than its deadline.
	Owner *lifecycle.Owner
	// Shared: the limits hold for all processes on the store together, see
	// [lifecycle.Turns]. It needs Owner, and the same Limits in all processes. Default: they
	// hold for each process.
	Shared bool
	// Limits are those of the providers by name, in any case; others have none.
	// Default: [DefaultLimits].
	Limits map[string]Limit
	// Poll is the interval of the requests for the status of a VM during an action.
	// Default, at 0: 5 seconds.
	Poll time.Duration
	// MCITimeouts and VMTimeouts are the times that actions may take, by the
	// transitional state. All processes on a store need the same. Default, for a state
	// that is not among them: that of [MCI] and [VM].
	MCITimeouts, VMTimeouts map[State]time.Duration
	// Observer receives the changes of MCIs and VMs. Default: none.
	Observer lifecycle.Observer
}

const (
	// confirmations is the number of equal answers of a provider, one in each Poll,
	// that end an action if one answer is not sufficient.
	confirmations = 3
	// maxLooks bounds the VMs that one request for a status checks at once.
	maxLooks = 16
)

// New makes a system. The error is [lifecycle.ErrInvalid] if there is no store or no
// provider, for a negative Poll, for limits that are negative or belong to a provider
// without a valid name, for Shared without Owner, and for timeouts that are not positive or
// belong to a state without one.
func New(store lifecycle.Store, provider Provider, config *Config) (*System, error) {
	if config == nil {
		config = &Config{}
	}
	if store == nil || provider == nil || config.Poll < 0 {
		return nil, fmt.Errorf("tumblebug: new system: %w: store %T, provider %T, Poll %v",
			lifecycle.ErrInvalid, store, provider, config.Poll)
	}
	s := &System{
		provider: provider, owner: config.Owner, poll: cmp.Or(config.Poll, 5*time.Second), doubts: map[string]*evidence{},
	}
	invalid := func(err error) error { return fmt.Errorf("tumblebug: new system: %w: %w", lifecycle.ErrInvalid, err) }
	var err error
	if s.classes, err = classesOf(config.Limits); err != nil {
		return nil, err
	}
	mcis, err := timeouts.Set(mciTable(), config.MCITimeouts)
	if err != nil {
		return nil, invalid(err)
	}
	vms, err := timeouts.Set(vmTable(), config.VMTimeouts)
	if err != nil {
		return nil, invalid(err)
	}
	if s.queue, err = queue.New(&queue.Config[lifecycle.Key]{Base: config.Base, MaxRunning: maxRunning, Classes: s.classes}); err != nil {
		return nil, invalid(err)
	}
	var turns *lifecycle.Turns
	if config.Shared {
		if turns, err = lifecycle.NewTurns(config.Owner, s.classes); err != nil {
			return nil, invalid(err)
		}
	}
	s.operations = queue.Must(&queue.Config[string]{Base: config.Base, MaxRunning: maxRunning})
	if s.vms, err = lifecycle.New(fsm.Must[VMSpec](vms), store, &lifecycle.Config[Event]{
		WorkerActor: CSP, Done: []Event{Succeed}, Failed: []Event{Fail},
		Handlers: map[string]lifecycle.Handler{handler: s.perform},
		Owner:    config.Owner, Queue: lifecycle.Shared(s.queue, turns), Observe: s.observeVM, Observer: config.Observer,
		// What the record of an MCI has room for fits into those of its VMs, with other names.
		Limits: lifecycle.Limits{Payload: 2 << 20},
	}); err != nil {
		return nil, err
	}
	s.mcis, err = lifecycle.New(fsm.Must[MCISpec](mcis), store, &lifecycle.Config[Event]{Observe: s.observeMCI, Observer: config.Observer})
	return s, err
}

// Must is [New] for arguments that are constant. It panics with the error of New.
func Must(store lifecycle.Store, provider Provider, config *Config) *System {
	s, err := New(store, provider, config)
	if err != nil {
		panic(err)
	}
	return s
}

// MCIs returns the manager of the MCIs, whose ids are "namespace/mci".
func (s *System) MCIs() *lifecycle.Manager[State, Event, MCISpec] { return s.mcis }

// VMs returns the manager of the VMs, whose ids are "namespace/mci/vm".
func (s *System) VMs() *lifecycle.Manager[State, Event, VMSpec] { return s.vms }

// Queue returns the queue in which VMs wait for their turn, for inspection.
func (s *System) Queue() *queue.Queuer[lifecycle.Key] { return s.queue }

// Close refuses further requests, with [queue.ErrTerminated], and waits for the operations that
// have started. The error is [queue.ErrNotDrained] if ctx ends first: the operations continue
// then. If the process ends nevertheless, [System.Recover] of the next one continues them.
func (s *System) Close(ctx context.Context) error {
	s.closed.Store(true)
	return errors.Join(s.operations.Terminate(ctx), s.queue.Terminate(ctx), lifecycle.Drain(ctx, s.vms))
}

// checkRequest refuses malformed names, see checkNames, and requests after Close.
func (s *System) checkRequest(names ...string) error {
	if err := checkNames(names...); err != nil {
		return err
	}
	if s.closed.Load() {
		return fmt.Errorf("%w: the system is closed", queue.ErrTerminated)
	}
	return nil
}

func mciKey(nsID, mciID string) string { return nsID + "/" + mciID }

type (
	mciRecord = lifecycle.Record[State, MCISpec]
	vmRecord  = lifecycle.Record[State, VMSpec]

	mciChange = lifecycle.Change[MCISpec]
	vmChange  = lifecycle.Change[VMSpec]
)

// members returns the VMs of an MCI in the order of their ids.
func (s *System) members(ctx context.Context, mci string) ([]vmRecord, error) {
	var list []vmRecord
	for vm, err := range s.vms.All(ctx, lifecycle.Select[State]{Prefix: mci + "/"}) {
		if err != nil {
			return nil, err
		}
		list = append(list, vm)
	}
	return list, nil
}
