package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// player runs the steps of scripts, vectors and random sequences. It makes each
// call, compares the answer with that of the oracle, and compares everything that
// the locker shows with what the oracle holds.
type player struct {
	*env
	systems map[string]*system
}

// system is one locker with its oracle.
type system struct {
	*player
	l       lock.Locker
	oracle  oracle
	clients map[string]*claim // of the last request that was granted or waits
	claims  []*claim          // all of them
	tokens  []issued
}

// issued is a token and the requests that it was granted for.
type issued struct {
	token lock.Token
	rs    []lock.Request
}

func newPlayer(e *env) *player { return &player{env: e, systems: map[string]*system{}} }

func (p *player) system(name string) *system {
	if p.systems[name] == nil {
		l := p.l // of the environment
		if len(p.systems) > 0 {
			l = p.fresh()
		}
		p.systems[name] = &system{
			player: p, l: l, oracle: oracle{maxWaiters: p.config.MaxWaiters}, clients: map[string]*claim{},
		}
	}
	return p.systems[name]
}

// play runs the steps. At the end it cancels all waits, releases all grants, and
// requires that the lockers are idle.
func (p *player) play(steps []step) error {
	for i, s := range steps {
		if err := p.system(s.system).take(s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s, err)
		}
	}
	for _, sys := range p.systems {
		for len(sys.oracle.present) > 0 {
			c := sys.oracle.present[len(sys.oracle.present)-1]
			op := "unlock"
			if c.waiting {
				op = "cancel"
			}
			sys.clients["the suite"] = c
			if err := sys.take(step{client: "the suite", op: op}); err != nil {
				return fmt.Errorf("at the end, %s of %s: %w", op, c.has, err)
			}
		}
	}
	return nil
}

