package locktest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// naive is a locker that is right because it is simple: a list under one mutex,
// which every call looks through. Faults are planted in it one by one.
type naive struct {
	c       lock.Config
	bend    bend
	mu      sync.Mutex
	all     []*place // in the order of arrival
	token   lock.Token
	byPath  map[lock.Path]lock.Token // of a fault
	kept    int                      // of a fault
	entries int
}

// place is one acquisition in the list.
type place struct {
	n       *naive
	o       lock.Options
	asked   []lock.Request
	has     []lock.Request
	waiting bool
	gone    bool
	leaving bool // about to be broken: nobody joins it
	token   lock.Token
	since   time.Time
	granted chan struct{}
	waiters int // calls that wait
	handles int // calls that have it
	held    *lock.Held
	lose    func(*lock.LostError) bool
}

func newNaive(c lock.Config, b bend) *naive {
	n := &naive{c: c, bend: b}
	if !b.firstTokenIsOne {
		n.token = max(c.FirstToken, 1) - 1
	}
	return n
}

// Conflicts of lock is tested against the marks of the oracle elsewhere.
func (n *naive) clash(as, bs []lock.Request) bool {
	for _, a := range as {
		for _, b := range bs {
			if n.bend.readersIntend && a.Path == b.Path && a.Mode|b.Mode == lock.IX|lock.S {
				continue
			}
			if a.Conflicts(b) {
				return true
			}
		}
	}
	return false
}

// inTheWay returns whose requests conflict; of a place of its own, those before
// it if it waits, and all others if it does not.
func (n *naive) inTheWay(rs []lock.Request, own *place) (found []*place) {
	for _, p := range n.all {
		if p == own && own.waiting && !n.bend.namesLaterOnes {
			break
		}
		if p == own && !n.bend.namesItself {
			continue
		}
		if n.clash(rs, p.has) {
			found = append(found, p)
		}
	}
	return found
}

func (n *naive) TryLock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Held, error) {
	return n.acquire(ctx, []lock.Request{r}, o, false)
}

func (n *naive) Lock(ctx context.Context, r lock.Request, o *lock.Options) (*lock.Held, error) {
	return n.acquire(ctx, []lock.Request{r}, o, true)
}

func (n *naive) TryLockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Held, error) {
	return n.acquire(ctx, rs, o, false)
}

func (n *naive) LockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Held, error) {
	if n.bend.listsOneByOne {
		return n.oneByOne(ctx, rs, o)
	}
	return n.acquire(ctx, rs, o, true)
}

func (n *naive) acquire(ctx context.Context, rs []lock.Request, o *lock.Options, wait bool) (*lock.Held, error) {
	asked, err := lock.Normalize(rs)
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = new(lock.Options)
	}
	if err := validTexts(o); err != nil && !n.bend.textsUnchecked {
		return nil, err
	}
	if ctx.Err() != nil && !(n.bend.triesInVain && !wait) {
		return nil, given(ctx)
	}
	if n.bend.listAsWritten {
		asked = slices.Clone(rs)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.known(o.ID); p != nil {
		if h, done, err := n.again(ctx, p, asked, o, wait); done {
			return h, err
		}
	}
	n.pause(n.bend.looksThenTakesID)
	var temporary *place
	if n.bend.marksNodes && !asked[0].Path.IsRoot() {
		temporary = n.mark(asked[0], o)
	}
	blocked := n.inTheWay(asked, temporary)
	n.drop(temporary)
	switch {
	case n.bend.tryBarges && !wait, n.bend.lockBarges && wait:
		blocked = slices.DeleteFunc(blocked, func(p *place) bool { return p.waiting })
	case n.bend.queueBlocksAll && n.waiting() > 0:
		blocked = slices.Clone(n.all)
	}
	n.pause(n.bend.looksThenTakes)
	full := n.c.MaxWaiters > 0 && n.waiting() >= n.c.MaxWaiters
	switch {
	case len(blocked) > 0 && !wait:
		n.rollback(asked, o)
		return nil, n.refusal(asked, o, blocked, lock.ErrConflict)
	case len(blocked) > 0 && full && !n.bend.endlessQueue:
		return nil, n.refusal(asked, o, blocked, lock.ErrQueueFull)
	}
	p := n.enter(asked, o)
	if len(blocked) == 0 {
		n.grant(p)
		p.handles++
		if n.bend.endsWithContext {
			context.AfterFunc(ctx, func() { _ = p.Unlock(context.Background()) })
		}
		return p.held, nil
	}
	p.waiting, p.granted, p.waiters = true, make(chan struct{}), 1
	return n.wait(ctx, p)
}

func (n *naive) known(id string) *place {
	for _, p := range n.all {
		if id != "" && p.o.ID == id && !p.leaving && !n.bend.idsAreNotKnown {
			return p
		}
	}
	return nil
}

// again is a repeated id; done is false if the acquisition goes on.
func (n *naive) again(ctx context.Context, p *place, asked []lock.Request, o *lock.Options, wait bool) (*lock.Held, bool, error) {
	switch {
	case n.bend.idWhatever && !p.waiting:
	case !slices.Equal(p.asked, asked), !p.waiting && !allAtLeast(p.has, asked):
		return nil, true, n.refusal(asked, o, []*place{p}, lock.ErrIDInUse)
	case p.waiting && n.bend.waitingIDQueues:
		return nil, false, nil
	case p.waiting && !wait:
		return nil, true, n.refusal(asked, o, n.inTheWay(asked, p), lock.ErrConflict)
	case p.waiting:
		p.waiters++
		h, err := n.wait(ctx, p)
		return h, true, err
	}
	p.handles++
	return p.held, true, nil
}

