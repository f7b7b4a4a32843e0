package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// player makes every call of a sequence twice: of a [lock.Tree], which is the
// reference, and of the locker under test. It compares the answers, and after each
// call everything that the two lockers show.
type player struct {
	*env
	l       lock.Locker
	tree    *lock.Tree
	all     []*acquisition          // those that were granted, in this order, and those that wait
	clients map[string]*acquisition // the last one of each client
	tokens  map[lock.Token]issued   // of the Tree, with those of the locker
	fence   lock.Fence
	step    int // counts the calls
}

// acquisition is a try or a lock of both lockers.
type acquisition struct {
	client    string
	want, got *call // of the Tree and of the locker
	granted   bool  // both have returned a grant
}

// issued is a token of the locker, the requests that it was granted for, and the step.
type issued struct {
	token lock.Token
	rs    []lock.Request
	step  int
}

// answer is what the Tree returns for a step.
type answer struct {
	kind  string   // see kindOf
	names []string // the clients that a refusal lists, or that a wait waits for
}

// over reports that nothing is held and nothing waits. A revoked grant holds.
func (a *acquisition) over() bool {
	if !a.want.returned() {
		return false
	}
	return a.want.err != nil || slices.Contains([]string{"not-held", "lost"}, kindOf(a.want.grant.Check()))
}

// token orders acquisitions by the Tree's tokens. Waits are the last.
func (a *acquisition) token() lock.Token {
	if !a.want.returned() {
		return math.MaxUint64
	}
	return a.want.grant.Token()
}

func (e *env) newPlayer() *player {
	return &player{
		env: e, l: e.fresh(),
		tree:    lock.Must(&lock.Config{MaxWaiters: e.config.MaxWaiters, MaxHolders: allHolders}),
		clients: map[string]*acquisition{}, tokens: map[lock.Token]issued{},
	}
}

// play runs the steps of a script, a vector or a random sequence. At the end it releases
// all grants, until nothing waits, and requires that the lockers are idle.
func (e *env) play(steps []step) error {
	players := map[string]*player{} // of each system
	for i, s := range steps {
		var err error
		switch p := players[s.system]; {
		case !slices.Contains(operations, s.op):
			err = errors.New("the operation is unknown")
		case s.op == "count", s.op == "idle":
			err = s.count(players)
		default:
			if p == nil {
				p = e.newPlayer()
				players[s.system] = p
			}
			err = p.take(s)
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.text, err)
		}
	}
	for _, p := range players {
		if err := p.release(); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
	}
	idle := step{op: "idle"}
	return idle.count(players)
}

// count compares a stated count with the Tree of a system or with all, which agree with the
// lockers after every other step. Idle is a count of nothing.
func (s *step) count(players map[string]*player) error {
	held, waiting := 0, 0
	for system, p := range players {
		if s.system == "" || s.system == system {
			counts := p.tree.Counts()
			held, waiting = held+counts.Held, waiting+counts.Waiting
		}
	}
	if held != s.held || waiting != s.waiting {
		return fmt.Errorf("%d are held and %d wait, not %d and %d", held, waiting, s.held, s.waiting)
	}
	return nil
}

// release releases all grants. What waits is granted before its turn: take sorts them.
func (p *player) release() error {
	for i := range p.all {
		a := p.all[i]
		if a.over() {
			continue
		}
		s := step{text: "unlock", client: "the suite", op: "unlock", random: true}
		p.clients[s.client] = a
		if err := p.take(s); err != nil {
			return fmt.Errorf("%s of %s: %w", s.op, a.want.what, err)
		}
	}
	return nil
}

