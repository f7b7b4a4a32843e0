package lattice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// Infrastructure is what the backend does to the world. Each function returns
// when it is done; an error is a failure, and its text the reason that is kept.
// Its context ends when it is not to go on: the system is deleted, its time is
// over, or the process ends.
//
// Build, Deploy and Teardown are called again for what a process that died, or was
// closed, has left, and so have to bear being called twice for one operation. A
// panic is a failure. A nil function has nothing to do. It is a value and may be
// copied.
type Infrastructure struct {
	// Initialize validates a new system and makes its resources.
	Initialize func(ctx context.Context, system SystemID) error
	// Remove ends what there is of a system and cleans up, gracefully. No deploy
	// and no teardown of the system runs any more.
	Remove func(ctx context.Context, system SystemID) error
	// Build makes what a deploy needs. It may touch nothing of the system yet.
	Build func(ctx context.Context, d Running) error
	// Deploy changes the desired definition of the system at and below the path,
	// and nothing else, and waits until the services have followed: see
	// [Controller.Settled].
	Deploy func(ctx context.Context, d Running) error
	// Teardown makes the desired definition empty, and waits until the services
	// are gone.
	Teardown func(ctx context.Context, t Running) error
}

// Running is a deploy or a teardown that holds its lock.
type Running struct {
	System    SystemID
	ID        string    // of the deploy or teardown
	Path      lock.Path // what is locked: at it and below it nobody else changes anything
	Operation lifecycle.OpID
	Token     lock.Token // of the lock, for a [lock.Fence]
}

// Config refines a [Controller]. The zero Config and nil are the defaults.
type Config struct {
	// Owner is this process. With it, what an earlier process was doing to
	// systems is found at once and not by its deadline. Default: nobody.
	Owner *lifecycle.Owner
	// Queue is where work waits for its turn. Who gives one ends it, before
	// [Controller.Close]. Default: one of the controller's own, with the queue's
	// defaults.
	Queue lifecycle.Queue
	// Systems, Deploys and Teardowns are machines of [SystemTable], [DeployTable]
	// and [TeardownTable] with other deadlines. Default: [System], [Deploy] and
	// [Teardown].
	Systems            *fsm.Machine[State, Event, struct{}]
	Deploys, Teardowns *fsm.Machine[ActionState, ActionEvent, Action]
	// Changed is told every change of a system, service, deploy or teardown by
	// this controller, see [lifecycle.Observer]. Default: nobody.
	Changed func(lifecycle.HistoryRow)
}

// Controller runs systems, and their deploys and teardowns, on a store. [Start]
// makes one; the zero Controller is not usable. It is safe for concurrent use.
//
// A store has one controller at a time, because the locks of deploys and teardowns
// are in its memory: the one that was started last. An earlier one that was only
// slow, and not dead, stores nothing more about them; what it still does to the
// world, a [lock.Fence] of [Running].Token refuses.
type Controller struct {
	infra   Infrastructure
	queue   lifecycle.Queue
	own     *queue.Queuer[lifecycle.Key] // the queue, if it is the controller's own
	changed func(lifecycle.HistoryRow)
	locks   LifecycleActionManager

	systems   *lifecycle.Manager[State, Event, struct{}]
	services  *lifecycle.Manager[ServiceState, ServiceEvent, struct{}]
	deploys   *kind
	teardowns *kind
	owner     *lifecycle.Owner
	term      term

	mu      sync.Mutex
	rosters map[SystemID]*roster
	runs    map[lifecycle.Key]*run
	closing bool
	closed  chan struct{} // when closing is set
}

