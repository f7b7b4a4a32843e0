package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

const (
	mostClients   = 8
	callsOfClient = 40
)

// operation is the input of a call of a history. A client holds at most one grant, so a
// client that waits holds nothing: there is no deadlock.
type operation struct {
	op   string         // try, lock, upgrade, downgrade or unlock
	hold int            // the number of the acquisition
	rs   []lock.Request // what is held after the call, unless it is refused
}

func acquires(op string) bool { return op == "try" || op == "lock" }

// outcome is the answer of a call of a history.
type outcome struct {
	refused bool
	holds   []int // the acquisitions that the refusal lists as holders
	waits   bool  // it lists a waiting request too
	more    bool
	open    bool       // the call has no answer
	token   lock.Token // of an acquisition or a conversion that was granted
}

// content is what is held, by the number of the acquisition.
type content map[int][]lock.Request

// sequential is the specification: the answer of each call if no two calls overlap.
var sequential = porcupine.Model{
	Init:  func() any { return content{} },
	Equal: func(a, b any) bool { return maps.EqualFunc(a.(content), b.(content), slices.Equal) },
	Step: func(before, input, output any) (bool, any) {
		c, o, out := maps.Clone(before.(content)), input.(operation), output.(outcome)
		switch {
		case o.op == "unlock":
			delete(c, o.hold)
			return true, c
		case !acquires(o.op) && c[o.hold] == nil: // without an answer, it may come after the end of its grant
			return out.open, c
		}
		var blockers []int
		for hold := range c {
			if hold != o.hold && o.op != "downgrade" && conflict(o.rs, c[hold]) {
				blockers = append(blockers, hold)
			}
		}
		if !out.refused {
			c[o.hold] = o.rs
			return len(blockers) == 0, c
		}
		unknown := slices.ContainsFunc(out.holds, func(hold int) bool { return !slices.Contains(blockers, hold) })
		return !unknown && (out.waits || len(out.holds) > 0) && (out.more || len(out.holds) == len(blockers)), c
	},
}

// histories records histories of concurrent clients and checks that each is
// linearizable.
func histories(e *env) { check(e, false) }

// faultyHistories does the same with faults.
func faultyHistories(e *env) { check(e, true) }

func check(e *env, faulty bool) {
	newLocker := e.h.open
	if faulty {
		newLocker = e.h.Faulty
	}
	operations, open := 0, 0
	for i := range e.h.Histories {
		clients := mostClients/2 + i%(mostClients/2+1)
		history, err := record(e, newLocker(e, e.config), faulty, clients, e.h.Seed+uint64(i))
		require.NoError(e, err, "history %d (Seed %d)", i+1, e.h.Seed)
		operations += len(history)
		for _, wrong := range disorder(history) {
			e.Errorf("history %d (Seed %d): %s", i+1, e.h.Seed, wrong)
		}
		history, unanswered := bound(history)
		open += unanswered
		if verdict := porcupine.CheckOperationsTimeout(sequential, history, time.Minute); verdict != porcupine.Ok {
			for _, o := range history {
				e.Logf("%4d %4d %+v: %+v", o.Call, o.Return, o.Input, o.Output)
			}
			e.Fatalf("history %d (Seed %d) is not linearizable, or was not checked in a minute: %s", i+1, e.h.Seed, verdict)
		}
	}
	e.Logf("%d histories of %d operations, %d of them without an answer", e.h.Histories, operations, open)
}

// never is the return of an operation without an answer. It has happened at any time after
// its call. An acquisition may not have happened either.
const never = math.MaxInt64

// bound uses what the refusals of a history list. An acquisition without an answer that no
// refusal lists is left out, with its release: without them the history is linearizable too
// if it is with them. If one is listed, it has happened before that refusal returned. A grant
// that ends at an unknown time does not end before the call of the last refusal that lists it.
func bound(history []porcupine.Operation) (_ []porcupine.Operation, open int) {
	first, last, absent := map[int]int64{}, map[int]int64{}, map[int]bool{}
	for _, o := range history {
		for _, hold := range o.Output.(outcome).holds {
			first[hold] = min(cmp.Or(first[hold], never), o.Return)
			last[hold] = max(last[hold], o.Call)
		}
	}
	for i := range history {
		o := &history[i]
		switch in := o.Input.(operation); {
		case o.Return != never:
		case in.op == "unlock":
			o.Call = max(o.Call, last[in.hold])
		default:
			open++
			if acquires(in.op) {
				o.Return = cmp.Or(first[in.hold], never)
				absent[in.hold] = o.Return == never
			}
		}
	}
	return slices.DeleteFunc(history, func(o porcupine.Operation) bool { return absent[o.Input.(operation).hold] }), open
}

// disorder returns the grants of a history whose tokens do not grow: a conflicting grant, or
// an upgrade of the same one, had returned before with a token as great.
func disorder(history []porcupine.Operation) (wrong []string) {
	for _, later := range history {
		now, with := later.Input.(operation), later.Output.(outcome)
		if with.token == 0 || now.op == "downgrade" {
			continue
		}
		for _, earlier := range history {
			before, had := earlier.Input.(operation), earlier.Output.(outcome)
			grows := had.token < with.token || before.hold == now.hold && had.token == with.token // raises nothing
			if !grows && earlier.Return < later.Call && (before.hold == now.hold || conflict(before.rs, now.rs)) {
				wrong = append(wrong, fmt.Sprintf("token %d of %s, which was granted after %s with token %d", with.token, now.rs, before.rs, had.token))
			}
		}
	}
	return wrong
}

