package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// system is one locker with its oracle. It makes each call of a sequence, compares the
// answer with that of the oracle, and compares everything that the locker shows with what
// the oracle holds.
type system struct {
	*env
	l       lock.Locker
	oracle  oracle
	clients map[string]*claim // of the last request that was granted or waits
	claims  []*claim          // all of them
	tokens  []issued
	fence   lock.Fence
}

// issued is a token and the requests that it was granted for.
type issued struct {
	token lock.Token
	rs    []lock.Request
}

// system returns the system with a name. The first one has the locker of the environment.
func (e *env) system(systems map[string]*system, name string) *system {
	if systems[name] == nil {
		l := e.l
		if len(systems) > 0 {
			l = e.fresh()
		}
		systems[name] = &system{env: e, l: l, oracle: oracle{maxWaiters: e.config.MaxWaiters}, clients: map[string]*claim{}}
	}
	return systems[name]
}

// play runs the steps of a script, a vector or a random sequence. At the end it cancels all
// waits, releases all grants, and requires that the lockers are idle.
func (e *env) play(steps []step) error {
	systems := map[string]*system{}
	for i, s := range steps {
		var err error
		switch {
		case !slices.Contains(operations, s.Op):
			err = errors.New("the operation is unknown")
		case s.Op == "count", s.Op == "idle":
			err = s.count(systems)
		default:
			err = e.system(systems, s.System).take(s)
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s, err)
		}
	}
	for _, sys := range systems {
		if err := sys.release(); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
	}
	return nil
}

// count compares a stated count with the oracles of a system or of all, which agree with the
// lockers after every other step. Idle is a count of nothing.
func (s *step) count(systems map[string]*system) error {
	held, waiting := 0, 0
	for name, sys := range systems {
		if s.System == "" || s.System == name {
			h, w := sys.oracle.counts()
			held, waiting = held+h, waiting+w
		}
	}
	if held != s.Held || waiting != s.Waiting {
		return fmt.Errorf("%d are held and %d wait, not %d and %d", held, waiting, s.Held, s.Waiting)
	}
	return nil
}

// release cancels all waits and releases all grants, the last first.
func (sys *system) release() error {
	for len(sys.oracle.present) > 0 {
		c := sys.oracle.present[len(sys.oracle.present)-1]
		s := step{Client: "the suite", Op: "unlock", random: true}
		if c.waiting {
			s.Op = "cancel"
		}
		sys.clients[s.Client] = c
		if err := sys.take(s); err != nil {
			return fmt.Errorf("%s of %s: %w", s.Op, c.has, err)
		}
	}
	return nil
}

