package locktest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// naive is a simple correct locker: a list under one mutex that every call looks
// through. The tests plant one fault in it.
type naive struct {
	c      lock.Config
	fault  string          // see faults; "": none
	shaky  bool            // calls have no answer now and then, and grants are lost
	late   context.Context // of what a shaky locker executes after its call has returned
	mu     sync.Mutex
	all    []*place // in the order of arrival
	token  lock.Token
	grants int
	byPath map[lock.Path]lock.Token // "tokens are counted by path"
	kept   int                      // nodes that a fault does not free

	keptIDs map[string]bool // ids that a fault does not free
}

// place is one acquisition in the list.
type place struct {
	n       *naive
	o       lock.Options
	asked   []lock.Request
	has     []lock.Request
	waiting bool
	gone    bool
	leaving bool // Break has begun: no acquisition joins it
	token   lock.Token
	former  lock.Token // before the last upgrade
	since   time.Time
	granted chan struct{}
	waiters int // calls that wait
	handles int // calls that have returned the grant
	grant   *lock.Grant
	lose    func(*lock.LostError) bool
}

func newNaive(c lock.Config, fault string) *naive {
	n := &naive{c: c, fault: fault}
	if fault != "FirstToken is ignored" {
		n.token = max(c.FirstToken, 1) - 1
	}
	return n
}

// pause lets other goroutines run if the fault is planted.
func (n *naive) pause(fault string) {
	if n.fault == fault {
		n.mu.Unlock()
		for range 3 {
			runtime.Gosched()
		}
		n.mu.Lock()
	}
}

func (n *naive) conflict(as, bs []lock.Request) bool {
	for _, a := range as {
		for _, b := range bs {
			if n.fault == "paths are compared without case" && strings.EqualFold(a.Path.String(), b.Path.String()) {
				return true
			}
			levels := strings.Count(a.Path.String(), "/") - strings.Count(b.Path.String(), "/")
			if n.fault == "only eight levels are looked at" && max(levels, -levels) > 8 {
				continue
			}
			if n.fault == "S and IX are compatible" && a.Path == b.Path && a.Mode|b.Mode == lock.IX|lock.S {
				continue
			}
			if a.Conflicts(b) {
				return true
			}
		}
	}
	return false
}

// blockers returns the places that conflict with requests. Of a place of its own,
// these are the earlier ones if it waits, and all others if it is held.
func (n *naive) blockers(rs []lock.Request, own *place) (found []*place) {
	for i, p := range n.all {
		if n.fault == "only 32 requests are looked at" && i == 32 {
			break
		}
		if p == own && own.waiting && n.fault != "a cancelled wait lists later requests" {
			break
		}
		if p == own && n.fault != "an upgrade lists itself" {
			continue
		}
		if n.conflict(rs, p.has) {
			found = append(found, p)
		}
	}
	return found
}

func (n *naive) TryLock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Grant, error) {
	return n.acquire(ctx, []lock.Request{r}, o, false)
}

func (n *naive) Lock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Grant, error) {
	return n.acquire(ctx, []lock.Request{r}, o, true)
}

func (n *naive) TryLockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	return n.acquire(ctx, rs, o, false)
}

func (n *naive) LockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	return n.acquire(ctx, rs, o, true)
}

// naiveTTL is how long a grant of a shaky locker lives if the session is not renewed.
const naiveTTL = time.Millisecond

// errNoAnswer is the error of a shaky locker.
var errNoAnswer = errors.New("no answer")

func (n *naive) acquire(ctx context.Context, rs []lock.Request, o *lock.Options, wait bool) (*lock.Grant, error) {
	dice := 9
	if n.shaky {
		dice = rand.IntN(10)
	}
	switch dice {
	case 0:
		return nil, errNoAnswer
	case 1:
		go func() {
			if g, err := n.decide(n.late, rs, o, wait); err == nil {
				runtime.Gosched()
				_ = g.Unlock(n.late)
				n.mu.Lock()
				defer n.mu.Unlock()
				if n.fault == "a late removal takes another grant" && len(n.all) > 0 && !n.all[0].waiting {
					n.drop(n.all[0])
				}
			}
		}()
		return nil, errNoAnswer
	case 2:
		n.mu.Lock()
		held := slices.DeleteFunc(slices.Clone(n.all), func(p *place) bool { return p.waiting })
		n.mu.Unlock()
		if len(held) > 0 {
			held[rand.IntN(len(held))].end()
		}
	}
	return n.decide(ctx, rs, o, wait)
}

