package lattice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// Infrastructure is what the backend does to the outside world. Each function
// returns when it is done. An error is a failure, and its text becomes the reason in
// the record. The context ends when the system is deleted, when the deadline has
// passed, or when the process ends.
//
// The next controller calls Build, Deploy and Teardown again for actions that a
// process has left. If the store refuses to write the next state of an action, and that is no
// outage, the same controller calls them again, in the next [Controller.Sweep] or when a caller
// waits for the action. So they must be idempotent for one operation. A panic is a failure, and
// so is runtime.Goexit. A nil function does nothing. Infrastructure is a value and may be
// copied.
type Infrastructure struct {
	// Initialize validates a new system and creates its resources. If it ignores the
	// end of its context, Remove is called while it still runs, and [Controller.Close] does
	// not wait for it.
	Initialize func(ctx context.Context, system SystemID) error
	// Remove ends a system gracefully and cleans up. No deploy and no teardown of
	// the system runs any more.
	Remove func(ctx context.Context, system SystemID) error
	// Build creates what a deploy needs. It must not change the system.
	Build func(ctx context.Context, d Running) error
	// Deploy changes the desired definition of the system at and below the path,
	// and nothing else, and waits until the services have followed: see
	// [lifecycle.Await] of [Controller.Systems].
	Deploy func(ctx context.Context, d Running) error
	// Teardown makes the desired definition empty, and waits until the services
	// are gone.
	Teardown func(ctx context.Context, t Running) error
}

// Running is a deploy or a teardown that holds its lock.
type Running struct {
	System     SystemID
	ID         string          // of the deploy or teardown
	Path       lock.Path       // what is locked: no other action makes changes at it or below it
	Attributes json.RawMessage // see [Action]
	Operation  lifecycle.OpID
	Token      lock.Token // of the lock, for a [lock.Fence]
}

// Config refines a [Controller]. The zero Config and nil are the defaults.
type Config struct {
	// Owner is this process. With it, a start finds the systems that an earlier
	// process was working on at once, and not by their deadlines. Default: none.
	Owner *lifecycle.Owner
	// Queue is where work waits for its turn. The caller ends its queue before
	// [Controller.Close]. Default: a queue of the controller with the queue's
	// defaults, which Close ends.
	Queue lifecycle.Queue
	// Observer receives what happens to systems, services, deploys and teardowns by this
	// controller. Default: none.
	Observer lifecycle.Observer
}

// Controller runs systems, and their deploys and teardowns, on a store. [Start]
// makes one; the zero Controller is not usable. It is safe for concurrent use.
//
// A store has one controller at a time, the one that was started last, because the
// locks of deploys and teardowns are in its memory. An earlier one that is slow and
// not dead moves none of them any more. What it stores as pending is performed by the last
// one, from its next sweep. A [lock.Fence] with [Running].Token refuses its late changes of
// the outside world.
type Controller struct {
	infra    Infrastructure
	queue    lifecycle.Queue
	own      *queue.Queuer[lifecycle.Key] // the queue, if it is the controller's own
	observer lifecycle.Observer
	locks    LifecycleActionManager

	systems   *lifecycle.Manager[State, Event, Content]
	services  *lifecycle.Manager[ServiceState, ServiceEvent, struct{}]
	deploys   *kind
	teardowns *kind
	term      term

	// The end of closed cancels the runs of deploys and teardowns. A later run ends before its
	// work.
	closed context.Context
	end    func() // ends closed

	mu   sync.Mutex
	runs map[lifecycle.Key]*run
}

