package ovc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Queuer has a queue for every object that an action was requested of: the
// actions of one object are done one at a time, in the order in which they were
// accepted, those of different objects side by side. A [Service] makes it; the
// zero Queuer is not usable. It is safe for concurrent use.
//
// A queue exists from the first accepted action, or from [Queuer.Queue], until
// it is stopped, or until its object is destroyed or decommissioned by this
// process. Queues are this process' own and do not survive it.
type Queuer struct {
	lanes *queue.Queuer[lifecycle.Key]

	// mu guards what follows. The queues of package queue come and go with their
	// actions; here is which of them exist for the user.
	mu     sync.Mutex
	exist  map[lifecycle.Key]bool
	closed bool
}

// Ref names an object.
type Ref struct {
	Kind Kind
	ID   string
}

func newQueuer(maxRunning, maxPerObject int) *Queuer {
	q := &Queuer{exist: make(map[lifecycle.Key]bool)}
	q.lanes = queue.Must(&queue.Config[lifecycle.Key]{
		MaxRunning: maxRunning, MaxPerKey: maxPerObject,
		Observer: queue.Observer[lifecycle.Key]{
			// Before the action can begin, and so before it can end its object.
			Accepted: func(_ context.Context, a queue.Accepted[lifecycle.Key]) { q.begun(a.Keys...) },
		},
	})
	return q
}

// Queue creates the queue of an object if it does not exist, and reports whether
// it did. Errors: [lifecycle.ErrInvalid] for a value that names no kind,
// [queue.ErrTerminated].
func (q *Queuer) Queue(kind Kind, id string) (created bool, err error) {
	if kind.Machine() == nil {
		return false, invalid("no kind of object is called %q", string(kind))
	}
	key := kind.key(id)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false, queue.ErrTerminated
	case q.exist[key]:
		return false, nil
	}
	q.exist[key] = true
	return true, nil
}

// Stop ends one queue in good order: it takes no more actions, those that were
// accepted are done, and then it is deleted. A later request creates it anew. A
// queue that does not exist is stopped at once.
//
// Errors: [lifecycle.ErrInvalid] for a value that names no kind; if ctx ends
// first, [queue.ErrNotDrained]: it goes on stopping, and Stop may be called
// again; [queue.ErrWouldDeadlock] inside an action of the queue.
func (q *Queuer) Stop(ctx context.Context, kind Kind, id string) error {
	if kind.Machine() == nil {
		return invalid("no kind of object is called %q", string(kind))
	}
	key := kind.key(id)
	err := q.lanes.Stop(ctx, key)
	if err == nil || errors.Is(err, queue.ErrNotDrained) {
		q.ended(key) // as soon as nothing is in it
	}
	return err
}

// Terminate ends all queues in good order, as Stop ends one, and no action is
// accepted ever after. Errors: those of Stop.
func (q *Queuer) Terminate(ctx context.Context) error {
	err := q.lanes.Terminate(ctx)
	if errors.Is(err, queue.ErrWouldDeadlock) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	clear(q.exist) // what is left is there until nothing is in it
	return err
}

// Abandon removes the first action from the queue of an object, if its method ignores
// its context and does not end. Its objects go back to where they were, unless they
// were put back before, and the next action has its turn. Nothing can end the method
// itself, so two methods may work on one object at once from here on: the caller makes
// sure that the abandoned one does nothing any more. Abandon reports whether there was
// an action to abandon.
func (q *Queuer) Abandon(kind Kind, id string) bool {
	return kind.Machine() != nil && q.lanes.Abandon(kind.key(id))
}

// Exists reports whether an object has a queue.
func (q *Queuer) Exists(kind Kind, id string) bool {
	if kind.Machine() == nil {
		return false
	}
	key := kind.key(id)
	q.mu.Lock()
	exists := q.exist[key]
	q.mu.Unlock()
	return exists || len(q.lanes.Inspect(key)) > 0
}

// All lists the objects that have a queue, by kind and id.
func (q *Queuer) All() []Ref {
	seen := make(map[lifecycle.Key]bool)
	q.mu.Lock()
	for key := range q.exist {
		seen[key] = true
	}
	q.mu.Unlock()
	for key := range q.lanes.All() {
		seen[key] = true
	}
	var refs []Ref
	for key := range seen {
		kind, _ := kindOf(key.Machine)
		refs = append(refs, Ref{kind, key.ID})
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return refs
}

// Actions lists what is in the queue of an object, in its order: what runs, and
// then what waits. An action on a disk that is attached is in two queues.
func (q *Queuer) Actions(kind Kind, id string) []queue.Info[lifecycle.Key] {
	if kind.Machine() == nil {
		return nil
	}
	return q.lanes.Inspect(kind.key(id))
}

// Stats counts what runs and waits in all queues.
func (q *Queuer) Stats() queue.Stats { return q.lanes.Stats() }

func (q *Queuer) begun(keys ...lifecycle.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for _, key := range keys {
		q.exist[key] = true
	}
}

func (q *Queuer) ended(key lifecycle.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.exist, key)
}
