package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Owner is this process in its role of executing operations. The store has a record of it,
// with a name, an epoch and a heartbeat. A sweeper that sees no heartbeat of an owner for
// one TTL declares the owner dead. Other processes then take over its operations. The store
// refuses what the dead owner writes about them, and the operations that it starts. A commit
// that is concurrent with the expiry may be accepted before it.
//
// The sweeper measures that time on its own monotonic clock, and only while it can read the
// store. So neither the clock nor an outage of the store ends an ownership. See
// [Manager.Sweep] for how long a sweeper needs.
//
// [Join] makes an Owner, for any number of managers of that store; the zero Owner
// is not usable. It is safe for concurrent use and must not be copied. The program
// calls [Owner.Run], or [Owner.Heartbeat] often enough.
type Owner struct {
	ref  OwnerRef
	ttl  time.Duration
	core *core

	alive context.Context // ends with the ownership; its cause matches ErrStale
	lose  func()          // ends alive

	mu         sync.Mutex
	unanswered time.Time // the first heartbeat that the store has not taken since the last that it has; zero: none
	sent       time.Time // the latest heartbeat
}

// DefaultTTL is how long a sweeper sees no heartbeat of an owner before it declares the
// owner dead.
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

	ownerProcess fsm.Actor = "process"

	ownersTable = "interlock.owner"
)

// newOwners returns the core of the owners in a store. The alive state is transitional: the
// process owes the next heartbeat. Every join starts a new operation, and its
// number is the epoch. The deadline of an alive owner is for readers of the record; the
// sweeper measures the TTL itself, see [heartbeats].
func newOwners(store Store, ttl time.Duration) *core {
	owners := fsm.Must[ownerTerms](fsm.Spec[ownerState, ownerEvent]{
		Name: ownersTable, Initial: ownerAbsent, Actors: []fsm.Actor{ownerProcess},
		States: []fsm.State[ownerState]{
			{Name: ownerAbsent, Kind: fsm.Absent},
			{Name: ownerAlive, Kind: fsm.Transitional},
			{Name: ownerDead},
		},
		Rows: fsm.Rows(
			fsm.Move(ownerAbsent, ownerJoin, ownerAlive).By(ownerProcess),
			fsm.Move(ownerAlive, ownerJoin, ownerAlive).By(ownerProcess).Superseding(),
			fsm.Move(ownerDead, ownerJoin, ownerAlive).By(ownerProcess),
			fsm.Move(ownerAlive, ownerLeave, ownerAbsent).By(ownerProcess),
			fsm.Move(ownerAlive, ownerExpire, ownerDead).After(ttl),
			fsm.Move(ownerDead, ownerForget, ownerAbsent).After(24*time.Hour),
		),
	})
	return Must(owners, store, nil).core
}

// ownerTerms is the payload of an owner's record.
type ownerTerms struct {
	TTL time.Duration `json:"ttl"` // in nanoseconds
}

// Join makes this process an owner under a name of its own, such as the host's, and starts
// a new epoch. An earlier process of that name is dead from then on, even if it was only
// slow. If two processes join under one name, the later one is the owner. A ttl of 0 is
// [DefaultTTL]; processes may have different ones. Sweepers find the TTL in the owner's
// record, and declare the owner dead only if they sweep at least four times without seeing
// a heartbeat.
//
// Errors: [ErrInvalid] for the name or a negative ttl, and those of the store.
func Join(ctx context.Context, store Store, name string, ttl time.Duration) (*Owner, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: owner without a name", ErrInvalid)
	}
	if ttl < 0 {
		return nil, fmt.Errorf("%w: owner %q with a TTL of %v", ErrInvalid, shown(name), ttl)
	}
	if ttl == 0 {
		ttl = DefaultTTL
	}
	o := &Owner{ttl: ttl, core: newOwners(store, ttl)}
	r := o.request("join", name, decide.Fire, ownerJoin)
	r.ask.MayExist = true
	r.Edit = editBytes(func(terms *ownerTerms) error { terms.TTL = ttl; return nil }, o.core.limits.Payload)
	if _, err := apply(ctx, []*request{r}, nil); err != nil {
		return nil, r.fail(ctx, err)
	}
	o.ref = OwnerRef{Name: name, Epoch: uint64(r.change.To.Operation)}
	alive, end := context.WithCancelCause(context.Background())
	o.alive, o.lose = alive, func() { end(&OwnerError{o.ref}) }
	return o, nil
}

// request makes a request about the owner's record.
func (o *Owner) request(name, owner string, verb decide.Verb, e ownerEvent) *request {
	event, _ := o.core.table.EventIndex(string(e))
	return &request{
		core: o.core, verb: name, key: o.core.key(owner), event: string(e), anyState: true,
		ask: decide.Request{Verb: verb, Event: event, Actor: ownerProcess, Operation: o.ref.Epoch},
	}
}

// livesOutside reports whether the owner is alive in another store than the one that
// has refused its commit as that of a dead owner. An epoch that has ended never lives
// again: if both are stores of the same database, the owner's record shows the end.
func (o *Owner) livesOutside(ctx context.Context, refused Store) bool {
	if o.core.store == refused {
		return false
	}
	now, err := o.core.store.Get(ctx, o.ref.Key())
	return err == nil && o.ref.Alive(&now)
}