// take makes one call and compares.
func (p *player) take(s step) error {
	p.step++
	a, err := p.do(s)
	want := cmp.Or(s.want, "ok")
	switch {
	case err != nil:
		return err
	case !s.random && want != a.kind:
		return fmt.Errorf("the answer is %q, not %q", a.kind, want)
	case s.with != nil && !slices.Equal(sorted(s.with), sorted(a.names)):
		return fmt.Errorf("the answer names %q, not %q", a.names, s.with)
	}
	granted, err := p.compare()
	if err == nil && !s.random && !slices.Equal(granted, s.granted) {
		return fmt.Errorf("the step grants %q, not %q", granted, s.granted)
	}
	return err
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// do makes the call of a step.
func (p *player) do(s step) (answer, error) {
	a := p.clients[s.client]
	switch {
	case s.ended:
		return p.ended(s, a)
	case s.op == "snapshot":
		return answer{kind: "ok"}, nil // it is compared after every step
	case s.op == "holders":
		return answer{kind: "ok"}, p.holders(s.path)
	case s.op == "try", s.op == "lock":
		if s.random && a != nil && !a.over() {
			return answer{}, nil
		}
		return p.acquire(s)
	case s.op == "cancel":
		return p.cancel(a)
	case a == nil || !a.granted:
		return answer{kind: "not-held"}, nil // there is nothing to call
	case s.op == "admit":
		return answer{kind: kindOf(p.fence.Admit(a.got.grant.Token()))}, nil
	}
	released := s.op == "unlock" && errors.Is(a.want.grant.Check(), lock.ErrNotHeld)
	before := a.got.grant.Token()
	got := p.start(p.Context(), s, p.l, a.got.grant)
	if err := p.wait(got); err != nil {
		return answer{}, err
	}
	_, err := s.call(p.Context(), p.tree, a.want.grant)
	answered, err := p.same(err, got.err)
	if released {
		answered.kind = "not-held" // Unlock itself returns nil
	}
	if now := a.got.grant.Token(); err == nil && now != before {
		err = p.replaced(before, now)
	}
	return answered, err
}

// start starts the call of a step.
func (p *player) start(ctx context.Context, s step, l lock.Locker, g *lock.Grant) *call {
	return p.begin(ctx, s.text, func(ctx context.Context) (*lock.Grant, error) { return s.call(ctx, l, g) })
}

// call makes the call of a step to a locker. The grant is the last one of the client.
func (s *step) call(ctx context.Context, l lock.Locker, g *lock.Grant) (_ *lock.Grant, err error) {
	switch s.op {
	case "try":
		return tryLock(ctx, l, s.requests, &s.options)
	case "lock":
		return lockAll(ctx, l, s.requests, &s.options)
	case "holders":
		_, err = l.Holders(ctx, s.path, lock.At)
	case "snapshot":
		_, err = l.Snapshot(ctx)
	case "revoke":
		err = l.Revoke(ctx, g.Token(), "reason of revoke")
	case "break":
		err = l.Break(ctx, g.Token(), "reason of break")
	case "check":
		err = g.Check()
	case "unlock":
		err = g.Unlock(ctx)
	default:
		if s.op == "downgrade" || s.op == "convert" && allCover(g.Requests(), s.mode) {
			return nil, g.Downgrade(ctx, s.mode)
		}
		err = g.Upgrade(ctx, s.mode)
	}
	return nil, err
}

// ended makes a call whose context has ended. Only an unlock has an effect.
func (p *player) ended(s step, a *acquisition) (answer, error) {
	ctx, cancel := context.WithCancelCause(p.Context())
	cancel(errCancelled)
	var g *lock.Grant
	if a != nil {
		g = a.got.grant
	}
	got := p.start(ctx, s, p.l, g)
	if err := p.wait(got); err != nil {
		return answer{}, err
	}
	if s.op == "unlock" && (got.err == nil || errors.Is(got.err, context.Canceled)) {
		// A driver may report that it did not wait for the answer of its engine.
		return answer{kind: "ok"}, a.want.grant.Unlock(p.Context())
	}
	return p.same(errCancelled, got.err)
}

// replaced requires that a token grows in an upgrade, and that no grant has the old one any
// more. No grant has token 0.
func (p *player) replaced(before, now lock.Token) error {
	if now < before {
		return fmt.Errorf("an upgrade changes token %d to %d", before, now)
	}
	for _, token := range []lock.Token{before, 0} {
		for _, take := range []func(context.Context, lock.Token, string) error{p.l.Break, p.l.Revoke} {
			if err := take(p.Context(), token, "not held"); !errors.Is(err, lock.ErrNotHeld) {
				return fmt.Errorf("token %d, which no grant has, can be taken away: %w", token, err)
			}
		}
	}
	return nil
}

// acquire makes a try or a lock.
func (p *player) acquire(s step) (answer, error) {
	try := s
	try.op = "try"
	a, blocked := &acquisition{client: s.client, want: p.start(p.Context(), try, p.tree, nil)}, answer{}
	if err := p.wait(a.want); err != nil {
		return answer{}, err
	}
	if s.op == "lock" && errors.Is(a.want.err, lock.ErrConflict) {
		// A try is refused for the same holders and has no effect.
		_, err := try.call(p.Context(), p.l, nil)
		if blocked, err = p.same(a.want.err, err); err != nil {
			return answer{}, fmt.Errorf("a try before the wait: %w", err)
		}
		a.want = p.start(p.Context(), s, p.tree, nil)
	}
	p.all = append(p.all, a)
	if err := p.settleTree(); err != nil {
		return answer{}, err
	}
	a.got = p.start(p.Context(), s, p.l, nil)
	if !a.want.returned() {
		p.clients[s.client] = a
		return answer{kind: "waiting", names: blocked.names}, nil
	}
	if a.want.err == nil {
		p.clients[s.client] = a
		return answer{kind: "ok"}, p.grant(a)
	}
	if err := p.wait(a.got); err != nil {
		return answer{}, err
	}
	return p.same(a.want.err, a.got.err)
}

// grant takes the grants of an acquisition.
func (p *player) grant(a *acquisition) error {
	if err := p.wait(a.got); err != nil {
		return err
	}
	if a.got.err != nil {
		return fmt.Errorf("%s, without a conflict: %w", a.got.what, a.got.err)
	}
	if a.got.grant == nil {
		return errors.New("the call returned neither a grant nor an error")
	}
	a.granted = true
	return nil
}

// cancel ends a wait.
func (p *player) cancel(a *acquisition) (answer, error) {
	if a == nil || a.want.returned() {
		return answer{kind: "not-held"}, nil
	}
	for _, call := range []*call{a.want, a.got} {
		call.cancel(errCancelled)
		if err := p.wait(call); err != nil {
			return answer{}, err
		}
	}
	_, err := p.same(a.want.err, a.got.err)
	return answer{kind: "ok"}, err
}
