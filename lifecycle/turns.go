package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// Turns are turns of work that the processes on one store share. While one process has the
// turn of an object, no other process has one; and the limits of classes hold for all
// processes together. Actions take turns in a queue that [Shared] returns.
//
// The turns are records of the store, in the machine "interlock.turns". A turn costs two
// commits of a few records, and no history rows. A process that waits looks again at least
// once a second. The turns of a process end when it is declared dead, see [Owner]; like its
// operations, what it still does then may overlap with the next turn.
//
// [NewTurns] makes Turns; the zero Turns is not usable. It is safe for concurrent use.
type Turns struct {
	owner   *Owner
	store   Store
	classes map[string]queue.Limit
}

// NewTurns returns the turns of this process, in the owner's store. The classes are limits
// as in [queue.Config].Classes, for all processes together; every process needs the same
// ones. Fair is not used: the turns of a class begin in the order in which the processes
// requested them. So a class that waits for room holds up later turns of the class above.
// The store must be able to change several objects in one commit. The error is [ErrInvalid].
func NewTurns(owner *Owner, classes map[string]queue.Limit) (*Turns, error) {
	if owner == nil || owner.core == nil {
		return nil, fmt.Errorf("%w: turns without an owner", ErrInvalid)
	}
	if _, err := queue.New(&queue.Config[Key]{Classes: classes}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return &Turns{owner: owner, store: owner.core.store, classes: maps.Clone(classes)}, nil
}

// Shared returns a queue whose actions start when they have their turn in q, the queue of
// this process, and a turn of turns. The order of the actions of one process is that of q.
// If turns is nil, Shared returns q.
//
// An action keeps its turn between its attempts, and counts under the limits of q: as if it
// had [queue.Retry].Keep. It counts under them also while it waits for other processes.
// While the store is unavailable, it neither begins nor ends. It ends when the end of its turn
// is written, whatever error the store returns before that, or when the store is closed or this
// process is declared dead.
//
// [queue.Action].Preempt ends only actions of this process, and QueueTimeout limits only the
// wait in q. [queue.ErrWouldDeadlock] does not see a wait for a turn: an action may wait for
// another one only if the limits of the turns permit both at once.
func Shared(q *queue.Queuer[Key], turns *Turns) Queue {
	if turns == nil {
		return q
	}
	return &sharedQueue{q, turns}
}

type sharedQueue struct {
	*queue.Queuer[Key]
	turns *Turns
}

// Submit implements [Queue].
func (q *sharedQueue) Submit(ctx context.Context, key Key, act *queue.Action) (*queue.Ticket[Key], error) {
	return q.Queuer.Submit(ctx, key, q.share([]Key{key}, act))
}

// SubmitAll implements [Queue].
func (q *sharedQueue) SubmitAll(ctx context.Context, keys []Key, act *queue.Action) (*queue.Ticket[Key], error) {
	return q.Queuer.SubmitAll(ctx, keys, q.share(keys, act))
}

// share returns an action that takes a turn before its first attempt. The turn is taken
// when the action is first in the lanes of this process, and not at the submit: of two
// actions of one process, the one that is first here must not wait for a turn behind the
// other one.
func (q *sharedQueue) share(keys []Key, act *queue.Action) *queue.Action {
	if act == nil {
		return nil // the queue refuses it
	}
	own := *act
	// The bad schedule without Keep: an attempt fails, another action takes the share of the
	// limits and waits for this turn, and the next attempt waits for the share. With Keep
	// there is no cycle. An action with a share waits only for places in front of its own.
	// These are in one order in all lanes, because one commit takes all places of an action.
	// And an action with places has its share until it has ended.
	own.Retry.Keep = true
	var mu sync.Mutex // of settled, and of mine in Settle: only Guard sets mine
	var mine *turn
	settled := false
	own.Guard = func(ctx context.Context) error {
		if mine == nil {
			began, err := q.turns.begin(ctx, keys, act.Class)
			if err != nil {
				return err
			}
			mu.Lock()
			mine = began
			late := settled
			mu.Unlock()
			if late { // it was abandoned, and Settle has not seen the turn
				mine.end(ctx)
				return context.Cause(ctx)
			}
		}
		if act.Guard == nil {
			return nil
		}
		return act.Guard(ctx)
	}
	own.Settle = func(ctx context.Context, how queue.Outcome, err error) {
		mu.Lock()
		settled = true
		began := mine
		mu.Unlock()
		if began != nil {
			defer began.end(ctx)
		}
		if act.Settle != nil {
			act.Settle(ctx, how, err)
		}
	}
	return &own
}

const (
	turnsTable = "interlock.turns"
	turnsState = "open"
	// keyLanes is the number of records that keep the places of all keys: a record for each
	// key would stay in the store for ever.
	keyLanes = 64
	// longestLook is the longest time between two looks at the lanes of a turn.
	longestLook = time.Second
)

// place is an entry of a lane, which is a list in the order of arrival.
type place struct {
	Turn  string `json:"turn"` // unique
	Owner string `json:"owner"`
	Epoch uint64 `json:"epoch"`
	Tag   string `json:"tag,omitempty"` // the key; or the class directly below that of the lane
}

// lane is a record with the places of some keys, or of a class.
type lane struct {
	id    string
	tag   string
	limit *queue.Limit // of the class; nil: the lane is of keys
}

// turn is a place in each of its lanes. It begins when every lane admits it.
type turn struct {
	*Turns
	place   place
	lanes   []lane
	entered bool // its places may be in the lanes
}

// begin takes places in all lanes by one commit, so that two turns have the same order in
// all of them, and waits until they are admitted.
func (t *Turns) begin(ctx context.Context, keys []Key, class string) (*turn, error) {
	ref := t.owner.ref
	n := &turn{Turns: t, place: place{Turn: NewToken().String(), Owner: ref.Name, Epoch: ref.Epoch}, lanes: t.lanesOf(keys, class)}
	begun := false
	defer func() {
		if !begun {
			n.end(ctx) // a commit may have written the places, also if the store has panicked
		}
	}()
	if err := n.update(ctx, n.enter); err != nil {
		return nil, err
	}
	pause := queue.Exponential(firstPause, longestLook)
	for attempt := 1; ; attempt++ {
		limited, stop := context.WithTimeout(ctx, outcomeWithin) // as in update
		admitted, err := n.admitted(limited)
		late := limited.Err() != nil
		stop()
		switch {
		case err != nil && !late && !errors.Is(err, ErrUnavailable):
			return nil, err
		case admitted:
			begun = true
			return n, nil
		case !sleep(ctx, t.owner.Lost(), pause(attempt, nil)):
			return nil, cmp.Or(context.Cause(ctx), context.Cause(t.owner.alive))
		}
	}
}

// end leaves the lanes that the turn may have entered. After an error of any kind it tries
// again, until the store is closed or this process is considered dead: then others remove
// the places.
func (n *turn) end(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	pause := queue.Exponential(firstPause, longestLook)
	for attempt := 1; n.entered; attempt++ {
		err := n.update(ctx, n.leave)
		if err == nil || errors.Is(err, ErrClosed) || !sleep(ctx, n.owner.Lost(), pause(attempt, err)) {
			return
		}
	}
}

// lanesOf returns the lanes of keys and of the limited classes above an action.
func (t *Turns) lanesOf(keys []Key, class string) (lanes []lane) {
	for _, k := range keys {
		h := fnv.New32a()
		h.Write([]byte(k.text()))
		lanes = append(lanes, lane{id: fmt.Sprint("keys/", h.Sum32()%keyLanes), tag: k.text()})
	}
	for path, tag := class, ""; ; {
		above, last := "", path
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			above, last = path[:i], path[i+1:]
		}
		limit, ok := t.classes[path]
		if !ok && path != "" {
			limit = t.classes[strings.TrimPrefix(above+"/*", "/")]
		}
		if limit.MaxRunning > 0 || limit.MaxChildren > 0 {
			lanes = append(lanes, lane{id: "class/" + path, tag: tag, limit: &limit})
		}
		if path == "" {
			return lanes
		}
		path, tag = above, last
	}
}