// Start makes a controller on a store and ends the term of an earlier one. It sweeps
// the systems, takes the locks of all deploys and teardowns that are accepted or in
// progress, and runs all that have not ended. Then it moves every system to the state
// that follows from its services. A record that cannot be read ([lifecycle.ErrForeign])
// keeps no other system; a deploy that cannot be read locks its whole system. Sweep
// reports it.
//
// Errors: those of [lifecycle.New], [errors.ErrUnsupported] for a store that cannot commit
// three changes and conditions, or the store's. Nothing runs then.
func Start(ctx context.Context, store lifecycle.Store, infra Infrastructure, config *Config) (*Controller, error) {
	var cfg Config
	if config != nil {
		cfg = *config
	}
	c := &Controller{infra: infra, queue: cfg.Queue, observer: cfg.Observer, runs: map[lifecycle.Key]*run{}}
	c.closed, c.end = context.WithCancel(context.Background())
	if c.queue == nil {
		c.own = queue.Must[lifecycle.Key](nil)
		c.queue = c.own
	}
	var err error
	if c.systems, err = lifecycle.New(System, store, &lifecycle.Config[Event]{
		WorkerActor: Backend, Done: []Event{Initialized, TornDown}, Failed: []Event{InitFailed},
		Handlers: map[string]lifecycle.Handler{"initialize": c.initialize, "remove": c.remove},
		Owner:    cfg.Owner, Queue: c.queue,
		Observer: lifecycle.Tee(cfg.Observer, lifecycle.Observer{Changed: c.systemChanged}),
	}); err != nil {
		return nil, err
	}
	if n := store.Capabilities().Changes; n < minChanges {
		return nil, fmt.Errorf("lattice: %w: commits of %d changes, where %d are needed", errors.ErrUnsupported, n, minChanges)
	}
	if c.term, err = beginTerm(ctx, store); err != nil {
		return nil, err
	}
	c.services = lifecycle.Must(Service, store, &lifecycle.Config[ServiceEvent]{Observer: cfg.Observer})
	c.deploys = c.newKind(store, Deploy, deployKind, map[ActionState]step{
		ActionPending:    {nil, Accept},
		ActionAccepted:   {infra.Build, Begin},
		ActionInProgress: {infra.Deploy, Succeed},
	})
	c.teardowns = c.newKind(store, Teardown, teardownKind, map[ActionState]step{
		ActionPending:    {nil, Begin},
		ActionInProgress: {infra.Teardown, Succeed},
	})
	c.locks.FirstToken = lock.Token(c.term.number) << 32
	if _, err = c.systems.Sweep(ctx); err == nil {
		err = c.resume(ctx)
	}
	if err != nil && !errors.Is(err, lifecycle.ErrForeign) {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// minChanges is what a step of an action needs in a commit: its own change, a
// system that is live, and the term.
const minChanges = 3

// Systems returns the manager of systems: to get, list, explain, or override.
func (c *Controller) Systems() *lifecycle.Manager[State, Event, Content] { return c.systems }

// Services returns the manager of services. The id of a service is that of its
// system, followed by its path: "shop/web/cart".
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

// Actions returns the locks. A caller that takes locks here releases them.
func (c *Controller) Actions() *LifecycleActionManager { return &c.locks }

// Sweep looks once at everything that is stuck: systems, deploys and teardowns past
// their deadlines, actions that a failing store has kept from running, locks of
// actions that have ended, and systems whose state does not follow from their
// services. It returns the results of [lifecycle.Manager.Sweep].
//
// The error is [lifecycle.ErrStale] if another controller was started on the store:
// this one does nothing more, and the caller closes it. Otherwise it is the store's,
// and the next sweep tries again. [lifecycle.Run] sweeps at an interval.
func (c *Controller) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	if err := c.term.lasts(ctx); err != nil {
		if errors.Is(err, lifecycle.ErrStale) {
			c.end()
		}
		return nil, err
	}
	var results []lifecycle.SweepResult
	var errs []error
	for _, m := range []lifecycle.Sweeper{c.systems, c.deploys.m, c.teardowns.m} {
		more, err := m.Sweep(ctx)
		results, errs = append(results, more...), append(errs, err)
	}
	if slices.ContainsFunc(results, func(r lifecycle.SweepResult) bool { return c.term.over(r.Err) }) {
		c.end()
		return results, errStale
	}
	return results, errors.Join(append(errs, c.resume(ctx))...)
}

// Close starts no more work, ends the runs of deploys and teardowns, and waits for
// the work on systems. Deploys and teardowns stay as they are in the store, for the next
// controller. The error is [queue.ErrNotDrained] if ctx ends first; call Close again then.
// Close neither ends the queue of [Config] nor waits for its work.
func (c *Controller) Close(ctx context.Context) error {
	c.end()
	var err error
	if c.own != nil {
		err = c.own.Terminate(ctx)
	}
	return errors.Join(err, lifecycle.Drain(ctx, c.systems))
}
