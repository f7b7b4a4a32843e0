package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// System is CB-Tumblebug over a store and the clouds: it creates MCIs, performs the
// actions of users on MCIs and VMs, and reports their status. [New] makes one; the
// zero System is not usable. It is safe for concurrent use.
//
// Requests return as soon as they are admitted. Their operations continue in
// goroutines of the system's queues. The program calls [System.Run], or
// [System.Sweep] often enough.
type System struct {
	provider Provider
	mcis     *lifecycle.Manager[State, Event, MCISpec]
	vms      *lifecycle.Manager[State, Event, VMSpec]
	queue    *queue.Queuer[lifecycle.Key] // of requests to providers
	orders   *queue.Queuer[string]        // of operations of MCIs, by key
	limited  map[string]bool              // the providers with limits
	owner    *lifecycle.Owner
	poll     time.Duration
	confirm  int
	looks    int

	fetched, saved atomic.Uint64

	mu    sync.Mutex
	known map[string]*evidence // of the action of a VM, by its key
}

// Config refines a [System]. The zero Config and nil are the defaults.
type Config struct {
	// Base is the parent of the contexts of work. It must not end before
	// [System.Close] has returned: work that ends with it has failed. Default:
	// context.Background().
	Base context.Context
	// Owner is this process, as [lifecycle.Join] made it. Default: none; sweeps
	// then find the operations of a process that died by their deadlines only.
	Owner *lifecycle.Owner
	// Limits are those of the providers by name, in any case; others have none.
	// Default: [DefaultLimits].
	Limits map[string]Limit
	// Poll is the interval at which a provider is asked about a VM during an
	// action. Default, at 0: 5 seconds.
	Poll time.Duration
	// Confirm is how many equal answers of a provider, one in each Poll, end an
	// action if one answer is not sufficient. At least 2. Default, at 0: 3.
	Confirm int
	// Looks is how many VMs one request for a status checks at once. Default,
	// at 0: 16.
	Looks int
	// Observer receives the changes of MCIs and VMs. Default: none.
	Observer lifecycle.Observer
}

// New makes a system. The error is [lifecycle.ErrInvalid] for a negative number,
// a Confirm of 1, or a provider in the limits that has no name. It panics without
// a store or a provider.
func New(store lifecycle.Store, provider Provider, config *Config) (*System, error) {
	if store == nil || provider == nil {
		panic("tumblebug: New needs a store and a provider")
	}
	if config == nil {
		config = &Config{}
	}
	limits := config.Limits
	if limits == nil {
		limits = DefaultLimits()
	}
	turns, err := limited(limits)
	if err == nil && (config.Poll < 0 || config.Confirm < 0 || config.Confirm == 1 || config.Looks < 0) {
		err = fmt.Errorf("%w: Poll %v, Confirm %d, Looks %d", lifecycle.ErrInvalid, config.Poll, config.Confirm, config.Looks)
	}
	if err != nil {
		return nil, err
	}
	turns.Base = config.Base
	s := &System{
		provider: provider, owner: config.Owner, limited: map[string]bool{}, known: map[string]*evidence{},
		poll: orDefault(config.Poll, 5*time.Second), confirm: orDefault(config.Confirm, 3), looks: orDefault(config.Looks, 16),
		orders: queue.Must(&queue.Config[string]{Base: config.Base, MaxRunning: maxRunning}),
	}
	for name := range limits {
		s.limited[strings.ToLower(name)] = true
	}
	if s.queue, err = queue.New(turns); err != nil {
		return nil, err
	}
	s.vms = lifecycle.Must(VM, store, &lifecycle.Config[Event]{
		WorkerActor: CSP, Done: []Event{Succeed}, Failed: []Event{Fail},
		Handlers: map[string]lifecycle.Handler{handler: s.control},
		Owner:    config.Owner, Queue: s.queue, Observe: s.observeVM, Observer: config.Observer,
	})
	s.mcis = lifecycle.Must(MCI, store, &lifecycle.Config[Event]{Observe: s.observeMCI, Observer: config.Observer})
	return s, nil
}

func orDefault[T time.Duration | int](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// MCIs returns the manager of the MCIs, whose ids are "namespace/mci".
func (s *System) MCIs() *lifecycle.Manager[State, Event, MCISpec] { return s.mcis }

// VMs returns the manager of the VMs, whose ids are "namespace/mci/vm".
func (s *System) VMs() *lifecycle.Manager[State, Event, VMSpec] { return s.vms }

// Queue returns the queue in which VMs wait for their turn, for inspection.
func (s *System) Queue() *queue.Queuer[lifecycle.Key] { return s.queue }

// Stats are the numbers of the system since it was made.
type Stats struct {
	Fetched uint64 // how often a provider was asked about a VM
	Saved   uint64 // how often it was not, because the status was cached, see [Cached]
}

// Stats returns the numbers.
func (s *System) Stats() Stats { return Stats{s.fetched.Load(), s.saved.Load()} }

// Close refuses further requests and waits for the operations that have started. The
// error is [queue.ErrNotDrained] if ctx ends first: the operations continue then. If
// the process ends nevertheless, [System.Recover] of the next one continues them.
func (s *System) Close(ctx context.Context) error {
	return errors.Join(s.orders.Terminate(ctx), s.queue.Terminate(ctx))
}

func mciKey(nsID, mciID string) string { return nsID + "/" + mciID }

func vmKey(nsID, mciID, vmID string) string { return mciKey(nsID, mciID) + "/" + vmID }

// last is the name of an object in its id.
func last(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// place splits the id of an MCI.
func place(key string) (nsID, mciID string) {
	nsID, mciID, _ = strings.Cut(key, "/")
	return nsID, mciID
}

type (
	mciRecord = lifecycle.Record[State, MCISpec]
	vmRecord  = lifecycle.Record[State, VMSpec]
)

// members returns the VMs of an MCI in order of their ids.
func (s *System) members(ctx context.Context, mci string) ([]vmRecord, error) {
	var list []vmRecord
	prefix := mci + "/"
	for vm, err := range s.vms.All(ctx, lifecycle.Select[State]{After: prefix}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(vm.ID, prefix) {
			break
		}
		list = append(list, vm)
	}
	return list, nil
}

func states(vms []vmRecord) []State {
	list := make([]State, len(vms))
	for i := range vms {
		list[i] = vms[i].State
	}
	return list
}

// atRest reports whether an MCI or a VM rests, or is gone.
func atRest(s State) bool { return s == "" || MCI.Kind(s).Resting() }

// resting are the states of an MCI at rest, for conditions of commits.
var resting = func() (list []State) {
	for s := range MCI.States() {
		if atRest(s) && s != Removed {
			list = append(list, s)
		}
	}
	return list
}()
