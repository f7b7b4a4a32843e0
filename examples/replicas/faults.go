package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The faults.
const (
	killed = "killed by SIGKILL"
	paused = "paused by SIGSTOP"
	cutOff = "cut off from the database"
)

var faults = []string{killed, paused, cutOff}

// strikeAll strikes one replica after the other as long as the flags demand it, and each fault
// happens at least once.
func (w *world) strikeAll(ctx context.Context) error {
	for i := 0; i < len(faults) || time.Since(w.began) < *duration || w.users.accepted.Load() < *least; i++ {
		// The replica differs from that of the same fault in the round before.
		fault, r := faults[i%len(faults)], w.replicas[(i+i/len(faults))%len(w.replicas)]
		if err := w.strike(ctx, fault, r); err != nil {
			return fmt.Errorf("replica %s, %s: %w", r.name, fault, err)
		}
	}
	for _, fault := range faults {
		took := w.took[fault]
		slices.Sort(took)
		if n := len(took); n > 0 {
			w.printf("%s: %d operations were taken over after %v in the median, %v at most; the TTL is %v",
				fault, n, took[n/2].Round(interval), took[n-1].Round(interval), *ttl)
		}
	}
	return nil
}

// strike lets a fault happen to a replica, and returns when the replica answers again. Some of
// its orders are under way when the fault begins, and arrive after other replicas have done
// the work.
func (w *world) strike(ctx context.Context, fault string, r *replica) error {
	w.cloud.hold(r.name)
	err := w.await(ctx, "orders for fenced VMs and for the control", func() (bool, error) { return w.cloud.held() >= 2, nil })
	if err == nil {
		err = w.begin(ctx, fault, r)
	}
	// Also after an error: a paused process would not end.
	r.signal(syscall.SIGCONT)
	r.network.heal()
	w.cloud.deliver()
	if err != nil {
		return err
	}
	// A replica that was declared dead finds that out, and ends.
	if err := w.await(ctx, "the end of the process", func() (bool, error) { return r.hasEnded(), nil }); err != nil {
		return err
	}
	w.struck = nil
	return w.await(ctx, "an answer", r.answers)
}

// begin begins a fault, and returns when other replicas have done the work.
func (w *world) begin(ctx context.Context, fault string, r *replica) error {
	w.struck = r
	switch fault {
	case killed:
		r.signal(syscall.SIGKILL)
	case paused:
		r.signal(syscall.SIGSTOP)
	case cutOff:
		delay := *ttl / 20
		w.printf("%s: the answers of the database take %v more", r.name, delay)
		r.network.cable.Load().delay.Store(int64(delay))
		select {
		case <-time.After(*ttl):
		case <-ctx.Done():
		}
		r.network.cable.Load().swallow.Store(true)
	}
	return w.takeOver(ctx, fault, r)
}

// takeOver waits until other replicas have taken the operations of a dead one, and have sent
// their orders: what arrives of the dead one from now on is late.
func (w *world) takeOver(ctx context.Context, fault string, dead *replica) error {
	began := time.Now()
	moving, err := w.moving(ctx)
	if err != nil {
		return err
	}
	orphans := map[string]lifecycle.OpID{}
	for _, vm := range moving {
		if vm.Owner == dead.name {
			orphans[vm.ID] = vm.Operation
		}
	}
	w.printf("%s: %s, with %d operations", dead.name, fault, len(orphans))
	taken := map[string]bool{}
	return w.await(ctx, "the work of other replicas", func() (bool, error) {
		moving, err := w.moving(ctx)
		waiting := 0
		for _, vm := range moving {
			operation, orphan := orphans[vm.ID]
			switch {
			case orphan && vm.Operation == operation:
				waiting++
			case orphan && vm.Operation == operation+1 && vm.Actor == fsm.Sweeper:
				if !taken[vm.ID] {
					taken[vm.ID] = true
					w.took[fault] = append(w.took[fault], time.Since(began))
				}
				if !w.cloud.seen(vm.ID, operation) {
					waiting++
				}
			}
		}
		return waiting == 0, err
	})
}
