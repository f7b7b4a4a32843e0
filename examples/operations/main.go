// Operations runs a hundred VMs by three processes on one store. Some requests are
// refused. One process is killed during its work. Another one is paused, is declared
// dead, and resumes.
//
// It prints what happens, with the text of every refusal. It fails if any VM ends in
// a wrong state, or if its history is not a path of the table.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout, 100, 2*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "operations:", err)
		os.Exit(1)
	}
}

func id(i int) string { return fmt.Sprintf("vm-%03d", i) }

// run runs the program with n VMs, a multiple of five. A process that sends no
// heartbeat within ttl is considered dead.
func run(ctx context.Context, out io.Writer, n int, ttl time.Duration) error {
	s := &story{ctx: ctx, out: out, n: n, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	defer s.end()
	alpha, beta, gamma := s.process("alpha", ttl), s.process("beta", ttl), s.process("gamma", ttl)

	s.say("deploy %d VMs in three processes", n)
	s.each(0, 1, func(i int) {
		p := []*process{alpha, beta, gamma}[i%3]
		s.note(p.vms.Add(ctx, id(i), ovc.API, struct{}{}))
		s.done(p, id(i), ovc.Deploy)
	})

	s.say("stop every fifth VM, and reboot the next one")
	s.each(0, 5, func(i int) { s.done(alpha, id(i), ovc.Stop) })
	s.each(1, 5, func(i int) { s.done(alpha, id(i), ovc.Reboot) })

	s.say("beta pauses every fifth VM, gamma stops the next one; the hypervisor does not answer yet")
	beta.hold()
	gamma.hold()
	var abandoned []*lifecycle.Handle[ovc.State, struct{}]
	s.each(2, 5, func(i int) { s.begin(beta, id(i), ovc.Pause) })
	s.each(3, 5, func(i int) { abandoned = append(abandoned, s.begin(gamma, id(i), ovc.Stop)) })
	s.say("requests for a VM in transition and for a halted VM")
	s.refused(alpha, id(2), ovc.Reboot)
	s.refused(alpha, id(0), ovc.Pause)

	s.say("an agent pauses every fifth VM and reports it twice, and once for an earlier operation")
	verdicts := map[lifecycle.Verdict]int{}
	s.each(4, 5, func(i int) {
		vm, err := alpha.vms.Fire(ctx, id(i), ovc.Pause, ovc.API, nil)
		s.note(vm, err)
		for _, of := range []lifecycle.OpID{vm.Operation - 1, vm.Operation, vm.Operation} {
			verdict, err := alpha.vms.Report(ctx, id(i), of, ovc.Done, ovc.Worker, "")
			s.note(nil, err)
			verdicts[verdict]++
		}
	})
	s.say("  reports: %d applied, %d repeated, %d stale",
		verdicts[lifecycle.Applied], verdicts[lifecycle.Repeated], verdicts[lifecycle.Stale])

	s.say("beta is killed and gamma is paused, both during their work")
	beta.kill()
	gamma.pause()
	if s.err == nil {
		x, err := alpha.vms.Explain(ctx, id(2))
		s.note(nil, err)
		s.say("  %s is %s; next move: %s", x.ID, x.State, x.NextMove)
	}
	moved := s.sweep(alpha, 2*n/5)
	s.say("alpha sweeps: %d VMs of beta and %d of gamma go back", moved["beta"], moved["gamma"])

	s.say("gamma resumes, and its work ends")
	gamma.resume()
	lost := 0
	for _, h := range abandoned {
		if s.err != nil {
			break
		}
		_, err := h.Wait(ctx)
		failed, ok := errors.AsType[*lifecycle.OutcomeError](err)
		if !ok || failed.Outcome != lifecycle.Lost {
			s.err = fmt.Errorf("an outcome of gamma was written: %w", err)
		}
		lost++
	}
	s.say("  %d outcomes are lost: gamma does not own the operations any more", lost)
	return s.verify()
}

// story performs steps until one fails.
type story struct {
	ctx       context.Context // of one run, which is one call
	out       io.Writer
	n         int
	store     *lifecycle.MemoryStore
	processes []*process
	err       error
}

func (s *story) say(format string, args ...any) {
	if s.err == nil {
		fmt.Fprintf(s.out, format+"\n", args...)
	}
}

// note keeps the first error.
func (s *story) note(_ any, err error) {
	if s.err == nil {
		s.err = err
	}
}

// each calls f for every step-th VM, until a step fails.
func (s *story) each(first, step int, f func(i int)) {
	for i := first; i < s.n && s.err == nil; i += step {
		f(i)
	}
}

func (s *story) process(name string, ttl time.Duration) *process {
	if s.err != nil {
		return nil
	}
	p, err := start(s.ctx, s.store, name, ttl)
	s.note(nil, err)
	s.processes = append(s.processes, p)
	return p
}

// end ends the processes and waits for them.
func (s *story) end() {
	for _, p := range s.processes {
		if p != nil {
			p.kill()
			<-p.ended
		}
	}
}

// begin begins an operation whose work is kept in the record.
func (s *story) begin(p *process, id string, e ovc.Event) *lifecycle.Handle[ovc.State, struct{}] {
	if s.err != nil {
		return nil
	}
	h, err := p.vms.Do(s.ctx, id, e, ovc.API, lifecycle.Named("hypervisor", []byte(e)), nil)
	s.note(nil, err)
	return h
}

// done begins an operation and waits until it has succeeded.
func (s *story) done(p *process, id string, e ovc.Event) {
	if h := s.begin(p, id, e); s.err == nil {
		s.note(h.Wait(s.ctx))
	}
}

// refused makes a request that must be refused, and prints the error.
func (s *story) refused(p *process, id string, e ovc.Event) {
	if s.err != nil {
		return
	}
	_, err := p.vms.Do(s.ctx, id, e, ovc.API, lifecycle.Named("hypervisor", nil), nil)
	if err == nil {
		s.err = fmt.Errorf("%s of %s was admitted", e, id)
		return
	}
	s.say("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
}

// sweep sweeps until n objects were moved, and counts them by owner.
func (s *story) sweep(p *process, n int) map[string]int {
	moved := map[string]int{}
	for found := 0; found < n && s.err == nil; {
		results, err := p.vms.Sweep(s.ctx)
		s.note(nil, err)
		for _, r := range results {
			if r.Resolution != lifecycle.Moved {
				s.note(nil, fmt.Errorf("%v", r))
			}
			moved[r.Owner]++
			found++
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.ctx.Done():
			s.note(nil, lifecycle.Ended(s.ctx))
		}
	}
	return moved
}

// verify returns an error if a VM is in a wrong state, or if its history is not a path
// of the table.
func (s *story) verify() error {
	if s.err != nil {
		return s.err
	}
	want := []ovc.State{ovc.Halted, ovc.Running, ovc.Running, ovc.Running, ovc.Paused}
	vms := lifecycle.Must(ovc.VM, s.store, nil)
	count := map[ovc.State]int{}
	for i := range s.n {
		vm, err := vms.Get(s.ctx, id(i))
		if err != nil {
			return err
		}
		if vm.State != want[i%5] {
			return fmt.Errorf("%s ended in %s, not in %s", vm.ID, vm.State, want[i%5])
		}
		count[vm.State]++
		rows, err := vms.History(s.ctx, vm.ID, 0, lifecycle.MaxPage)
		if err != nil {
			return err
		}
		if err := path(rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.out, "end: %d VMs are RUNNING, %d HALTED and %d PAUSED, and every history is a path of the table\n",
		count[ovc.Running], count[ovc.Halted], count[ovc.Paused])
	return nil
}

// path returns an error if a history is not a path of the table.
func path(rows []lifecycle.HistoryRow) error {
	t := ovc.VM.Table()
	for _, row := range rows[1:] { // the first is the VM's addition
		from, origin, err := t.ParseStatus(row.From, row.FromOrigin)
		if err != nil {
			return err
		}
		event, ok := t.EventIndex(row.Event)
		if !ok {
			return fmt.Errorf("%v is no row of the table", row)
		}
		allowed, err := t.Candidates(nil, from, origin, event, row.Actor, false)
		if err != nil {
			return fmt.Errorf("%v: %w", row, err)
		}
		to := func(r int) string { next, _ := t.After(from, origin, r); return t.States[next].Name }
		if !slices.ContainsFunc(allowed, func(r int) bool { return to(r) == row.To }) {
			return fmt.Errorf("%v is no row of the table", row)
		}
	}
	return nil
}