// enter appends the place to a lane, unless it is there.
func (n *turn) enter(l lane, places []place) []place {
	p := n.place
	p.Tag = l.tag
	if slices.Contains(places, p) {
		return places
	}
	return append(places, p)
}

// leave removes the places of the turn from a lane.
func (n *turn) leave(_ lane, places []place) []place {
	return slices.DeleteFunc(places, func(p place) bool { return p.Turn == n.place.Turn })
}

// admits reports whether a lane admits the place at an index. Places are only appended and
// removed, so that it stays admitted.
func (l *lane) admits(places []place, at int) bool {
	if l.limit == nil {
		return !slices.ContainsFunc(places[:at], func(p place) bool { return p.Tag == l.tag && p.Turn != places[at].Turn })
	}
	children := map[string]bool{}
	for _, p := range places[:at+1] {
		if p.Tag != "" {
			children[p.Tag] = true
		}
	}
	return (l.limit.MaxRunning == 0 || at < l.limit.MaxRunning) && (l.limit.MaxChildren == 0 || len(children) <= l.limit.MaxChildren)
}

// admitted reports whether every lane admits the turn. It removes the places of dead owners
// in front of it.
func (n *turn) admitted(ctx context.Context) (bool, error) {
	for _, l := range n.lanes {
		_, places, err := n.read(ctx, l.id)
		if err != nil {
			return false, err
		}
		at := slices.IndexFunc(places, func(p place) bool { return p.Turn == n.place.Turn && p.Tag == l.tag })
		switch {
		case at < 0:
			return false, fmt.Errorf("%w: turn %s has lost its place", ErrStale, n.place.Turn)
		case !l.admits(places, at):
			return false, n.bury(ctx, places[:at])
		}
	}
	return true, nil
}