func (n *naive) enter(rs []lock.Request, o *lock.Options) *place {
	p := &place{n: n, o: *o, asked: rs, has: slices.Clone(rs), since: time.Now()}
	p.held, p.lose = lock.NewHeld(p)
	n.all = append(n.all, p)
	if n.bend.nodesStay {
		n.kept++
	}
	return p
}

// wait is called with the mutex held, and returns so.
func (n *naive) wait(ctx context.Context, p *place) (*lock.Held, error) {
	n.mu.Unlock()
	returned := false
	defer func() {
		if !returned { // a method of the context has panicked
			n.mu.Lock()
			if !n.bend.panicsStay {
				n.leave(p)
			}
		}
	}()
	select {
	case <-p.granted:
	case <-ctx.Done():
	}
	why := given(ctx)
	n.mu.Lock()
	returned = true
	if why == nil {
		p.waiters--
		p.handles++
		return p.held, nil
	}
	var err error = n.refusal(p.asked, &p.o, n.inTheWay(p.asked, p), why)
	if n.bend.waitsNameNobody {
		err = why
	}
	n.leave(p)
	return nil, err
}

// leave ends a call's wait, and the place with the last of them.
func (n *naive) leave(p *place) {
	p.waiters--
	switch {
	case p.gone:
	case (p.waiters > 0 || p.handles > 0) && !n.bend.oneCallIsAll:
	case n.bend.cancelledStay && p.waiting:
	case n.bend.cancelledKeepGrant && !p.waiting:
	case n.bend.cancelsTheFirst && p.waiting:
		i := slices.IndexFunc(n.all, func(p *place) bool { return p.waiting })
		n.drop(n.all[i])
	default:
		n.drop(p)
	}
}

func (n *naive) grant(p *place) {
	p.waiting, p.token, p.since = false, n.next(p.has), time.Now()
}

func (n *naive) next(rs []lock.Request) lock.Token {
	n.entries++
	if n.bend.tokensRepeat && n.entries%3 == 0 && n.token > 0 {
		return n.token
	}
	if n.bend.tokensByPath {
		if n.byPath == nil {
			n.byPath = map[lock.Path]lock.Token{}
		}
		n.byPath[rs[0].Path]++
		n.token = max(n.token, n.byPath[rs[0].Path])
		return n.byPath[rs[0].Path]
	}
	n.token++
	return n.token
}

// drop takes a place out and grants what waited for nothing else.
func (n *naive) drop(p *place) {
	if p == nil || p.gone {
		return
	}
	p.gone = true
	n.all = slices.DeleteFunc(n.all, func(other *place) bool { return other == p })
	n.wake()
}

func (n *naive) wake() {
	list := slices.Clone(n.all)
	if n.bend.lastFirst {
		slices.Reverse(list)
	}
	for _, p := range list {
		if !p.waiting {
			continue
		}
		blocked := n.inTheWay(p.has, p)
		if n.bend.lastFirst {
			blocked = slices.DeleteFunc(blocked, func(p *place) bool { return p.waiting })
		}
		if len(blocked) > 0 {
			continue
		}
		n.grant(p)
		if n.bend.grantedKeepNode {
			n.kept++
		}
		close(p.granted)
		if n.bend.grantsOne {
			return
		}
	}
}

func (n *naive) waiting() (count int) {
	for _, p := range n.all {
		if p.waiting {
			count++
		}
	}
	return count
}

func (n *naive) refusal(rs []lock.Request, o *lock.Options, blocked []*place, why error) *lock.ConflictError {
	e := &lock.ConflictError{Requests: rs, Err: why}
	for _, p := range blocked {
		for _, r := range p.has {
			if !n.clash(rs, []lock.Request{r}) && !errors.Is(why, lock.ErrIDInUse) && !n.bend.queueBlocksAll {
				continue
			}
			if len(e.Holders) == cmp.Or(n.c.MaxHolders, 16) || n.bend.namesOne && len(e.Holders) == 1 {
				e.More = !n.bend.moreIsNotSaid && !n.bend.namesOne
				return e
			}
			h := n.describe(p, r)
			h.Mine = p.o.Owner == o.Owner && (o.Owner != "" || n.bend.nobodyIsMine)
			e.Holders = append(e.Holders, h)
		}
	}
	if n.bend.namesNobody {
		e.Holders = nil
	}
	return e
}

func (n *naive) describe(p *place, r lock.Request) lock.Holder {
	return lock.Holder{
		Path: r.Path, Mode: r.Mode, Waiting: p.waiting, Token: p.token, Since: p.since,
		ID: p.o.ID, Owner: p.o.Owner, Reason: p.o.Reason,
	}
}

// given is the error of a context that has ended.
func given(ctx context.Context) error { return errors.Join(ctx.Err(), context.Cause(ctx)) }

func validTexts(o *lock.Options) error {
	// The tree does it the same way; it is no part of what a driver may use.
	_, err := new(lock.Tree).TryLock(context.Background(), lock.Request{Path: lock.Root(), Mode: lock.IS}, o)
	return err
}
