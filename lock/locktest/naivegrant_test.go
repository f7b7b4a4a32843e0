package locktest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lock"
)

func (p *place) Requests() []lock.Request {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.gone && p.n.fault == "a released grant has no requests" {
		return nil
	}
	if p.n.fault == "Requests returns the list of the locker" {
		return p.has
	}
	return slices.Clone(p.has)
}

func (p *place) Token() lock.Token {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return p.token
}

func (p *place) Check() error {
	if !p.n.shaky || p.n.fault != "a session is not renewed" {
		return nil
	}
	p.n.mu.Lock()
	age := time.Since(p.since)
	p.n.mu.Unlock()
	if age < naiveTTL {
		return nil
	}
	p.end()
	return &lock.LostError{Token: p.Token(), Err: lock.ErrLost}
}

func (p *place) Unlock(ctx context.Context) error {
	n := p.n
	if n.fault == "Unlock needs a live context" && ctx.Err() != nil {
		return ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault == "Unlock releases all of the owner" && !p.gone {
		for _, other := range slices.Clone(n.all) {
			if other != p && other.o.Owner == p.o.Owner {
				n.drop(other)
			}
		}
	}
	if i := slices.IndexFunc(n.all, p.like); i >= 0 && n.fault == "Unlock finds its grant by owner and requests" {
		p = n.all[i]
	}
	was := p.gone
	n.pause("Unlock is checked, then done")
	if p.gone && (n.fault == "a second Unlock releases another grant" || n.fault == "Unlock is checked, then done" && !was) {
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

// like reports whether another place has the same options and requests.
func (p *place) like(other *place) bool { return other.o == p.o && slices.Equal(other.has, p.has) }

// end loses the grant.
func (p *place) end() {
	if p.n.fault == "a lost grant is given away before it is announced" {
		_ = p.Unlock(context.Background())
		time.Sleep(time.Millisecond)
	}
	p.lose(&lock.LostError{Token: p.Token(), Err: lock.ErrLost})
	_ = p.Unlock(context.Background())
	if p.n.fault == "tokens start again after a loss" {
		p.n.mu.Lock()
		p.n.token = 0
		p.n.mu.Unlock()
	}
}

// lossy makes a conversion that may lose the grant.
func (p *place) lossy(convert func(context.Context, lock.Mode) error, ctx context.Context, m lock.Mode) error {
	if !p.n.shaky || rand.IntN(5) > 0 {
		return convert(ctx, m)
	}
	if rand.IntN(2) == 0 {
		_ = convert(ctx, m)
	}
	runtime.Gosched()
	p.end()
	return errNoAnswer
}

func (p *place) Upgrade(ctx context.Context, m lock.Mode) error { return p.lossy(p.upgrade, ctx, m) }

func (p *place) Downgrade(ctx context.Context, m lock.Mode) error {
	return p.lossy(p.downgrade, ctx, m)
}

func (p *place) upgrade(ctx context.Context, m lock.Mode) error {
	n := p.n
	if ctx.Err() != nil {
		return lock.Ended(ctx)
	}
	if n.fault == "an upgrade panics" {
		panic(n.fault)
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
		if n.fault == "an upgrade replaces the mode" {
			raised[i].Mode = m
		}
		if raised[i] != p.has[i] || n.fault == "an upgrade asks for all requests again" {
			asked = append(asked, raised[i])
		}
	}
	for blocked := n.blockers(asked, p); len(blocked) > 0; blocked = n.blockers(asked, p) {
		if n.fault == "an upgrade waits" && ctx.Err() == nil {
			n.mu.Unlock()
			time.Sleep(time.Millisecond)
			n.mu.Lock()
			continue
		}
		if n.fault == "a refused upgrade is not undone" {
			p.has = raised
		}
		return n.refusal(asked, blocked, lock.ErrConflict)
	}
	n.pause("an upgrade is checked, then granted")
	_ = n.meet(context.Background(), "an upgrade writes a released grant")
	if p.gone && n.fault == "an upgrade writes a released grant" {
		n.all = append(n.all, p)
	}
	if slices.Equal(raised, p.has) && n.fault != "an upgrade of nothing has a new token" {
		return nil
	}
	p.has = raised
	if n.fault != "an upgrade keeps its token" {
		p.former, p.token = p.token, n.nextToken(p.has)
	}
	p.since = time.Now()
	return n.meet(ctx, "a conversion that is cancelled in flight has its effect")
}

func (p *place) downgrade(ctx context.Context, m lock.Mode) error {
	n := p.n
	if ctx.Err() != nil {
		return lock.Ended(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.gone {
		return lock.ErrNotHeld
	}
	for _, r := range p.has {
		if !r.Mode.Covers(m) && n.fault != "a downgrade raises" {
			if n.fault == "a bad downgrade lowers the first request" && p.has[0].Mode.Covers(m) {
				p.has[0].Mode = m
			}
			return &lock.InvalidError{What: "mode", Value: m.String(), Reason: "is not weaker than " + r.String()}
		}
	}
	if n.fault == "a downgrade returns before its effect" {
		time.AfterFunc(effectLater, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			p.lower(m)
		})
		return nil
	}
	p.lower(m)
	return nil
}

// effectLater is how long after its return a call has its effect if that is planted.
const effectLater = 50 * time.Millisecond

func (p *place) lower(m lock.Mode) {
	p.has = slices.Clone(p.has)
	for i := range p.has {
		p.has[i].Mode = m
	}
	if p.n.fault != "a downgrade wakes no waiter" {
		p.n.wake()
	}
}

func (n *naive) Holders(ctx context.Context, p lock.Path, s lock.Scope) ([]lock.Holder, error) {
	// The Tree checks the same arguments.
	if _, err := new(lock.Tree).Holders(ctx, p, s); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []lock.Holder
	for _, other := range n.all {
		if n.fault == "Holders does not list the latest grant at once" && time.Since(other.since) < time.Minute {
			continue
		}
		for _, r := range other.has {
			if scopeOf(r.Path, p)&s != 0 && !(other.waiting && n.fault == "Holders lists no waiters") {
				found = append(found, other.holder(r))
			}
		}
	}
	return found, nil
}

func (n *naive) Snapshot(ctx context.Context) (lock.Snapshot, error) {
	if ctx.Err() != nil && n.fault != "Snapshot ignores its context" {
		return lock.Snapshot{}, lock.Ended(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := lock.Snapshot{Nodes: len(n.all) + n.kept, LastToken: n.token}
	list := slices.Clone(n.all)
	_ = n.meet(ctx, "a snapshot is of two moments")
	for _, p := range list {
		for _, r := range p.has {
			s.Holders = append(s.Holders, p.holder(r))
		}
		switch {
		case p.waiting:
			s.Waiting++
		case n.fault == "a list counts its requests":
			s.Held += len(p.has)
		default:
			s.Held++
		}
	}
	switch n.fault {
	case "a snapshot is of two moments":
		s.Waiting = n.waiting()
	case "a snapshot lists no holders":
		s.Holders = nil
	case "a snapshot has no last token":
		s.LastToken = 0
	}
	return s, nil
}

// meet gives the context of a call time to end if the fault is planted, and returns the error of
// the context then.
func (n *naive) meet(ctx context.Context, fault string) error {
	if n.fault != fault {
		return nil
	}
	n.mu.Unlock()
	time.Sleep(3 * time.Millisecond) // timers may be a millisecond late
	n.mu.Lock()
	if ctx.Err() != nil {
		return lock.Ended(ctx)
	}
	return nil
}

// keepID keeps an id in use if the fault is planted.
func (n *naive) keepID(fault, id string) {
	if n.fault == fault && id != "" {
		n.keptIDs = map[string]bool{id: true}
	}
}

// holding returns the place that holds a token.
func (n *naive) holding(token lock.Token) *place {
	for _, p := range n.all {
		former := n.fault == "Break takes the token before an upgrade" && p.former == token
		if !p.waiting && (p.token == token || former) && !p.leaving {
			return p
		}
	}
	return nil
}

func (n *naive) Revoke(ctx context.Context, token lock.Token, reason string) error {
	if err := n.checkOperator(ctx, reason); err != nil {
		return err
	}
	n.mu.Lock()
	p := n.holding(token)
	n.mu.Unlock()
	if p == nil {
		return lock.ErrNotHeld
	}
	lose := func() { p.lose(&lock.LostError{Token: token, Reason: reason, Err: lock.ErrRevoked}) }
	if n.fault == "Revoke returns before its effect" {
		time.AfterFunc(effectLater, lose)
		return nil
	}
	lose()
	if n.fault == "Revoke releases" {
		return p.Unlock(ctx)
	}
	return nil
}

func (n *naive) Break(ctx context.Context, token lock.Token, reason string) error {
	if err := n.checkOperator(ctx, reason); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.holding(token)
	switch {
	case p == nil && n.fault == "Break of an unknown token succeeds":
		return nil
	case p == nil:
		return lock.ErrNotHeld
	}
	if n.fault == "a loss has no reason" {
		reason = ""
	}
	p.leaving = true
	n.keepID("a broken grant keeps its id", p.o.ID)
	if n.fault == "Break grants before it announces" {
		n.drop(p)
	}
	n.mu.Unlock() // lose ends contexts
	if n.fault == "Break grants before it announces" {
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

func (n *naive) checkOperator(ctx context.Context, reason string) error {
	if ctx.Err() != nil {
		return lock.Ended(ctx)
	}
	if n.fault == "the reason of an operator is not checked" {
		return nil
	}
	return (&lock.Options{Reason: reason}).Validate()
}