// take makes one call and compares.
func (sys *system) take(s step) error {
	a, err := sys.do(s)
	want := cmp.Or(s.Want, "ok")
	switch {
	case err != nil:
		return err
	case !s.random && want != a.kind:
		return fmt.Errorf("the answer is %q, not %q", a.kind, want)
	case s.With != nil && !slices.Equal(sorted(s.With), sorted(ownersOf(a.holders))):
		return fmt.Errorf("the answer names %q, not %q", ownersOf(a.holders), s.With)
	}
	granted, err := sys.compare()
	if err == nil && !s.random && !slices.Equal(granted, s.Granted) {
		return fmt.Errorf("the step grants %q, not %q", granted, s.Granted)
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
	c := sys.clients[s.Client]
	switch {
	case s.Op == "holders":
		return answer{kind: "ok"}, sys.holders(s.Path)
	case s.Op == "try", s.Op == "lock":
		if s.random && c != nil && slices.Contains(sys.oracle.present, c) {
			return answer{kind: "ok"}, nil
		}
		return sys.acquire(s)
	case s.Op == "cancel":
		return sys.cancel(c)
	case c == nil || len(c.grants) == 0:
		return answer{kind: "not-held"}, nil // there is nothing to call
	}
	g := c.grants[len(c.grants)-1]
	switch s.Op {
	case "unlock":
		return sys.unlock(c, g)
	case "check":
		return answer{kind: kindOf(c.fault)}, nil // compare checks it
	case "admit":
		return answer{kind: kindOf(sys.fence.Admit(g.Token()))}, nil
	case "revoke", "break":
		return sys.takeAway(c, s.Op)
	}
	return sys.convert(c, g, s)
}

// convert upgrades or downgrades a grant.
func (sys *system) convert(c *claim, g *lock.Grant, s step) (answer, error) {
	mode, err := lock.ParseMode(s.Mode)
	if err != nil {
		return answer{kind: "invalid"}, nil // there is no mode to convert to
	}
	if s.Op == "downgrade" || s.Op == "convert" && allCover(c.has, mode) {
		a := sys.oracle.downgrade(c, mode)
		return a, sys.matches(a, g.Downgrade(sys.Context(), mode))
	}
	before, a := c.token, sys.oracle.upgrade(c, mode)
	call := sys.begin(s.String(), func(ctx context.Context) (*lock.Grant, error) { return nil, g.Upgrade(ctx, mode) })
	if err := sys.wait(call); err != nil {
		return a, err
	}
	err = sys.matches(a, call.err)
	if err == nil && a.kind == "ok" && len(a.requests) > 0 {
		err = cmp.Or(sys.issue(c, g.Token()), sys.notHeld(before))
	}
	return a, err
}

// acquire makes a try or a lock.
func (sys *system) acquire(s step) (answer, error) {
	rs, err := s.requests()
	if err != nil || len(rs) == 0 {
		_, err := tryLock(sys.Context(), sys.l, rs, nil)
		return answer{kind: "invalid"}, sys.matches(answer{kind: "invalid"}, err)
	}
	o := lock.Options{ID: s.ID}
	if s.Client != "-" {
		o.Owner, o.Reason = s.Client, "reason of "+s.Client
	}
	asked := canonical(rs)
	a := sys.oracle.acquire(o, asked, s.Op == "lock")
	acquire := lockAll
	if s.Op == "try" {
		acquire = tryLock
	}
	if a.kind == "waiting" && s.ID == "" {
		// A try is refused for the same holders and has no effect.
		_, err := tryLock(sys.Context(), sys.l, rs, &o)
		if err := sys.matches(refusal("conflict", asked, slices.Clone(a.holders), o.Owner), err); err != nil {
			return a, fmt.Errorf("a try before the wait: %w", err)
		}
	}
	c := sys.begin(s.String(), func(ctx context.Context) (*lock.Grant, error) { return acquire(ctx, sys.l, rs, &o) })
	if a.kind == "waiting" {
		a.claim.calls = append(a.claim.calls, c)
		sys.keep(s.Client, a.claim)
		return a, nil
	}
	if err := sys.wait(c); err != nil {
		return a, err
	}
	if err := sys.matches(a, c.err); err != nil || a.kind != "ok" {
		return a, err
	}
	sys.keep(s.Client, a.claim)
	return a, sys.addGrant(a.claim, c.grant)
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
	if token < sys.config.FirstToken {
		return fmt.Errorf("token %d is below FirstToken %d", token, sys.config.FirstToken)
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
	if err := sys.matches(refused, call.err); err != nil {
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
	if c.fault == lock.ErrNotHeld || c.fault == lock.ErrLost {
		return answer{kind: "not-held"}, cmp.Or(sys.notHeld(c.token), sys.notHeld(0))
	}
	do, reason := sys.l.Break, "reason of "+op
	if op == "revoke" {
		do = sys.l.Revoke
		c.fault = lock.ErrRevoked
	} else {
		sys.oracle.end(c, lock.ErrLost)
	}
	c.revoked, c.reason = true, reason
	a := answer{kind: "ok"}
	return a, sys.matches(a, do(sys.Context(), c.token, reason))
}

// notHeld requires that a token that no grant has cannot be taken away.
func (sys *system) notHeld(token lock.Token) error {
	a := answer{kind: "not-held"}
	return cmp.Or(
		sys.matches(a, sys.l.Break(sys.Context(), token, "not held")),
		sys.matches(a, sys.l.Revoke(sys.Context(), token, "not held")),
	)
}
