package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

// story performs steps until one fails.
type story struct {
	ctx       context.Context // of one run, which is one call
	out       io.Writer
	store     *lifecycle.MemoryStore
	clock     *clock
	hosts     *hosts
	processes []*process
	err       error
}

// process is one process of the service.
type process struct {
	name    string
	service *blazar.Service
	die     context.CancelFunc
	ended   chan struct{} // closed after its last heartbeat
}

func (s *story) process(name string, ttl time.Duration) *process {
	owner, err := lifecycle.Join(s.ctx, s.store, name, ttl)
	if err != nil {
		s.err = err
		return nil
	}
	life, die := context.WithCancel(s.ctx)
	p := &process{name: name, die: die, ended: make(chan struct{})}
	p.service = blazar.New(s.store, &blazar.Config{
		Now: s.clock.read, Patience: 50 * time.Millisecond, Owner: owner, Queue: queue.Must[lifecycle.Key](nil),
		Plugins: map[string]blazar.Plugin{"host": s.hosts.plugin("host"), "rack": s.hosts.plugin("rack"), "network": s.hosts.plugin("network")},
	})
	go func() {
		defer close(p.ended)
		_ = owner.Run(life) // until it dies, or finds that it was declared dead
	}()
	s.processes = append(s.processes, p)
	return p
}

// kill ends a process, which sends no heartbeat any more.
func (s *story) kill(p *process) {
	if s.err == nil {
		p.die()
		<-p.ended
		s.say("  %s is killed", p.name)
	}
}

// end ends the processes and the calls of plugins that hang.
func (s *story) end() {
	close(s.hosts.wake)
	for _, p := range s.processes {
		p.die()
		<-p.ended
	}
}

func (s *story) say(format string, args ...any) {
	if s.err == nil {
		fmt.Fprintf(s.out, format+"\n", args...)
	}
}

// note keeps the first error.
func (s *story) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// calls prints the calls of plugins since the last time.
func (s *story) calls() {
	for _, call := range s.hosts.take() {
		s.say("  %s", call)
	}
}

func (s *story) create(p *process, id string, start, end int, resources ...string) {
	spec := blazar.LeaseSpec{Name: id, Start: s.clock.hour(start), End: s.clock.hour(end)}
	for _, r := range resources {
		spec.Reservations = append(spec.Reservations, blazar.Request{Resource: r, Amount: 1})
	}
	if s.err == nil {
		_, err := p.service.CreateLease(s.ctx, id, spec)
		s.note(err)
	}
}

func (s *story) delete(p *process, id string) {
	if s.err == nil {
		s.note(p.service.DeleteLease(s.ctx, id))
		s.calls()
	}
}

// pass advances the clock by hours.
func (s *story) pass(hours int) { s.clock.pass(hours) }

// look processes the events that are due.
func (s *story) look(p *process) {
	if s.err != nil {
		return
	}
	handled, err := p.service.Process(s.ctx)
	s.note(err)
	s.calls()
	for _, h := range handled {
		s.say("  %s of %s: %s", h.Type, h.Lease, h.Status)
	}
}

func (s *story) flag(p *process, id string) {
	if s.err != nil {
		return
	}
	lease, err := p.service.GetLease(s.ctx, id)
	s.note(err)
	if s.err == nil {
		s.note(p.service.Flag(s.ctx, lease.Reservations[0].ID, blazar.Flags{MissingResources: true}))
	}
}

// sweep sweeps until an object was found.
func (s *story) sweep(p *process) {
	for s.err == nil {
		results, err := p.service.Sweep(s.ctx)
		s.note(err)
		for _, r := range results {
			s.say("  %s sweeps %s of %s: %v to %s", p.name, r.ID, r.Owner, r.Resolution, r.To)
		}
		if len(results) > 0 {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.ctx.Done():
			s.note(lifecycle.Ended(s.ctx))
		}
	}
}

// show prints leases.
func (s *story) show(p *process, ids ...string) {
	s.calls()
	for _, id := range ids {
		if s.err != nil {
			return
		}
		l, err := p.service.GetLease(s.ctx, id)
		s.note(err)
		text := fmt.Sprintf("  %s is %s", id, l.Status)
		if l.Degraded {
			text += ", degraded"
		}
		for _, r := range l.Reservations {
			text += fmt.Sprintf(", %s %s", r.Resource, r.Status)
		}
		if l.Status == blazar.LeaseError {
			text += fmt.Sprintf("; it will never %v", strings.Join(names(l.Never), " or "))
		}
		s.say("%s", text)
	}
}

func names(calls []blazar.Call) (list []string) {
	for _, c := range calls {
		list = append(list, string(c))
	}
	return list
}

// clock is the time by which leases are due.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(hours int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Duration(hours) * time.Hour)
}

// hour is so many hours after the story began.
func (c *clock) hour(n int) time.Time {
	return time.Date(2030, 1, 1, 8+n, 0, 0, 0, time.UTC)
}