// take makes one call and compares.
func (sys *system) take(s step) error {
	a, err := sys.do(s)
	switch {
	case err != nil:
		return err
	case s.want != "" && s.want != a.kind:
		return fmt.Errorf("the answer is %q, not %q", a.kind, s.want)
	case s.names != nil && !slices.Equal(sorted(s.names), sorted(ownersOf(a.holders))):
		return fmt.Errorf("the answer names %q, not %q", ownersOf(a.holders), s.names)
	}
	granted, err := sys.compare()
	if err == nil && s.want != "" && !slices.Equal(granted, s.granted) {
		return fmt.Errorf("the step grants %q, not %q", granted, s.granted)
	}
	return err
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// ownersOf returns the clients of holders; the anonymous client is "-".
func ownersOf(holders []lock.Holder) (owners []string) {
	for _, h := range holders {
		owners = append(owners, cmp.Or(h.Owner, "-"))
	}
	return owners
}

// do makes the call and compares its answer with that of the oracle, which it
// returns.
func (sys *system) do(s step) (answer, error) {
	switch s.op {
	case "try", "lock":
		if c := sys.clients[s.client]; s.random && c != nil && slices.Contains(sys.oracle.present, c) {
			return answer{kind: "ok"}, nil
		}
		return sys.acquire(s)
	case "holders":
		return answer{kind: "ok"}, sys.holders(s.path)
	case "count", "idle":
		return answer{kind: "ok"}, sys.count(s)
	}
	c := sys.clients[s.client]
	if s.op == "cancel" {
		return sys.cancel(c)
	}
	if c == nil || len(c.grants) == 0 {
		return answer{kind: "not-held"}, nil // there is nothing to call
	}
	if s.bad {
		return answer{kind: "invalid"}, nil // there is no mode to convert to
	}
	g, a, err := c.grants[len(c.grants)-1], answer{kind: "ok"}, error(nil)
	op := s.op
	if op == "convert" {
		op = "upgrade"
		if allAtLeast(c.has, s.mode) {
			op = "downgrade"
		}
	}
	switch op {
	case "unlock":
		return sys.unlock(c, g)
	case "check":
		a.kind = kindOf(c.fault) // compare checks it
		return a, nil
	case "upgrade":
		a = sys.oracle.upgrade(c, s.mode)
		call := sys.begin(s.String(), func(ctx context.Context) (*lock.Grant, error) { return nil, g.Upgrade(ctx, s.mode) })
		if err := sys.wait(call); err != nil {
			return a, err
		}
		err = a.compare(call.err)
		if err == nil && a.kind == "ok" && len(a.requests) > 0 {
			err = sys.issue(c, g.Token())
		}
	case "downgrade":
		a = sys.oracle.downgrade(c, s.mode)
		err = a.compare(g.Downgrade(sys.Context(), s.mode))
	case "revoke", "break":
		a, err = sys.takeAway(c, op)
	}
	return a, err
}

// acquire makes a try or a lock.
func (sys *system) acquire(s step) (answer, error) {
	if s.bad || len(s.rs) == 0 {
		_, err := tryLock(sys.Context(), sys.l, nil, nil)
		return answer{kind: "invalid"}, answer{kind: "invalid"}.compare(err)
	}
	o := lock.Options{ID: s.id, Owner: s.client, Reason: "reason of " + s.client}
	if s.client == "-" {
		o = lock.Options{ID: s.id}
	}
	try, wait := sys.l.TryLockAll, sys.l.LockAll
	if !s.list {
		try = func(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
			return sys.l.TryLock(ctx, rs[0], o)
		}
		wait = func(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
			return sys.l.Lock(ctx, rs[0], o)
		}
	}
	asked := canonical(s.rs)
	a := sys.oracle.acquire(o, asked, s.op == "lock")
	if s.op == "try" {
		g, err := try(sys.Context(), s.rs, &o)
		return a, sys.received(s, a, g, err)
	}
	if a.kind == "waiting" && s.id == "" {
		// A try is refused for the same holders and has no effect.
		_, err := try(sys.Context(), s.rs, &o)
		if err := refusal("conflict", asked, slices.Clone(a.holders), o.Owner).compare(err); err != nil {
			return a, fmt.Errorf("a try before the wait: %w", err)
		}
	}
	c := sys.begin(s.String(), func(ctx context.Context) (*lock.Grant, error) { return wait(ctx, s.rs, &o) })
	if a.kind == "waiting" {
		a.claim.calls = append(a.claim.calls, c)
		sys.keep(s.client, a.claim)
		return a, nil
	}
	if err := sys.wait(c); err != nil {
		return a, err
	}
	return a, sys.received(s, a, c.grant, c.err)
}

// received compares the result of an acquisition and keeps its grant.
func (sys *system) received(s step, a answer, g *lock.Grant, err error) error {
	if err := a.compare(err); err != nil || a.kind != "ok" {
		return err
	}
	sys.keep(s.client, a.claim)
	return sys.addGrant(a.claim, g)
}

func (sys *system) keep(client string, c *claim) {
	sys.clients[client] = c
	if !slices.Contains(sys.claims, c) {
		sys.claims = append(sys.claims, c)
	}
}

// addGrant adds a grant of a claim. The first one has a new token.
func (sys *system) addGrant(c *claim, g *lock.Grant) error {
	if g == nil {
		return errors.New("the call returned neither a grant nor an error")
	}
	if c.token == 0 {
		if err := sys.issue(c, g.Token()); err != nil {
			return err
		}
	}
	work, cancel := g.Context(sys.Context())
	sys.Cleanup(cancel)
	c.grants, c.works = append(c.grants, g), append(c.works, work)
	return nil
}

// issue gives a claim its token, which must be greater than those of all earlier
// grants that conflict, and than its own before, and unlike all others.
func (sys *system) issue(c *claim, token lock.Token) error {
	for _, t := range sys.tokens {
		if t.token == token || t.token > token && conflict(t.rs, c.has) {
			return fmt.Errorf("%s is granted with token %d after %s with token %d", c.has, token, t.rs, t.token)
		}
	}
	if token <= c.token {
		return fmt.Errorf("the token of %s changes from %d to %d", c.has, c.token, token)
	}
	c.token = token
	sys.tokens = append(sys.tokens, issued{token, c.has})
	return nil
}

func (sys *system) unlock(c *claim, g *lock.Grant) (answer, error) {
	a, want := answer{kind: "ok"}, error(nil)
	switch c.fault {
	case lock.ErrNotHeld:
		a.kind = "not-held" // Unlock itself returns nil
	case lock.ErrLost:
		a.kind, want = "lost", lock.ErrLost
	default:
		sys.oracle.end(c, lock.ErrNotHeld)
	}
	if err := g.Unlock(sys.Context()); !errors.Is(err, want) {
		return a, fmt.Errorf("unlock of %s: %w", c.has, err)
	}
	return a, nil
}

// cancel ends the last call that waits for a claim.
func (sys *system) cancel(c *claim) (answer, error) {
	if c == nil || len(c.calls) == 0 {
		return answer{kind: "not-held"}, nil
	}
	last := len(c.calls) - 1
	call := c.calls[last]
	c.calls = c.calls[:last]
	call.cancel(errCancelled)
	if err := sys.wait(call); err != nil {
		return answer{}, err
	}
	refused := refusal("cancelled", c.asked, sys.oracle.blockers(c.has, c), c.options.Owner)
	if err := refused.compare(call.err); err != nil {
		return refused, err
	}
	if !errors.Is(call.err, context.Canceled) {
		return refused, fmt.Errorf("the error does not match context.Canceled: %w", call.err)
	}
	if last == 0 {
		sys.oracle.end(c, lock.ErrNotHeld)
	}
	return answer{kind: "ok"}, nil
}

// takeAway revokes or breaks the claim's token.
func (sys *system) takeAway(c *claim, op string) (answer, error) {
	do, reason := sys.l.Break, "reason of "+op
	if op == "revoke" {
		do = sys.l.Revoke
	}
	err := do(sys.Context(), c.token, reason)
	if c.fault == lock.ErrNotHeld || c.fault == lock.ErrLost {
		a := answer{kind: "not-held"}
		return a, a.compare(err)
	}
	if op == "break" {
		sys.oracle.end(c, lock.ErrLost)
	} else {
		c.fault = lock.ErrRevoked
	}
	c.revoked, c.reason = true, reason
	return answer{kind: "ok"}, answer{kind: "ok"}.compare(err)
}
