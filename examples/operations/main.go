// Operations runs a hundred VMs by three processes on one store. Some requests are
// refused. One process is killed during its work. Another one is declared dead, because
// its heartbeats do not reach the store, and its work ends later.
//
// It prints counts, states and the text of every refusal. It fails if a VM ends in a
// wrong state, or if the outcome of a dead process is written.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// run runs the program with n VMs, a multiple of five. A process that sends no
// heartbeat within ttl is considered dead.
func run(ctx context.Context, out io.Writer, n int, ttl time.Duration) error {
	store := lifecycle.NewMemoryStore()
	var processes []*process
	for _, name := range []string{"alpha", "beta", "gamma"} {
		p, err := start(ctx, store, name, ttl)
		if err != nil {
			return err
		}
		defer p.close(ctx)
		processes = append(processes, p)
	}
	s := &service{out: out, n: n, alpha: processes[0], beta: processes[1], gamma: processes[2]}
	for _, scenario := range []func(context.Context) error{s.deploy, s.stop, s.begin, s.refusals, s.sweep, s.answer, s.verify} {
		if err := scenario(ctx); err != nil {
			return err
		}
	}
	return nil
}

// service is n VMs, and three processes that work on them.
type service struct {
	out                io.Writer
	n                  int
	alpha, beta, gamma *process
	lost               []*ticket // the operations of gamma
}

// deploy adds the VMs and deploys each in one of the processes.
func (s *service) deploy(ctx context.Context) error {
	s.printf("alpha, beta and gamma deploy %d VMs", s.n)
	return s.every(0, 1, func(i int) error {
		p := []*process{s.alpha, s.beta, s.gamma}[i%3]
		if _, err := p.vms.Add(ctx, id(i), ovc.Virtual, ovc.API, struct{}{}, nil); err != nil {
			return err
		}
		return p.complete(ctx, id(i), ovc.Deploy)
	})
}

func (s *service) stop(ctx context.Context) error {
	s.printf("alpha stops every fifth VM, and reboots the next one")
	err := s.every(0, 5, func(i int) error { return s.alpha.complete(ctx, id(i), ovc.Stop) })
	return errors.Join(err, s.every(1, 5, func(i int) error { return s.alpha.complete(ctx, id(i), ovc.Reboot) }))
}

// begin starts operations whose hypervisor does not answer.
func (s *service) begin(ctx context.Context) error {
	s.printf("beta pauses every fifth VM, gamma stops the next one; the hypervisor does not answer")
	s.beta.hold()
	s.gamma.hold()
	err := s.every(2, 5, func(i int) error {
		_, err := s.beta.begin(ctx, id(i), ovc.Pause)
		return err
	})
	return errors.Join(err, s.every(3, 5, func(i int) error {
		t, err := s.gamma.begin(ctx, id(i), ovc.Stop)
		s.lost = append(s.lost, t)
		return err
	}))
}

// refusals requests actions on a VM in transition and on a halted one.
func (s *service) refusals(ctx context.Context) error {
	for _, request := range []struct {
		id    string
		event ovc.Event
	}{{id(2), ovc.Reboot}, {id(0), ovc.Pause}} {
		_, err := s.alpha.do(ctx, request.id, request.event)
		if err == nil {
			return fmt.Errorf("%s: %s was not refused", request.id, request.event)
		}
		s.printf("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
	}
	return nil
}

// sweep stops the heartbeats of two processes. The third one moves their VMs to the
// states before the operations.
func (s *service) sweep(ctx context.Context) error {
	s.printf("beta is killed, and the heartbeats of gamma do not reach the store")
	s.beta.die()
	s.gamma.die()
	x, err := s.alpha.vms.Explain(ctx, id(2))
	if err != nil {
		return err
	}
	s.printf("  %s is %s; next move: %s", x.ID, x.State, x.NextMove)
	moved := map[string]int{}
	for moved["beta"]+moved["gamma"] < 2*s.n/5 {
		results, err := s.alpha.vms.Sweep(ctx)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Resolution != lifecycle.Moved {
				return fmt.Errorf("%v", r)
			}
			moved[r.Owner]++
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.printf("alpha sweeps: %d VMs of beta and %d VMs of gamma return to RUNNING", moved["beta"], moved["gamma"])
	return nil
}

// answer ends the work of gamma. The store refuses its outcomes.
func (s *service) answer(ctx context.Context) error {
	s.printf("the hypervisor answers gamma")
	s.gamma.release()
	for _, t := range s.lost {
		_, err := t.Wait(ctx)
		if failed, ok := errors.AsType[*lifecycle.OutcomeError](err); !ok || failed.Outcome != lifecycle.Lost {
			return fmt.Errorf("an outcome of gamma was written: %w", err)
		}
	}
	s.printf("  %d outcomes are refused: gamma no longer owns the operations", len(s.lost))
	return nil
}

// verify returns an error if a VM is in a wrong state.
func (s *service) verify(ctx context.Context) error {
	want := []ovc.State{ovc.Halted, ovc.Running, ovc.Running, ovc.Running, ovc.Running}
	count := map[ovc.State]int{}
	err := s.every(0, 1, func(i int) error {
		vm, err := s.alpha.vms.Get(ctx, id(i))
		if err == nil && vm.State != want[i%5] {
			err = fmt.Errorf("%s ended in %s, not in %s", vm.ID, vm.State, want[i%5])
		}
		count[vm.State]++
		return err
	})
	if err == nil {
		s.printf("end: %d VMs are RUNNING, and %d are HALTED", count[ovc.Running], count[ovc.Halted])
	}
	return err
}

func id(i int) string { return fmt.Sprintf("vm-%03d", i) }

func (s *service) printf(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// every calls f for the VMs i, i+step and so on, until one call fails.
func (s *service) every(i, step int, f func(i int) error) error {
	for ; i < s.n; i += step {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}