// Name returns the name.
func (o *Owner) Name() string { return o.ref.Name }

// Epoch returns the number of this life: it grows with every Join of the name.
func (o *Owner) Epoch() uint64 { return o.ref.Epoch }

// Lost returns a channel that is closed when the owner has left, or has learned
// that it is considered dead.
func (o *Owner) Lost() <-chan struct{} { return o.alive.Done() }

// Run sends three heartbeats in each TTL until ctx ends, and then returns nil. It
// returns [ErrStale] if the ownership is lost. After an error of the store it
// tries again at the next heartbeat.
func (o *Owner) Run(ctx context.Context) error {
	ticker := time.NewTicker(o.interval())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.alive.Done():
			return context.Cause(o.alive)
		case <-ticker.C:
			if err := o.Heartbeat(ctx); errors.Is(err, ErrStale) {
				return err
			}
		}
	}
}

// interval is the time between two heartbeats, and the longest that one may take.
func (o *Owner) interval() time.Duration { return max(o.ttl/3, 1) }

// Heartbeat reports that the process is alive. The error is [ErrStale] if it is
// considered dead or was replaced, and the ownership is then lost for good; or the
// store's, after which Heartbeat may be called again. A heartbeat that takes longer than a
// third of the TTL is such an error.
func (o *Owner) Heartbeat(ctx context.Context) error {
	if o.alive.Err() != nil {
		return context.Cause(o.alive)
	}
	// The bad schedule without a limit: one connection hangs, or a write waits for a lock, and no
	// other heartbeat is sent for the TTL, although the store answers on other connections.
	ctx, stop := context.WithTimeout(ctx, o.interval())
	defer stop()
	o.mu.Lock()
	o.sent = time.Now()
	o.unanswered = cmp.Or(o.unanswered, o.sent)
	o.mu.Unlock()
	r := o.request("heartbeat", o.ref.Name, decide.Heartbeat, "")
	_, err := apply(ctx, []*request{r}, nil)
	if err == nil || errors.Is(err, ErrStale) || errors.Is(err, ErrForeign) {
		o.mu.Lock()
		o.unanswered = time.Time{}
		o.mu.Unlock()
	}
	switch {
	case errors.Is(err, ErrStale):
		o.lose()
		return context.Cause(o.alive)
	case err != nil:
		return r.fail(ctx, err)
	}
	return nil
}

// stalled returns the longest TTL of an owner that may be alive without a heartbeat, because the store
// does not take those of this process either. It is 0 if this process sends none. The bad schedule
// without that: a heartbeat fails, [Owner.Run] ends, and the sweeps of this process never declare an
// owner dead.
func (o *Owner) stalled() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	waited := time.Since(o.unanswered)
	switch {
	case o.unanswered.IsZero() || time.Since(o.sent) > o.ttl:
		return 0
	case waited > o.ttl/3:
		return math.MaxInt64
	}
	return 3 * waited
}

// Leave ends the ownership. Call it when all work has ended. Other processes then take over
// the remaining operations at once. The error is [ErrStale] if the ownership was lost
// before, or the store's.
func (o *Owner) Leave(ctx context.Context) error {
	if o.alive.Err() != nil {
		return context.Cause(o.alive)
	}
	r := o.request("leave", o.ref.Name, decide.Report, ownerLeave)
	if _, err := apply(ctx, []*request{r}, nil); err != nil {
		return r.fail(ctx, err)
	}
	o.lose()
	if !r.written() {
		return context.Cause(o.alive)
	}
	return nil
}

// OwnerInfo is what a store has about an [Owner]. It is a value.
type OwnerInfo struct {
	OwnerRef
	Alive bool `json:"alive"` // neither left nor declared dead
	// Since is when the owner joined, or when it was declared dead. Heartbeat is when it
	// sent its last heartbeat, zero for a dead owner. Both are by the store's clock.
	Since     time.Time     `json:"since"`
	Heartbeat time.Time     `json:"heartbeat,omitzero"`
	TTL       time.Duration `json:"-"`
}

// Owners returns the owners in the store of a manager, in order of name. It has those that
// are alive, and those that were declared dead in the last day. An owner that has left is
// not listed. The error is the store's.
func Owners(ctx context.Context, m AnyManager) ([]OwnerInfo, error) {
	c := m.untyped()
	found, err := c.owners.listOwners(ctx, ownerAlive, ownerDead)
	if err != nil {
		return nil, c.failed("owners", "", err)
	}
	var list []OwnerInfo
	for i := range found {
		r := &found[i]
		o := OwnerInfo{
			OwnerRef: OwnerRef{Name: r.ID, Epoch: uint64(r.Operation)},
			TTL:      ownerTTL(r), Since: r.ChangedAt, Alive: r.State == string(ownerAlive),
		}
		if o.Alive && !r.Deadline.IsZero() {
			o.Heartbeat = r.Deadline.Add(-o.TTL)
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b OwnerInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// listOwners returns the records of the owners in some states.
func (c *core) listOwners(ctx context.Context, states ...ownerState) (list []StoredRecord, err error) {
	q := Query{Machine: ownersTable}
	for _, state := range states {
		q.States = append(q.States, string(state))
	}
	err = c.eachRecord(ctx, q, func(r *StoredRecord) error {
		list = append(list, *r)
		return nil
	})
	return list, err
}
