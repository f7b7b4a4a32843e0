// Lattice runs three systems of Lattice. Users deploy to parts of them at once and
// are refused where they are in each other's way, services come and go, a process
// stands still while the next one takes over, and a system is deleted under a
// deploy that runs.
//
// It prints the story, and fails if anything ends where it should not, if a lock is
// left, or if a history is not a path of its table.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lattice:", err)
		os.Exit(1)
	}
}

// run tells the whole story.
func run(ctx context.Context, out io.Writer) error {
	s := &story{ctx: ctx, out: out, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	defer s.end()
	b := s.process("build shop/d1", "deploy shop/d2")

	s.say("three systems are created; one of them has a definition that is none")
	for _, id := range []lattice.SystemID{"shop", "bank", "park"} {
		s.system(b, id)
	}
	s.delete(b, "park")

	s.say("the services of the shop come up, one is updated while another is scaled, one fails")
	for _, x := range []struct {
		path  string
		state lattice.ServiceState
	}{
		{"/web/cart", "pending"},
		{"/web/cart", "stable"},
		{"/web/search", "scaling"},
		{"/web/cart", "updating"},
		{"/db", "failed"},
		{"/web/cart", "stable"},
		{"/db", "stable"},
		{"/web/search", "stable"},
	} {
		s.service(b, "shop", x.path, x.state)
	}

	s.say("two deploys run side by side, and all that is in their way is refused")
	s.deploy(b, "shop", "d1", "/web/cart")
	s.deploy(b, "shop", "d2", "/web/search")
	s.begun(b, "build shop/d1", "deploy shop/d2")
	s.held(b, "shop")
	s.deployed(b, "shop", "d3", "/web")
	s.deployed(b, "shop", "d4", "/web/cart/buttons")
	s.tornDown(b, "shop", "t1")
	s.deployed(b, "bank", "d1", "/")

	s.say("the process stands still; the next one has the locks before anything else, and goes on")
	next := s.process("deploy shop/d1", "deploy shop/d2", "deploy bank/d2", "teardown shop/t2")
	s.held(next, "shop")
	s.deployed(next, "shop", "d5", "/web")
	s.say("the first one comes back, and says that it is done with d2")
	s.late(b, "deploy shop/d2", "shop", "d2")
	s.answer(next, "deploy shop/d2", nil)
	s.waited(next, "shop", "d2")
	s.answer(next, "deploy shop/d1", fmt.Errorf("the cart does not start"))
	s.waited(next, "shop", "d1")

	s.say("a teardown runs alone")
	s.teardown(next, "shop", "t2")
	s.begun(next, "teardown shop/t2")
	s.deployed(next, "shop", "d6", "/db")
	s.tornDown(next, "shop", "t3")
	for _, path := range []string{"/web/cart", "/web/search", "/db"} {
		s.note(next.RemoveService(ctx, "shop", lock.MustParse(path)))
	}
	s.answer(next, "teardown shop/t2", nil)
	s.waitedTeardown(next, "shop", "t2")
	s.deployed(next, "shop", "d7", "/db")

	s.say("the bank is deleted while a deploy runs")
	s.deploy(next, "bank", "d2", "/ledger")
	s.begun(next, "deploy bank/d2")
	s.delete(next, "bank")
	s.waited(next, "bank", "d2")
	return s.verify(next)
}

// story tells steps until one goes wrong.
type story struct {
	ctx       context.Context // of one run, which is one call
	out       io.Writer
	store     *lifecycle.MemoryStore
	processes []*backend
	err       error
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

func (s *story) process(hold ...string) *backend {
	b, err := start(s.ctx, s.store, hold...)
	s.note(err)
	s.processes = append(s.processes, b)
	return b
}

// end ends what the processes still do.
func (s *story) end() {
	for _, b := range s.processes {
		if b.Controller != nil {
			_ = b.Close(s.ctx)
		}
	}
}

// system creates a system and waits for what becomes of it.
func (s *story) system(b *backend, id lattice.SystemID) {
	if s.err != nil {
		return
	}
	h, err := b.CreateSystem(s.ctx, id)
	if s.note(err); err != nil {
		return
	}
	rec, _ := h.Wait(s.ctx) // the record tells of the failure
	s.say("  %s is %s%s", id, rec.State, because(rec.Reason))
}

func (s *story) delete(b *backend, id lattice.SystemID) {
	if s.err != nil {
		return
	}
	h, err := b.DeleteSystem(s.ctx, id)
	if err == nil {
		_, err = h.Wait(s.ctx)
	}
	s.note(err)
	s.say("  %s is deleted", id)
}

func (s *story) service(b *backend, system lattice.SystemID, path string, state lattice.ServiceState) {
	if s.err != nil {
		return
	}
	s.note(b.SetService(s.ctx, system, lock.MustParse(path), state))
	rec, err := b.Systems().Get(s.ctx, string(system))
	s.note(err)
	s.say("  %s is %s, so %s is %s", path, state, system, rec.State)
}

func (s *story) deploy(b *backend, system lattice.SystemID, id lattice.DeployID, path string) {
	if s.err == nil {
		_, err := b.Deploy(s.ctx, system, id, lock.MustParse(path))
		s.note(err)
	}
}

func (s *story) teardown(b *backend, system lattice.SystemID, id lattice.TeardownID) {
	if s.err == nil {
		_, err := b.Teardown(s.ctx, system, id)
		s.note(err)
	}
}

// deployed deploys and waits for what becomes of it.
func (s *story) deployed(b *backend, system lattice.SystemID, id lattice.DeployID, path string) {
	s.deploy(b, system, id, path)
	s.waited(b, system, id)
}

func (s *story) tornDown(b *backend, system lattice.SystemID, id lattice.TeardownID) {
	s.teardown(b, system, id)
	s.waitedTeardown(b, system, id)
}

func (s *story) waited(b *backend, system lattice.SystemID, id lattice.DeployID) {
	if s.err == nil {
		rec, err := b.WaitDeploy(s.ctx, system, id)
		s.note(err)
		s.say("  deploy %s of %s%s has %s%s", id, system, strings.TrimSuffix(rec.Payload.Path.String(), "/"), rec.State, because(rec.Reason))
	}
}

func (s *story) waitedTeardown(b *backend, system lattice.SystemID, id lattice.TeardownID) {
	if s.err == nil {
		rec, err := b.WaitTeardown(s.ctx, system, id)
		s.note(err)
		s.say("  teardown %s of %s has %s%s", id, system, rec.State, because(rec.Reason))
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (s *story) begun(b *backend, jobs ...string) {
	if s.err == nil {
		s.note(b.begun(s.ctx, jobs...))
	}
}

func (s *story) answer(b *backend, what string, err error) {
	s.begun(b, what)
	if s.err == nil {
		b.job(what).answer <- err
	}
}

// late lets a process answer that does not count any more, and end.
func (s *story) late(b *backend, what string, system lattice.SystemID, id lattice.DeployID) {
	s.answer(b, what, nil)
	if s.err != nil {
		return
	}
	err := b.Sweep(s.ctx)
	s.say("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
	s.note(b.Close(s.ctx))
	rec, err := b.Deploys().Get(s.ctx, string(system)+"/"+string(id))
	s.note(err)
	s.say("  deploy %s of %s is %s", id, system, rec.State)
}

// held tells who has which part.
func (s *story) held(b *backend, system lattice.SystemID) {
	if s.err != nil {
		return
	}
	holders, err := b.Actions().Holders(s.ctx, system, lock.Root())
	s.note(err)
	for _, h := range holders {
		s.say("  %s has %v of %s", h.Owner, h.Path, system)
	}
}
