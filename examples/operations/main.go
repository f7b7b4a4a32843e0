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

	"golang.org/x/sync/errgroup"

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
	s := &service{out: out, n: n, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	var heartbeats errgroup.Group
	var processes []*process
	defer func() {
		for _, p := range processes {
			p.kill()
		}
		_ = heartbeats.Wait() // the goroutines return nil
	}()
	for _, name := range []string{"alpha", "beta", "gamma"} {
		p, err := start(ctx, s.store, &heartbeats, name, ttl)
		if err != nil {
			return err
		}
		processes = append(processes, p)
	}
	s.alpha, s.beta, s.gamma = processes[0], processes[1], processes[2]
	for _, step := range []func(context.Context) error{s.deploy, s.change, s.hang, s.report, s.recover, s.verify} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// service is the VMs, and three processes that work on them.
type service struct {
	out                io.Writer
	n                  int
	store              *lifecycle.MemoryStore
	alpha, beta, gamma *process
	abandoned          []*lifecycle.Handle[ovc.State, struct{}] // operations of gamma
}

func (s *service) print(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// every calls f for the VMs i, i+step and so on, until one call fails.
func (s *service) every(i, step int, f func(i int) error) error {
	for ; i < s.n; i += step {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// deploy adds the VMs and deploys each in one of the processes.
func (s *service) deploy(ctx context.Context) error {
	s.print("deploy %d VMs in three processes", s.n)
	return s.every(0, 1, func(i int) error {
		p := []*process{s.alpha, s.beta, s.gamma}[i%3]
		if _, err := p.vms.Add(ctx, id(i), ovc.API, struct{}{}); err != nil {
			return err
		}
		return p.complete(ctx, id(i), ovc.Deploy)
	})
}

func (s *service) change(ctx context.Context) error {
	s.print("stop every fifth VM, and reboot the next one")
	err := s.every(0, 5, func(i int) error { return s.alpha.complete(ctx, id(i), ovc.Stop) })
	return errors.Join(err, s.every(1, 5, func(i int) error { return s.alpha.complete(ctx, id(i), ovc.Reboot) }))
}

// hang starts operations whose hypervisor does not answer, and makes two requests that
// are refused.
func (s *service) hang(ctx context.Context) error {
	s.print("beta pauses every fifth VM, gamma stops the next one; the hypervisor does not answer yet")
	s.beta.hold()
	s.gamma.hold()
	err := s.every(2, 5, func(i int) error {
		_, err := s.beta.begin(ctx, id(i), ovc.Pause)
		return err
	})
	err = errors.Join(err, s.every(3, 5, func(i int) error {
		h, err := s.gamma.begin(ctx, id(i), ovc.Stop)
		s.abandoned = append(s.abandoned, h)
		return err
	}))
	s.print("requests for a VM in transition and for a halted VM")
	return errors.Join(err, s.refused(ctx, id(2), ovc.Reboot), s.refused(ctx, id(0), ovc.Pause))
}

// refused makes a request that must be refused, and prints the error.
func (s *service) refused(ctx context.Context, id string, e ovc.Event) error {
	_, err := s.alpha.begin(ctx, id, e)
	if err == nil {
		return fmt.Errorf("%s of %s was admitted", e, id)
	}
	s.print("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
	return nil
}

// report reports the results of operations: late, once, and again.
func (s *service) report(ctx context.Context) error {
	s.print("an agent pauses every fifth VM and reports it twice, and once for an earlier operation")
	verdicts := map[lifecycle.Verdict]int{}
	err := s.every(4, 5, func(i int) error {
		vm, err := s.alpha.vms.Fire(ctx, id(i), ovc.Pause, ovc.API, nil)
		if err != nil {
			return err
		}
		for _, of := range []lifecycle.OpID{vm.Operation - 1, vm.Operation, vm.Operation} {
			verdict, err := s.alpha.vms.Report(ctx, id(i), of, ovc.Done, ovc.Worker, "")
			if err != nil {
				return err
			}
			verdicts[verdict]++
		}
		return nil
	})
	s.print("  reports: %d applied, %d repeated, %d stale",
		verdicts[lifecycle.Applied], verdicts[lifecycle.Repeated], verdicts[lifecycle.Stale])
	return err
}

// recover kills a process and pauses another one. The third one sweeps.
func (s *service) recover(ctx context.Context) error {
	s.print("beta is killed and gamma is paused, both during their work")
	s.beta.kill()
	s.gamma.pause()
	x, err := s.alpha.vms.Explain(ctx, id(2))
	if err != nil {
		return err
	}
	s.print("  %s is %s; next move: %s", x.ID, x.State, x.NextMove)
	moved, err := s.sweep(ctx, 2*s.n/5)
	if err != nil {
		return err
	}
	s.print("alpha sweeps: %d VMs of beta and %d of gamma go back", moved["beta"], moved["gamma"])

	s.print("gamma resumes, and its work ends")
	s.gamma.resume()
	for _, h := range s.abandoned {
		_, err := h.Wait(ctx)
		if failed, ok := errors.AsType[*lifecycle.OutcomeError](err); !ok || failed.Outcome != lifecycle.Lost {
			return fmt.Errorf("an outcome of gamma was written: %w", err)
		}
	}
	s.print("  %d outcomes are lost: gamma does not own the operations any more", len(s.abandoned))
	return nil
}

// sweep sweeps until n objects were moved, and counts them by owner.
func (s *service) sweep(ctx context.Context, n int) (map[string]int, error) {
	moved := map[string]int{}
	for found := 0; found < n; {
		results, err := s.alpha.vms.Sweep(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			if r.Resolution != lifecycle.Moved {
				return nil, fmt.Errorf("%v", r)
			}
			moved[r.Owner]++
			found++
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return moved, nil
}

// verify returns an error if a VM is in a wrong state, or if its history is not a path
// of the table.
func (s *service) verify(ctx context.Context) error {
	want := []ovc.State{ovc.Halted, ovc.Running, ovc.Running, ovc.Running, ovc.Paused}
	vms := lifecycle.Must(ovc.VM, s.store, nil)
	count := map[ovc.State]int{}
	err := s.every(0, 1, func(i int) error {
		vm, err := vms.Get(ctx, id(i))
		if err != nil {
			return err
		}
		if vm.State != want[i%5] {
			return fmt.Errorf("%s ended in %s, not in %s", vm.ID, vm.State, want[i%5])
		}
		count[vm.State]++
		rows, err := vms.History(ctx, vm.ID, 0, lifecycle.MaxPage)
		if err != nil {
			return err
		}
		return path(rows)
	})
	if err == nil {
		s.print("end: %d VMs are RUNNING, %d HALTED and %d PAUSED, and every history is a path of the table",
			count[ovc.Running], count[ovc.Halted], count[ovc.Paused])
	}
	return err
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
