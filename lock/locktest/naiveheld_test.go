package locktest

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lock"
)

func (p *place) Requests() []lock.Request {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.gone && p.n.bend.forgetsRequests {
		return nil
	}
	return slices.Clone(p.has)
}

func (p *place) Token() lock.Token {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return p.token
}

func (p *place) Check() error { return nil }

func (p *place) Unlock(ctx context.Context) error {
	n := p.n
	if n.bend.unlockNeedsContext && ctx.Err() != nil {
		return ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bend.unlockByOwner {
		for _, other := range slices.Clone(n.all) {
			if !p.gone && other != p && other.o.Owner == p.o.Owner {
				n.drop(other)
			}
		}
	}
	was := p.gone
	n.pause(n.bend.unlockTwiceAtOnce)
	if p.gone && (n.bend.unlockTwice || n.bend.unlockTwiceAtOnce && !was) {
		// Whoever holds the same by now.
		for _, other := range n.all {
			if !other.waiting && slices.Equal(other.has, p.has) {
				n.drop(other)
				return nil
			}
		}
	}
	n.drop(p)
	return nil
}

func (p *place) Upgrade(ctx context.Context, m lock.Mode) error {
	n := p.n
	if ctx.Err() != nil {
		return given(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.gone {
		return lock.ErrNotHeld
	}
	raised := slices.Clone(p.has)
	var asked []lock.Request
	for i := range raised {
		raised[i].Mode = lock.Join(raised[i].Mode, m)
		if n.bend.upgradesReplace {
			raised[i].Mode = m
		}
		if raised[i] != p.has[i] {
			asked = append(asked, raised[i])
		}
	}
	for blocked := n.inTheWay(asked, p); len(blocked) > 0; blocked = n.inTheWay(asked, p) {
		if n.bend.upgradesWait && ctx.Err() == nil {
			n.mu.Unlock()
			time.Sleep(time.Millisecond)
			n.mu.Lock()
			continue
		}
		if n.bend.upgradesStay {
			p.has = raised
		}
		return n.refusal(asked, &p.o, blocked, lock.ErrConflict)
	}
	n.pause(n.bend.looksThenRaises)
	if slices.Equal(raised, p.has) {
		return nil
	}
	p.has = raised
	if !n.bend.upgradesKeepToken {
		p.token = n.next(p.has)
	}
	p.since = time.Now()
	return nil
}

func (p *place) Downgrade(ctx context.Context, m lock.Mode) error {
	n := p.n
	if ctx.Err() != nil {
		return given(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.gone {
		return lock.ErrNotHeld
	}
	for _, r := range p.has {
		if !r.Mode.Covers(m) && !n.bend.downgradesRaise {
			return &lock.InvalidError{What: "mode", Value: m.String(), Reason: "is not weaker than " + r.String()}
		}
	}
	p.has = slices.Clone(p.has)
	for i := range p.has {
		p.has[i].Mode = m
	}
	if !n.bend.downgradesSleep {
		n.wake()
	}
	return nil
}

func (n *naive) Holders(ctx context.Context, p lock.Path, s lock.Scope) ([]lock.Holder, error) {
	if err := validScope(p, s); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, given(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []lock.Holder
	for _, other := range n.all {
		for _, r := range other.has {
			above, below := r.Path.Covers(p), p.Covers(r.Path)
			at := above && below
			in := at && s&lock.At != 0 || above && !at && s&lock.Above != 0 || below && !at && s&lock.Below != 0
			if in && !(n.bend.waitersHide && other.waiting) {
				found = append(found, n.describe(other, r))
			}
		}
	}
	return found, nil
}

func validScope(p lock.Path, s lock.Scope) error {
	_, err := new(lock.Tree).Holders(context.Background(), p, s)
	return err
}

func (n *naive) Snapshot(ctx context.Context) (lock.Snapshot, error) {
	if ctx.Err() != nil {
		return lock.Snapshot{}, given(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := lock.Snapshot{Nodes: len(n.all) + n.kept, LastToken: n.token}
	for _, p := range n.all {
		for _, r := range p.has {
			s.Holders = append(s.Holders, n.describe(p, r))
		}
		switch {
		case p.waiting:
			s.Waiting++
		case n.bend.countsMembers:
			s.Held += len(p.has)
		default:
			s.Held++
		}
	}
	return s, nil
}

// holder returns who holds by a token.
func (n *naive) holder(token lock.Token) *place {
	for _, p := range n.all {
		if !p.waiting && p.token == token && !p.leaving {
			return p
		}
	}
	return nil
}

func (n *naive) Revoke(ctx context.Context, token lock.Token, reason string) error {
	if ctx.Err() != nil {
		return given(ctx)
	}
	n.mu.Lock()
	p := n.holder(token)
	n.mu.Unlock()
	if p == nil {
		return lock.ErrNotHeld
	}
	p.lose(&lock.LostError{Token: token, Reason: reason, Err: lock.ErrRevoked})
	if n.bend.revokeTakes {
		return p.Unlock(ctx)
	}
	return nil
}

func (n *naive) Break(ctx context.Context, token lock.Token, reason string) error {
	if ctx.Err() != nil {
		return given(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.holder(token)
	switch {
	case p == nil && n.bend.breaksNobody:
		return nil
	case p == nil:
		return lock.ErrNotHeld
	}
	if n.bend.reasonIsLost {
		reason = ""
	}
	p.leaving = true
	if n.bend.tellsLate {
		n.drop(p)
	}
	// Not under the mutex: contexts end in it.
	n.mu.Unlock()
	if n.bend.tellsLate {
		time.Sleep(time.Millisecond)
	}
	first := p.lose(&lock.LostError{Token: token, Reason: reason, Err: lock.ErrLost})
	n.mu.Lock()
	if !first {
		return lock.ErrNotHeld
	}
	n.drop(p)
	return nil
}

// pause lets others in between, where a fault does.
func (n *naive) pause(bent bool) {
	if bent {
		n.mu.Unlock()
		for range 3 {
			runtime.Gosched()
		}
		n.mu.Lock()
	}
}