// Start makes a controller on a store and goes on where an earlier one has ended,
// or is ended by this: first the locks of all deploys and teardowns that are
// accepted or in progress are taken again, then all that have not ended are run, and
// the states of the systems are brought up to what their services come to.
//
// The store has to take commits of three changes and conditions: the error is
// errors.ErrUnsupported, or the store's. Nothing runs then.
func Start(ctx context.Context, store lifecycle.Store, infra Infrastructure, config *Config) (*Controller, error) {
	if n := store.Capabilities().Changes; n < minChanges {
		return nil, fmt.Errorf("lattice: %w: commits of %d changes, where %d are needed", errors.ErrUnsupported, n, minChanges)
	}
	var cfg Config
	if config != nil {
		cfg = *config
	}
	c := &Controller{
		infra: infra, queue: cfg.Queue, changed: cfg.Changed, owner: cfg.Owner,
		rosters: map[SystemID]*roster{}, runs: map[lifecycle.Key]*run{}, closed: make(chan struct{}),
	}
	if c.queue == nil {
		c.own = queue.Must[lifecycle.Key](nil)
		c.queue = c.own
	}
	var err error
	if c.term, err = beginTerm(ctx, store); err != nil {
		return nil, err
	}
	c.locks.FirstToken = lock.Token(c.term.number) << 32
	c.systems = lifecycle.New(orElse(cfg.Systems, System), store, &lifecycle.Config[Event]{
		Worker: Backend, Done: []Event{Initialized, TornDown}, Failed: []Event{InitFailed},
		Handlers: map[string]lifecycle.Handler{"initialize": c.initialize, "remove": c.remove},
		Owner:    cfg.Owner, Queue: c.queue,
		Observer: lifecycle.Observer{Changed: c.systemChanged},
	})
	c.services = lifecycle.New(Service, store, &lifecycle.Config[ServiceEvent]{
		Observer: lifecycle.Observer{Changed: c.serviceChanged},
	})
	c.deploys = c.deployKind(store, orElse(cfg.Deploys, Deploy))
	c.teardowns = c.teardownKind(store, orElse(cfg.Teardowns, Teardown))

	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// minChanges is what a step of an action needs in a commit: its own change, a
// system that is live, and the term.
const minChanges = 3

func (c *Controller) start(ctx context.Context) error {
	if c.owner != nil {
		if _, err := c.systems.Recover(ctx); err != nil {
			return err
		}
	}
	if err := c.relock(ctx); err != nil {
		return err
	}
	return c.resume(ctx)
}

func orElse[T any](p, def *T) *T {
	if p == nil {
		return def
	}
	return p
}

// Systems returns the manager of systems: to get, list, explain, or override.
func (c *Controller) Systems() *lifecycle.Manager[State, Event, struct{}] { return c.systems }

// Services returns the manager of services. The id of a service is that of its
// system and its path: "shop/web/cart".
func (c *Controller) Services() *lifecycle.Manager[ServiceState, ServiceEvent, struct{}] {
	return c.services
}

// Deploys returns the manager of deploys. The id of a record is that of the
// system, a slash, and that of the deploy.
func (c *Controller) Deploys() *lifecycle.Manager[ActionState, ActionEvent, Action] {
	return c.deploys.m
}

// Teardowns returns the manager of teardowns, with ids as those of deploys.
func (c *Controller) Teardowns() *lifecycle.Manager[ActionState, ActionEvent, Action] {
	return c.teardowns.m
}

// Actions returns the locks, to see who holds what. Who takes locks here beside
// the controller gives them back too.
func (c *Controller) Actions() *LifecycleActionManager { return &c.locks }

// Sweep looks once after what is stuck: systems, deploys and teardowns whose time
// is over, what a store that failed has kept from being run, locks of what has
// ended, and states of systems that do not follow from their services. The error
// is [lifecycle.ErrStale] if another controller was started on the store: this one
// is to be closed then, and does nothing more. Else it is the store's; what can be
// done is done.
func (c *Controller) Sweep(ctx context.Context) error {
	if err := c.term.lasts(ctx); err != nil {
		if errors.Is(err, lifecycle.ErrStale) {
			c.end()
		}
		return err
	}
	_, err := c.systems.Sweep(ctx)
	for _, k := range []*kind{c.deploys, c.teardowns} {
		_, e := k.m.Sweep(ctx)
		err = errors.Join(err, e)
	}
	return errors.Join(err, c.resume(ctx))
}

// Run sweeps about every so often until ctx ends, which is no error, or another
// controller is started on the store: [lifecycle.ErrStale]. A sweep that fails is
// tried again at the next time; tell, if it is not nil, gets its error.
// Default of every, at 0: 10 seconds. It starts no goroutine.
func (c *Controller) Run(ctx context.Context, every time.Duration, tell func(error)) error {
	if every == 0 {
		every = 10 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := c.Sweep(ctx)
		if errors.Is(err, lifecycle.ErrStale) {
			return err
		}
		if err != nil && tell != nil && ctx.Err() == nil {
			tell(err)
		}
	}
}

// Close ends what runs, in good order: no work is begun any more, deploys and
// teardowns stop and stay as they are in the store for the next controller, and
// what is being done to systems is waited for. If ctx ends first, the error is
// [queue.ErrNotDrained]; call Close again then. A queue that is not the
// controller's own is not ended, and what it still runs is not waited for.
func (c *Controller) Close(ctx context.Context) error {
	c.end()
	if c.own == nil {
		return nil
	}
	return c.own.Terminate(ctx)
}

// end tells the runs of deploys and teardowns to end, and lets none begin.
func (c *Controller) end() {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		close(c.closed)
	}
	runs := c.running(func(*run) bool { return true })
	c.mu.Unlock()
	for _, r := range runs {
		r.cancel(errClosing)
	}
}

var errClosing = errors.New("lattice: the controller is closing")

// check refuses ids that would be taken for others.
func (s SystemID) check() error {
	if s == "" || strings.Contains(string(s), "/") {
		return fmt.Errorf("lattice: %w: a system's id is a segment of a path, not %q", lifecycle.ErrInvalid, string(s))
	}
	return nil
}

// systemOf returns the system of a record's id.
func systemOf(id string) SystemID {
	system, _, _ := strings.Cut(id, "/")
	return SystemID(system)
}
