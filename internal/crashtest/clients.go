package crashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Clients are the scripted clients of a scenario. Run makes the value for
// [Scenario].Script; the zero value is not usable. It is safe for concurrent use by the
// goroutines of the script.
type Clients[A any] struct{ sim *simulation }

// Ask calls f in a process and returns its error, or errCrashed if the process is gone
// before f has returned. If there is no process of that role, Ask waits for the next one,
// and starts one if the script has killed the last one. A role that is none of
// [Scenario].Processes is a failure, also for Kill and Stop.
func (c *Clients[A]) Ask(role, what string, f func(ctx context.Context, app A) error) error {
	_, err := c.sim.ask(role, what, func(ctx context.Context, p *Process) error { return f(ctx, p.app.(A)) })
	return err
}

// Insist calls Ask until the error is nil, with a tick in between. After a hundred
// attempts it is a failure.
func (c *Clients[A]) Insist(role, what string, f func(ctx context.Context, app A) error) error {
	for try := 1; ; try++ {
		err := c.Ask(role, what, f)
		if err == nil || c.sim.ctx.Err() != nil {
			return err
		}
		if try == 100 {
			c.Errorf("%s: failed a hundred times: %v", what, err)
			return err
		}
		c.Pass(c.sim.scenario.Tick)
	}
}

// Pass lets at least d pass. The processes send heartbeats and sweep meanwhile.
func (c *Clients[A]) Pass(d time.Duration) {
	c.sim.mu.Lock()
	until := c.sim.elapsed + d
	c.sim.mu.Unlock()
	_ = c.sim.await(func() bool { return c.sim.passed >= until })
}

// Kill ends a process without warning. Another one is started for the next Ask, and for
// the end of the scenario if there is no other process.
func (c *Clients[A]) Kill(role string) {
	if c.sim.checkRole(role) != nil {
		return
	}
	c.sim.mu.Lock()
	p := c.sim.roles[role]
	c.sim.roles[role] = nil
	c.sim.mu.Unlock()
	if p != nil {
		p.become(gone)
	}
}

// Stop waits for the work of a process and then ends its ownership. The next process
// starts as after Kill. The error is that of the queue, of [lifecycle.Owner.Leave], or
// errCrashed.
func (c *Clients[A]) Stop(role string) error {
	p, err := c.sim.ask(role, "stop", func(ctx context.Context, p *Process) error {
		if err := p.queue.Terminate(ctx); err != nil || p.owner == nil {
			return err
		}
		return p.owner.Leave(ctx)
	})
	if p == nil || errors.Is(err, errCrashed) {
		return err // another process replaces it
	}
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	p.left = true
	if c.sim.roles[role] == p {
		c.sim.roles[role] = nil
	}
	c.sim.changed.Broadcast()
	return err
}

// Apply is [Process.Apply] for a peer that is not a process of the scenario.
func (c *Clients[A]) Apply(key lifecycle.Key, id lifecycle.OpID) error {
	return c.sim.apply(operation{key, id}, peer)
}

// Faultless reports whether no fault has happened, or only a [LostRequest] or
// [LostAnswer], after which a manager sends the write again. A script may then check more.
func (c *Clients[A]) Faultless() bool {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	return c.sim.unnoticed()
}

// Errorf reports a failure at this point.
func (c *Clients[A]) Errorf(format string, args ...any) { c.sim.report(format, args...) }

// ask calls f in a process of a role and returns that process, or nil if there is none.
func (s *simulation) ask(role, what string, f func(context.Context, *Process) error) (p *Process, err error) {
	if err := s.checkRole(role); err != nil {
		return nil, err
	}
	live := func() bool {
		if p = s.roles[role]; p == nil || !p.lives() {
			s.wanted[role] = true
			return false
		}
		return true
	}
	if err := s.await(live); err != nil {
		return nil, err
	}
	var answer error
	answered, lost := false, false
	p.run(what, func(ctx context.Context) error { return f(ctx, p) }, func(err error) { answered, answer = true, err })
	err = s.await(func() bool {
		lost = p.state == gone || p.state == over
		return answered || lost
	})
	switch {
	case err != nil:
		return p, err
	case lost:
		return p, errCrashed
	}
	return p, answer // nothing writes it any more
}

// checkRole refuses a role that the scenario does not have.
func (s *simulation) checkRole(role string) error {
	if slices.Contains(s.scenario.Processes, role) {
		return nil
	}
	err := fmt.Errorf("crashtest: the scenario has no process %q", role)
	s.report("%v", err)
	return err
}