func (n *naive) decide(ctx context.Context, rs []lock.Request, o *lock.Options, wait bool) (*lock.Grant, error) {
	asked, err := lock.Normalize(rs)
	if err != nil {
		if n.fault == "a bad request takes a node" {
			n.mu.Lock()
			n.kept++
			n.mu.Unlock()
		}
		return nil, err
	}
	if o == nil {
		o = new(lock.Options)
	}
	if err := o.Validate(); err != nil && n.fault != "texts are not checked" {
		return nil, err
	}
	if ctx.Err() != nil && (wait || n.fault != "a try ignores its context") {
		return nil, lock.Ended(ctx)
	}
	if n.fault == "a list is kept as written" {
		asked = slices.Clone(rs)
	}
	if n.fault == "a list is cut" {
		asked = asked[:min(len(asked), 100)]
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keptIDs[o.ID] {
		return nil, n.refusal(asked, nil, lock.ErrIDInUse)
	}
	if p := n.known(o.ID); p != nil {
		if g, done, err := n.again(ctx, p, asked, wait); done {
			return g, err
		}
	}
	n.pause("an id is checked, then granted")
	var mark *place
	if n.fault == "intentions are stored on the ancestors" && asked[0].Path != lock.Root() {
		// Other callers can conflict with the mark of a request that is refused.
		mark = n.enter([]lock.Request{{Path: lock.Root(), Mode: asked[0].Mode.Intent()}}, o)
		mark.token = 1
		n.pause(n.fault)
	}
	blocked := n.blockers(asked, mark)
	n.drop(mark)
	switch {
	case n.fault == "a try overtakes waiters" && !wait, n.fault == "a Lock overtakes waiters" && wait:
		blocked = slices.DeleteFunc(blocked, func(p *place) bool { return p.waiting })
	case n.fault == "a waiter blocks every request" && n.waiting() > 0:
		blocked = slices.Clone(n.all)
	}
	n.pause("a request is checked, then granted")
	full := n.c.MaxWaiters > 0 && n.waiting() >= n.c.MaxWaiters && n.fault != "the queue is not bounded"
	switch {
	case len(blocked) > 0 && !wait:
		if n.fault == "a refused try releases too much" {
			for _, p := range slices.Clone(n.all) {
				if !p.waiting && p.o.Owner == o.Owner {
					n.drop(p)
				}
			}
		}
		n.keepID("a refused try keeps its id", o.ID)
		return nil, n.refusal(asked, blocked, lock.ErrConflict)
	case len(blocked) > 0 && full:
		return nil, n.refusal(asked, blocked, lock.ErrQueueFull)
	}
	p := n.enter(asked, o)
	if len(blocked) == 0 {
		n.setGranted(p)
		p.handles++
		if n.fault == "a grant ends with the context of its call" {
			context.AfterFunc(ctx, func() { _ = p.Unlock(context.Background()) })
		}
		if err := n.meet(ctx, "a call that is cancelled in flight has its effect"); err != nil {
			return nil, err
		}
		return p.grant, nil
	}
	p.waiting, p.granted, p.waiters = true, make(chan struct{}), 1
	return n.wait(ctx, p)
}

func (n *naive) known(id string) *place {
	for _, p := range n.all {
		same := p.o.ID == id || n.fault == "ids are compared without case" && strings.EqualFold(p.o.ID, id)
		if id != "" && same && !p.leaving && n.fault != "ids are ignored" {
			return p
		}
	}
	return nil
}

// again handles a repeated id. The acquisition goes on unless done.
func (n *naive) again(ctx context.Context, p *place, asked []lock.Request, wait bool) (_ *lock.Grant, done bool, _ error) {
	first := p.asked
	if n.fault == "a repeated id is compared with what is held" {
		first = p.has
	}
	switch {
	case n.fault == "an id returns its grant for any requests" && !p.waiting:
	case !slices.Equal(first, asked), !p.waiting && !covers(p.has, asked):
		return nil, true, n.refusal(asked, []*place{p}, lock.ErrIDInUse)
	case p.waiting && n.fault == "a waiting id queues again":
		return nil, false, nil
	case p.waiting && !wait:
		return nil, true, n.refusal(asked, n.blockers(asked, p), lock.ErrConflict)
	case p.waiting:
		p.waiters++
		g, err := n.wait(ctx, p)
		return g, true, err
	}
	p.handles++
	return p.grant, true, nil
}

func (n *naive) enter(rs []lock.Request, o *lock.Options) *place {
	if n.fault == "texts are cut" {
		o = &lock.Options{ID: o.ID, Owner: o.Owner[:min(len(o.Owner), 255)], Reason: o.Reason}
	}
	p := &place{n: n, o: *o, asked: rs, has: slices.Clone(rs), since: time.Now()}
	p.grant, p.lose = lock.NewGrant(p)
	n.all = append(n.all, p)
	if n.fault == "nodes are never freed" {
		n.kept++
	}
	return p
}

// wait is called and returns with the mutex held.
func (n *naive) wait(ctx context.Context, p *place) (*lock.Grant, error) {
	n.mu.Unlock()
	select {
	case <-p.granted:
	case <-ctx.Done():
	}
	var why error
	if ctx.Err() != nil {
		why = lock.Ended(ctx)
	}
	if why != nil && n.fault == "a deadline is a cancellation" {
		why = context.Canceled
	}
	n.mu.Lock()
	if why == nil {
		p.waiters--
		p.handles++
		return p.grant, nil
	}
	var err error = n.refusal(p.asked, n.blockers(p.asked, p), why)
	if n.fault == "a cancelled wait lists no holder" {
		err = why
	}
	n.leave(p)
	return nil, err
}

// leave ends a call's wait. The last call that leaves withdraws the place.
func (n *naive) leave(p *place) {
	p.waiters--
	n.keepID("a cancelled wait keeps its id", p.o.ID)
	switch {
	case p.gone:
	case (p.waiters > 0 || p.handles > 0) && n.fault != "one cancelled call of an id ends all":
	case n.fault == "a cancelled wait keeps its place" && p.waiting:
	case n.fault == "a grant that meets a cancellation stays" && !p.waiting:
	case n.fault == "a cancellation removes the first waiter" && p.waiting:
		i := slices.IndexFunc(n.all, func(p *place) bool { return p.waiting })
		n.drop(n.all[i])
	default:
		n.drop(p)
	}
}

func (n *naive) setGranted(p *place) {
	p.waiting, p.token, p.since = false, n.nextToken(p.has), time.Now()
}

func (n *naive) nextToken(rs []lock.Request) lock.Token {
	n.grants++
	if n.fault == "tokens repeat" && n.grants%3 == 0 && n.token > 0 {
		return n.token
	}
	if n.fault == "tokens are counted by path" {
		if n.byPath == nil {
			n.byPath = map[lock.Path]lock.Token{}
		}
		n.byPath[rs[0].Path]++
		n.token = max(n.token, n.byPath[rs[0].Path])
		return n.byPath[rs[0].Path]
	}
	n.token++
	if n.fault == "tokens are floating-point numbers" {
		return lock.Token(float64(n.token))
	}
	return n.token
}

// drop takes a place out and grants the places without blockers.
func (n *naive) drop(p *place) {
	if p == nil || p.gone {
		return
	}
	p.gone = true
	n.all = slices.DeleteFunc(n.all, func(other *place) bool { return other == p })
	n.wake()
}

func (n *naive) wake() {
	list, last := slices.Clone(n.all), n.fault == "the last waiter is granted first"
	if last {
		slices.Reverse(list)
	}
	for _, p := range list {
		if !p.waiting {
			continue
		}
		blocked := n.blockers(p.has, p)
		if last {
			blocked = slices.DeleteFunc(blocked, func(p *place) bool { return p.waiting })
		}
		if len(blocked) > 0 {
			continue
		}
		n.setGranted(p)
		if n.fault == "a granted wait keeps a node" {
			n.kept++
		}
		if n.fault != "a granted wait does not return" {
			close(p.granted)
		}
		if n.fault == "a release grants one waiter" {
			return
		}
	}
}

func (n *naive) waiting() (count int) {
	for _, p := range n.all {
		switch {
		case p.granted != nil && n.fault == "MaxWaiters counts waits that were granted":
			count++
		case p.waiting && n.fault == "MaxWaiters counts requests":
			count += len(p.has)
		case p.waiting:
			count++
		}
	}
	return count
}

func (n *naive) refusal(rs []lock.Request, blocked []*place, why error) *lock.ConflictError {
	e := &lock.ConflictError{Requests: rs, Err: why}
	for _, p := range blocked {
		for _, r := range p.has {
			if !n.conflict(rs, []lock.Request{r}) && !errors.Is(why, lock.ErrIDInUse) && n.fault != "a waiter blocks every request" {
				continue
			}
			limit := cmp.Or(n.c.MaxHolders, 16)
			if n.fault == "MaxHolders has no default" {
				limit = n.c.MaxHolders
			}
			if len(e.Holders) == limit && (n.fault != "a cancelled wait ignores MaxHolders" || why == lock.ErrConflict) && n.fault != "MaxHolders is ignored" {
				e.More = n.fault != "More is not set"
				if n.fault == "a limited refusal lists one holder" {
					e.Holders = e.Holders[:1]
				}
				return e
			}
			e.Holders = append(e.Holders, p.holder(r))
		}
	}
	switch n.fault {
	case "More is always set":
		e.More = true
	case "a refusal lists no holder":
		e.Holders = nil
	case "a refusal lists one holder":
		e.Holders = e.Holders[:1]
	case "a refusal is of one request":
		e.Requests = rs[:1]
	case "holders have no Since":
		for i := range e.Holders {
			e.Holders[i].Since = time.Time{}
		}
	}
	return e
}

func (p *place) holder(r lock.Request) lock.Holder {
	token := p.token
	if p.n.fault == "a waiting holder has a token" && p.waiting {
		token = 7
	}
	waiting := p.waiting && p.n.fault != "a waiting holder looks held"
	return lock.Holder{
		Path: r.Path, Mode: r.Mode, Waiting: waiting, Token: token, Since: p.since,
		ID: p.o.ID, Owner: p.o.Owner, Reason: p.o.Reason,
	}
}

// covers reports whether requests are as strong as others of the same nodes.
func covers(has, asked []lock.Request) bool {
	return slices.EqualFunc(has, asked, func(h, a lock.Request) bool { return h.Mode.Covers(a.Mode) })
}

// scopeOf returns where a path lies relative to another one, and 0 if it lies
// beside it.
func scopeOf(p, relative lock.Path) lock.Scope {
	switch {
	case p == relative:
		return lock.At
	case p.Covers(relative):
		return lock.Above
	case relative.Covers(p):
		return lock.Below
	}
	return 0
}