// bury removes the places of owners that are dead.
func (n *turn) bury(ctx context.Context, places []place) error {
	dead := map[OwnerRef]bool{}
	for _, p := range places {
		ref := OwnerRef{p.Owner, p.Epoch}
		if _, known := dead[ref]; known {
			continue
		}
		r, err := n.store.Get(ctx, ref.Key())
		if err != nil {
			return err
		}
		dead[ref] = !ref.Alive(&r)
	}
	if !slices.Contains(slices.Collect(maps.Values(dead)), true) {
		return nil
	}
	return n.update(ctx, func(_ lane, places []place) []place {
		return slices.DeleteFunc(places, func(p place) bool { return dead[OwnerRef{p.Owner, p.Epoch}] })
	})
}

// update changes the lanes of the turn in one commit. edit may run several times: it finds
// what an earlier commit has written whose answer was lost. The error is the cause of ctx,
// or one that does not go away, such as that this process is dead.
func (n *turn) update(ctx context.Context, edit func(lane, []place) []place) error {
	pause := queue.Exponential(firstPause/10, longestLook)
	for attempt := 1; ; attempt++ {
		// The bad schedule without a limit: one connection hangs, the heartbeats of the owner
		// take others, and all processes wait for ever for the places of this turn.
		limited, stop := context.WithTimeout(ctx, outcomeWithin)
		err := n.try(limited, edit)
		retry := limited.Err() != nil || errors.Is(err, ErrConflict) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknownOutcome)
		stop()
		switch {
		case err == nil:
			return nil
		case ownerLost(err):
			n.owner.lose()
			return err
		case !retry:
			return err
		case !sleep(ctx, n.owner.Lost(), pause(attempt, err)):
			return cmp.Or(context.Cause(ctx), context.Cause(n.owner.alive))
		}
	}
}

// try commits the lanes that edit changes, once. The lane's record has its places as
// arguments, which change without a history row.
func (n *turn) try(ctx context.Context, edit func(lane, []place) []place) error {
	c := &Commit{Token: NewToken(), Owner: n.owner.ref}
	for i, l := range n.lanes {
		if slices.ContainsFunc(n.lanes[:i], func(before lane) bool { return before.id == l.id }) {
			continue
		}
		r, places, err := n.read(ctx, l.id)
		if err != nil {
			return err
		}
		for _, same := range n.lanes[i:] { // keys that share a record
			if same.id == l.id {
				places = edit(same, places)
			}
		}
		ch := StoredChange{Expect: r.Revision, From: r.State, FromOrigin: r.Origin, To: r, MetadataOnly: r.Exists()}
		if !r.Exists() {
			ch.To.State, ch.To.Origin, ch.To.Event, ch.To.ChangeToken = turnsState, turnsState, turnsState, c.Token
			ch.To.Sequence++
			ch.To.Operation++
		}
		if ch.To.Args, err = json.Marshal(places); err != nil {
			return err
		}
		c.Changes = append(c.Changes, ch)
	}
	before := n.entered
	n.entered = true // also if the store panics
	err := n.store.Commit(ctx, c)
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		n.entered = before // nothing was written
	}
	return err
}

// read returns the record of a lane and its places.
func (n *turn) read(ctx context.Context, id string) (r StoredRecord, places []place, err error) {
	if r, err = n.store.Get(ctx, Key{turnsTable, id}); err != nil || len(r.Args) == 0 {
		return r, nil, err
	}
	if err := json.Unmarshal(r.Args, &places); err != nil {
		return r, nil, fmt.Errorf("%w: turns %s: %w", ErrForeign, id, err)
	}
	return r, places, nil
}
