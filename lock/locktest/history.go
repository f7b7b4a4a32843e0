package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/interlock-go/interlock/lock"
)

const (
	mostClients   = 8
	slots         = 2 // the grants that a client may hold at once
	callsOfClient = 24
)

// operation is the input of a call of a history.
type operation struct {
	op   string // try, upgrade, downgrade, unlock, or again: a second unlock
	slot int    // client*slots + the number of its grant
	rs   []lock.Request
	mode lock.Mode
}

// outcome is the answer of a call of a history.
type outcome struct {
	refused bool
	names   []int // the slots that the refusal lists
	more    bool
}

// content is what the slots hold. A list of a history has at most two requests;
// the zero request is none.
type content [mostClients * slots][2]lock.Request

func (c *content) of(slot int) []lock.Request {
	return slices.DeleteFunc(slices.Clone(c[slot][:]), func(r lock.Request) bool { return r.Mode == 0 })
}

func (c *content) set(slot int, rs []lock.Request) {
	c[slot] = [2]lock.Request{}
	copy(c[slot][:], rs)
}

// sequential is the specification: the answer of each call if no two calls overlap.
var sequential = porcupine.Model{
	Init: func() any { return content{} },
	Step: func(before, input, output any) (bool, any) {
		c, o, out := before.(content), input.(operation), output.(outcome)
		rs, own := canonical(o.rs), -1
		switch o.op {
		case "again":
			return true, c
		case "unlock":
			c.set(o.slot, nil)
			return true, c
		case "downgrade":
			c.set(o.slot, lowerAll(c.of(o.slot), o.mode))
			return true, c
		case "upgrade":
			rs, own = joinAll(c.of(o.slot), o.mode), o.slot
		}
		var blockers []int
		for slot := range c {
			if slot != own && conflict(rs, c.of(slot)) {
				blockers = append(blockers, slot)
			}
		}
		if !out.refused {
			c.set(o.slot, rs)
			return len(blockers) == 0, c
		}
		unknown := slices.ContainsFunc(out.names, func(slot int) bool { return !slices.Contains(blockers, slot) })
		return !unknown && len(out.names) > 0 && (out.more || len(out.names) == len(blockers)), c
	},
}

// histories records histories of concurrent clients and checks that each is
// linearizable.
func histories(e *env) {
	seed, count := cmp.Or(e.h.Seed, rand.Uint64()), cmp.Or(e.h.Histories, 400)
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	for i := range count {
		runtime.GOMAXPROCS(2 + i*7/count)
		clients := mostClients/2 + i%(mostClients/2+1)
		history, err := record(e.Context(), e.fresh(), clients, seed+uint64(i))
		e.require(err, "history %d (Seed %d)", i+1, seed)
		switch porcupine.CheckOperationsTimeout(sequential, history, time.Minute) {
		case porcupine.Ok:
		case porcupine.Unknown:
			e.Fatalf("history %d (Seed %d) takes more than a minute to check", i+1, seed)
		case porcupine.Illegal:
			var text strings.Builder
			for _, o := range history {
				fmt.Fprintf(&text, "%4d %4d %+v: %+v\n", o.Call, o.Return, o.Input, o.Output)
			}
			e.Fatalf("history %d (Seed %d) is not linearizable:\n%s", i+1, seed, text.String())
		}
	}
}

// record lets clients call concurrently and returns their calls.
func record(ctx context.Context, l lock.Locker, clients int, seed uint64) ([]porcupine.Operation, error) {
	var clock atomic.Int64
	all := make([]recorder, clients)
	errs := make([]error, clients)
	together(clients, func(i int) {
		r := &all[i]
		*r = recorder{l: l, number: i, clock: &clock, random: rand.New(rand.NewPCG(seed, uint64(i)))}
		for range callsOfClient {
			if errs[i] = r.call(ctx); errs[i] != nil {
				return
			}
			if r.random.IntN(3) == 0 {
				runtime.Gosched()
			}
		}
	})
	var history []porcupine.Operation
	for i := range all {
		history = append(history, all[i].log...)
	}
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return history, errors.Join(errs...)
}

// recorder is one client of a history.
type recorder struct {
	l      lock.Locker
	number int
	clock  *atomic.Int64 // the order of all calls and returns
	random *rand.Rand
	held   [slots]*lock.Grant
	stale  [slots]*lock.Grant
	log    []porcupine.Operation
}

func slotName(slot int) string { return fmt.Sprint("slot ", slot) }

// call makes a random call and records it.
func (r *recorder) call(ctx context.Context) error {
	which := r.random.IntN(slots)
	o := operation{slot: r.number*slots + which, mode: lock.Modes[r.random.IntN(len(lock.Modes))]}
	g, stale := r.held[which], r.stale[which]
	dice := r.random.IntN(10)
	var do func() error
	switch {
	case g == nil && stale != nil && dice == 0:
		o.op, do = "again", func() error { return stale.Unlock(ctx) }
	case g == nil:
		o.op, o.rs = "try", r.requests()
		do = func() (err error) {
			r.held[which], err = tryLock(ctx, r.l, o.rs, by(slotName(o.slot)))
			return err
		}
	case dice < 6:
		r.held[which], r.stale[which] = nil, g
		o.op, do = "unlock", func() error { return g.Unlock(ctx) }
	case dice < 8 && allAtLeast(g.Requests(), o.mode):
		o.op, do = "downgrade", func() error { return g.Downgrade(ctx, o.mode) }
	default:
		o.op, do = "upgrade", func() error { return g.Upgrade(ctx, o.mode) }
	}
	called := r.clock.Add(1)
	err := do()
	returned := r.clock.Add(1)
	out, err := outcomeOf(o.op, err)
	if err != nil {
		return fmt.Errorf("%+v: %w", o, err)
	}
	r.log = append(r.log, porcupine.Operation{ClientId: r.number, Input: o, Call: called, Output: out, Return: returned})
	return nil
}

// requests draws one request or two. About half of the tries are granted, because
// the root is drawn rarely.
func (r *recorder) requests() (rs []lock.Request) {
	for len(rs) == 0 || len(rs) == 1 && r.random.IntN(4) == 0 {
		path := world[1+r.random.IntN(len(world)-1)]
		if r.random.IntN(6) == 0 {
			path = "/"
		}
		rs = append(rs, at(lock.Modes[r.random.IntN(len(lock.Modes))], path))
	}
	return rs
}

// outcomeOf converts the error of a call. An error that is no refusal is returned.
func outcomeOf(op string, err error) (outcome, error) {
	if err == nil {
		return outcome{}, nil
	}
	refused, ok := errors.AsType[*lock.ConflictError](err)
	if !ok || !errors.Is(err, lock.ErrConflict) || op != "try" && op != "upgrade" {
		return outcome{}, err
	}
	out := outcome{refused: true, more: refused.More}
	for _, h := range refused.Holders {
		var slot int
		if _, err := fmt.Sscanf(h.Owner, "slot %d", &slot); err != nil {
			return out, fmt.Errorf("the refusal lists an unknown holder: %v", h)
		}
		if !slices.Contains(out.names, slot) {
			out.names = append(out.names, slot)
		}
	}
	return out, nil
}
