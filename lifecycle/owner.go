package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Owner is this process as one that does the work of operations: a record in
// the same store, with a name, an epoch and a heart-beat. Who does not beat for
// its time to live is dead: others take its operations over, and nothing that it
// still writes about them is accepted.
//
// [Join] makes one, for any number of managers on that store; the zero Owner is
// not usable. It is safe for concurrent use and must not be copied. Somebody
// has to call [Owner.Run], or [Owner.Beat] often enough.
type Owner struct {
	name    string
	epoch   uint64
	ttl     time.Duration
	records *Manager[ownerState, ownerEvent, struct{}]

	lost func() // ends alive
	// alive ends with the ownership, with [ErrStale] as its cause.
	alive context.Context

	mu  sync.Mutex
	rec StoredRecord // as it was last written by this process
}

// DefaultTTL is how long an owner lives without a heart-beat.
const DefaultTTL = 30 * time.Second

type (
	ownerState string
	ownerEvent string
)

const (
	ownerAbsent ownerState = "absent"
	ownerAlive  ownerState = "alive"
	ownerDead   ownerState = "dead"

	ownerJoin   ownerEvent = "join"
	ownerLeave  ownerEvent = "leave"
	ownerExpire ownerEvent = "expire"
	ownerForget ownerEvent = "forget"

	process fsm.Actor = "process"

	ownersTableName = "interlock.owner"
)

// ownersMachine is how owners live. Alive is in transition: the process owes the
// next heart-beat. Every join is a new operation, and its number the epoch.
func ownersMachine(ttl time.Duration) *fsm.Machine[ownerState, ownerEvent, struct{}] {
	return fsm.Must[struct{}](fsm.Spec[ownerState, ownerEvent]{
		Name: ownersTableName, Initial: ownerAbsent, Actors: []fsm.Actor{process},
		States: []fsm.State[ownerState]{
			{Name: ownerAbsent, Kind: fsm.Absent},
			{Name: ownerAlive, Kind: fsm.Transitional},
			{Name: ownerDead},
		},
		Rows: fsm.Rows(
			fsm.Move(ownerAbsent, ownerJoin, ownerAlive).By(process),
			fsm.Move(ownerAlive, ownerJoin, ownerAlive).By(process).Superseding(),
			fsm.Move(ownerDead, ownerJoin, ownerAlive).By(process),
			fsm.Move(ownerAlive, ownerLeave, ownerAbsent).By(process),
			fsm.Move(ownerAlive, ownerExpire, ownerDead).After(ttl),
			fsm.Move(ownerDead, ownerForget, ownerAbsent).After(24*time.Hour),
		),
	})
}

// Join makes this process an owner under a name that is its own, such as the
// host's, and begins a new epoch: an earlier process of that name is dead from
// now on, also if it is only slow. A ttl of 0 is [DefaultTTL]; processes may
// differ.
//
// Errors: [ErrInvalid] for the name or a negative ttl, [ErrConflict] if two
// processes join under one name at once, and those of the store.
func Join(ctx context.Context, store Store, name string, ttl time.Duration) (*Owner, error) {
	if ttl < 0 {
		return nil, fmt.Errorf("%w: a time to live of %v", ErrInvalid, ttl)
	}
	if ttl == 0 {
		ttl = DefaultTTL
	}
	o := &Owner{name: name, ttl: ttl, records: New(ownersMachine(ttl), store, nil)}
	for attempt := 1; ; attempt++ {
		c := o.records.call("join", name, process)
		c.event, c.creates = ownerJoin, true
		c.fires(nil)
		err := c.run(ctx)
		if err == nil {
			o.rec = *c.after()
			break
		}
		// That an earlier life of the name has beaten, left or was declared dead
		// meanwhile takes nothing from this one; another join does.
		lost, conflict := errors.AsType[*ConflictError](err)
		if !conflict || lost.Current.Operation != c.before.Operation || attempt == maxAttempts {
			return nil, err
		}
	}
	o.epoch = uint64(o.rec.Operation)
	alive, end := context.WithCancelCause(context.Background())
	o.alive, o.lost = alive, func() { end(fmt.Errorf("%w: %s is no owner any more", ErrStale, name)) }
	return o, nil
}

// Name returns the name.
func (o *Owner) Name() string { return o.name }

// Epoch returns the number of this life: it grows with every Join of the name.
func (o *Owner) Epoch() uint64 { return o.epoch }

// Lost is closed when the owner has left, or was declared dead and noticed it.
func (o *Owner) Lost() <-chan struct{} { return o.alive.Done() }

// Run beats three times in each time to live, until ctx ends, which is no error,
// or the ownership is lost: [ErrStale]. An error of the store is tried again at
// the next beat.
func (o *Owner) Run(ctx context.Context) error {
	ticker := time.NewTicker(max(o.ttl/3, 1))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.alive.Done():
			return context.Cause(o.alive)
		case <-ticker.C:
			if err := o.Beat(ctx); errors.Is(err, ErrStale) {
				return err
			}
		}
	}
}

// Beat says that the process lives. The error is [ErrStale] if it was declared
// dead or joined anew, and it is then lost for good; or the store's, after which
// it may be called again.
func (o *Owner) Beat(ctx context.Context) error {
	if o.alive.Err() != nil {
		return context.Cause(o.alive)
	}
	o.mu.Lock()
	before := o.rec
	o.mu.Unlock()
	var last error
	for range 3 {
		after, err := o.records.touch(ctx, &before, &before, o.ttl)
		if err == nil {
			o.mu.Lock()
			// Two beats at once: the later sequence of revisions is not known,
			// so the next one may meet a conflict and read.
			o.rec = after
			o.mu.Unlock()
			return nil
		}
		// A conflict may be with a beat of our own whose answer was lost.
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknownOutcome) {
			return err
		}
		last = err
		if before, err = o.records.store.Get(ctx, before.Key); err != nil {
			return err
		}
		if before.State != string(ownerAlive) || uint64(before.Operation) != o.epoch {
			o.lost()
			return context.Cause(o.alive)
		}
	}
	return last
}

// Leave ends the ownership in good order: call it when all work has ended. What
// is left is taken over at once. The error is [ErrStale] if it was lost before,
// or the store's.
func (o *Owner) Leave(ctx context.Context) error {
	if o.alive.Err() != nil {
		return context.Cause(o.alive)
	}
	v, err := o.records.Report(ctx, o.name, OpID(o.epoch), ownerLeave, process, "")
	if err != nil {
		return err
	}
	o.lost()
	if v != Applied {
		return context.Cause(o.alive)
	}
	return nil
}

// touch changes quietly who does the work of a record, or its deadline.
func (m *Manager[S, E, T]) touch(ctx context.Context, before, to *StoredRecord, within time.Duration) (StoredRecord, error) {
	commit := Commit{Token: NewToken(), Changes: []StoredChange{{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: *to, Within: within, Quiet: true,
	}}}
	err := m.store.Commit(ctx, &commit)
	return commit.Changes[0].To, err
}