// record lets clients make random calls concurrently and returns their calls. At the end
// every client releases what it holds, so that the others continue.
func record(e *env, l lock.Locker, faulty bool, clients int, seed uint64) ([]porcupine.Operation, error) {
	var clock, numbers atomic.Int64
	all := make([]recorder, clients)
	err := together(clients, func(i int) error {
		all[i] = recorder{e: e, l: l, faulty: faulty, number: i, clock: &clock, numbers: &numbers}
		err := all[i].run(rand.New(rand.NewPCG(seed, uint64(i))))
		return errors.Join(err, all[i].call(step{op: "unlock"}))
	})
	var history []porcupine.Operation
	for i := range all {
		history = append(history, all[i].log...)
	}
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return history, err
}

// recorder is one client of a history.
type recorder struct {
	e       *env
	l       lock.Locker
	faulty  bool
	number  int
	clock   *atomic.Int64 // the order of all calls and returns
	numbers *atomic.Int64 // the number of the latest acquisition
	grant   *lock.Grant   // the last one
	hold    int           // its number
	held    bool
	has     []lock.Request // then
	since   int64          // the last time at which it was certainly held
	log     []porcupine.Operation
}

// run makes random calls.
func (r *recorder) run(random *rand.Rand) error {
	for range callsOfClient {
		if err := r.call(draw(random)); err != nil {
			return err
		}
		if random.IntN(3) == 0 {
			runtime.Gosched()
		}
	}
	return nil
}

// unknown reports whether an error leaves open whether the call was executed.
func (r *recorder) unknown(err error) bool {
	return r.faulty && (errors.Is(err, lock.ErrLost) || r.e.h.Unknown(err))
}

// call makes a call and records it, unless it does not fit what the client holds. A client
// unlocks its last grant now and then once more.
func (r *recorder) call(s step) error {
	if now := r.clock.Add(1); r.held && r.grant.Check() == nil {
		r.since = now
	}
	o := operation{op: s.op, hold: r.hold}
	switch {
	case acquires(o.op) && !r.held:
		o.rs, _ = lock.Normalize(s.requests) // the requests that are drawn are valid
		o.hold = int(r.numbers.Add(1))
		s.options = *by(fmt.Sprint("hold ", o.hold))
	case s.op == "unlock" && r.grant != nil:
		r.held = false
	case s.op == "downgrade" && r.held && allCover(r.has, s.mode), s.op == "upgrade" && r.held:
		o.rs = slices.Clone(r.has)
		for i, has := range r.has {
			o.rs[i].Mode = s.mode
			if s.op == "upgrade" {
				o.rs[i].Mode = lock.Join(has.Mode, s.mode)
			}
		}
	default:
		return nil
	}
	ctx, cancel := r.e.bounded(r.e.h.Patience)
	defer cancel()
	called := r.clock.Add(1)
	g, err := s.call(ctx, r.l, r.grant)
	returned := r.clock.Add(1)
	if err != nil && ctx.Err() != nil { // Unknown may match it
		return fmt.Errorf("%+v: %w: %w", o, context.Cause(ctx), err)
	}
	if g != nil {
		r.grant, r.hold, r.held = g, o.hold, true
	}
	out, err := outcomeOf(o.op, err)
	if err == nil && !out.refused && o.rs != nil {
		out.token = r.grant.Token()
	}
	switch {
	case err == nil:
		if o.rs != nil && !out.refused {
			r.has = o.rs
		}
		r.since = called
		r.add(o, called, out, returned)
	case !r.unknown(err):
		return fmt.Errorf("%+v: %w", o, err)
	case acquires(o.op): // the locker releases it, if it is granted at all
		r.add(o, called, out, never)
		r.add(operation{op: "unlock", hold: o.hold}, called, out, never)
	case o.op != "unlock" && r.grant.Check() == nil: // a conversion that was not made
	default: // the grant is lost, at the latest now
		if o.op != "unlock" {
			r.add(o, called, out, never)
		}
		r.add(operation{op: "unlock", hold: o.hold}, r.since, out, never)
		r.grant, r.held = nil, false
	}
	return nil
}

func (r *recorder) add(o operation, called int64, out outcome, returned int64) {
	out.open = returned == never
	r.log = append(r.log, porcupine.Operation{ClientId: r.number, Input: o, Call: called, Output: out, Return: returned})
}

// outcomeOf converts the error of a call. An error that is not a refusal is returned.
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
		if h.Waiting {
			out.waits = true
			continue
		}
		var hold int
		if _, err := fmt.Sscanf(h.Owner, "hold %d", &hold); err != nil {
			return out, fmt.Errorf("the refusal lists an unknown holder: %v", h)
		}
		if !slices.Contains(out.holds, hold) {
			out.holds = append(out.holds, hold)
		}
	}
	return out, nil
}

// The rule of conflicts is that of package lock.

func conflict(as, bs []lock.Request) bool {
	return slices.ContainsFunc(as, func(a lock.Request) bool { return slices.ContainsFunc(bs, a.Conflicts) })
}

func allCover(rs []lock.Request, m lock.Mode) bool {
	return !slices.ContainsFunc(rs, func(r lock.Request) bool { return !r.Mode.Covers(m) })
}
