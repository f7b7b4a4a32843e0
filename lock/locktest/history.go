package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/interlock-go/interlock/lock"
)

func historyDemands() []demand {
	return []demand{{
		name: "Histories/are_linearizable", crowd: true, run: func(t *trial) { histories(t, nil) },
		says: "Tries, lists, conversions and releases of concurrent callers, answered with all names, agree on one order that contradicts nobody's time.",
	}}
}

const (
	fewClients  = 4
	mostClients = 8
	slots       = 2 // grants that a client may have at once
	clientOps   = 24
)

// action is what an operation of a history does.
type action uint8

const (
	tryAction action = iota
	unlockAction
	againAction // a second Unlock, which does nothing
	upgradeAction
	downgradeAction
)

var actionNames = [...]string{"try", "unlock", "unlock again", "upgrade", "downgrade"}

// operation is one call of a history and its answer. Moments come from a counter
// that all clients share.
type operation struct {
	client           int
	called, returned int64
	action           action
	slot             int // client*slots + which of its grants
	rs               []lock.Request
	mode             lock.Mode

	refused bool
	names   []int // slots that the refusal names
	more    bool  // there are more of them
}

func (o operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%4d %4d] slot %2d %s", o.called, o.returned, o.slot, actionNames[o.action])
	switch o.action {
	case tryAction:
		fmt.Fprintf(&b, " %s", o.rs)
	case upgradeAction, downgradeAction:
		fmt.Fprintf(&b, " to %s", o.mode)
	case unlockAction, againAction:
	}
	if o.refused {
		fmt.Fprintf(&b, ": refused by slots %v", o.names)
	}
	return b.String()
}

// verdicts counts what became of histories.
type verdicts struct{ legal, illegal, unknown int }

// histories makes histories and checks them; see is shown each, and may be nil.
// The first that is illegal is told, and those after it are counted only.
func histories(t *trial, see func([]operation, verdict)) verdicts {
	seed := t.h.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	known := newRules()
	var count verdicts
	for i := range t.histories {
		// Every number of processors from 2 to 8 has a stretch of histories.
		if at := 2 + i*7/t.histories; at != runtime.GOMAXPROCS(0) {
			runtime.GOMAXPROCS(at)
		}
		clients := fewClients + i%(mostClients-fewClients+1)
		history, err := record(t.Context(), t.fresh(nil), clients, seed+uint64(i))
		if err != nil {
			t.Fatalf("history %d (Seed %d): %v", i+1, seed, err)
		}
		v := judge(known, history)
		if see != nil {
			see(history, v)
		}
		switch v {
		case legal:
			count.legal++
		case illegal:
			if count.illegal++; count.illegal == 1 {
				var b strings.Builder
				for _, o := range history {
					fmt.Fprintf(&b, "%s\n", o)
				}
				t.Errorf("history %d (Seed %d) of %d calls has no order:\n%s", i+1, seed, len(history), b.String())
			}
		case unknown:
			count.unknown++
		}
	}
	if count.illegal+count.unknown > 0 {
		t.Errorf("of %d histories %d are illegal and %d took too long to decide", t.histories, count.illegal, count.unknown)
	}
	return count
}

// record lets clients call at once and returns what they did, in the order of
// their calls.
func record(ctx context.Context, l lock.Locker, clients int, seed uint64) ([]operation, error) {
	var moment atomic.Int64
	logs := make([][]operation, clients)
	errs := make([]error, clients)
	together(clients, func(i int) {
		c := client{
			ctx: ctx, l: l, number: i, moment: &moment,
			random: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		for range clientOps {
			if errs[i] = c.step(); errs[i] != nil {
				return
			}
			if c.random.IntN(3) == 0 {
				runtime.Gosched()
			}
		}
		logs[i] = c.log
	})
	history := slices.Concat(logs...)
	slices.SortFunc(history, func(a, b operation) int { return int(a.called - b.called) })
	return history, errors.Join(errs...)
}

// client is one of the callers of a history.
type client struct {
	ctx    context.Context // of one history
	l      lock.Locker
	number int
	moment *atomic.Int64
	random *rand.Rand
	held   [slots]*lock.Held
	stale  [slots]*lock.Held
	log    []operation
}

func slotName(slot int) string { return fmt.Sprint("slot ", slot) }

func (c *client) step() error {
	which := c.random.IntN(slots)
	o := operation{
		client: c.number, slot: c.number*slots + which,
		mode: lock.Modes[c.random.IntN(len(lock.Modes))],
	}
	h, stale := c.held[which], c.stale[which]
	dice := c.random.IntN(10)
	var call func() error
	switch {
	case h == nil && stale != nil && dice == 0:
		o.action = againAction
		call = func() error { return stale.Unlock(c.ctx) }
	case h == nil:
		o.action, o.rs = tryAction, c.draw()
		call = func() (err error) {
			c.held[which], err = tryFor(c.ctx, c.l, o.rs, by(slotName(o.slot)))
			return err
		}
	case dice < 6:
		o.action = unlockAction
		c.held[which], c.stale[which] = nil, h
		call = func() error { return h.Unlock(c.ctx) }
	case dice < 8 && c.covers(h, o.mode):
		o.action = downgradeAction
		call = func() error { return h.Downgrade(c.ctx, o.mode) }
	default:
		o.action = upgradeAction
		call = func() error { return h.Upgrade(c.ctx, o.mode) }
	}
	o.called = c.moment.Add(1)
	err := call()
	o.returned = c.moment.Add(1)
	if err != nil {
		conflict, ok := errors.AsType[*lock.ConflictError](err)
		if !ok || !errors.Is(err, lock.ErrConflict) || o.action != tryAction && o.action != upgradeAction {
			return fmt.Errorf("%s: %w", o, err)
		}
		o.refused, o.more = true, conflict.More
		for _, holder := range conflict.Holders {
			var slot int
			if _, err := fmt.Sscanf(holder.Owner, "slot %d", &slot); err != nil || slotName(slot) != holder.Owner {
				return fmt.Errorf("%s is refused for %v, which is nobody's", o, holder)
			}
			o.names = append(o.names, slot)
		}
		slices.Sort(o.names)
		o.names = slices.Compact(o.names)
	}
	c.log = append(c.log, o)
	return nil
}

func (c *client) covers(h *lock.Held, m lock.Mode) bool {
	return !slices.ContainsFunc(h.Requests(), func(r lock.Request) bool { return !atLeast(r.Mode, m) })
}

// draw makes up what to ask for: mostly one request, and the root seldom, so that
// about half of what is asked for is granted.
func (c *client) draw() []lock.Request {
	one := func() lock.Request {
		path := world[1+c.random.IntN(len(world)-1)]
		if c.random.IntN(6) == 0 {
			path = world[0]
		}
		return lock.Request{Path: path, Mode: lock.Modes[c.random.IntN(len(lock.Modes))]}
	}
	rs := []lock.Request{one()}
	if c.random.IntN(4) == 0 {
		rs = append(rs, one())
	}
	return rs
}
