// Blazar leases hosts and networks by the hour. Three leases follow each other on one
// host and are processed late. A start fails, another one hangs and is deleted, an
// update is refused, a host degrades, and a process dies during a start.
//
// It prints what happens. It fails if a host is handed out twice, if statuses of
// lease, reservations and events do not match, or if a lease ends in a wrong status.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout, time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "blazar:", err)
		os.Exit(1)
	}
}

// run runs the program. A process that sends no heartbeat within ttl is considered
// dead.
func run(ctx context.Context, out io.Writer, ttl time.Duration) error {
	s := &story{
		ctx: ctx, out: out, store: &lifecycle.MemoryStore{KeepHistory: -1},
		clock: &clock{now: time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)},
		hosts: &hosts{has: map[string]string{}, does: map[string]string{}, wake: make(chan struct{})},
	}
	defer s.end()
	alpha, beta := s.process("alpha", ttl), s.process("beta", ttl)
	if s.err != nil {
		return s.err
	}

	s.say("lease-1, lease-2 and lease-3 follow each other on one host")
	s.create(alpha, "lease-1", 1, 2, "host")
	s.create(alpha, "lease-2", 2, 3, "host")
	s.create(alpha, "lease-3", 3, 9, "host")
	s.pass(3)
	s.say("late processing: every end comes before the next start")
	s.look(alpha)
	s.show(alpha, "lease-1", "lease-2", "lease-3")

	s.say("lease-4: the start of the network fails")
	s.create(alpha, "lease-4", 4, 8, "rack", "network")
	s.hosts.set("start network", "fails")
	s.pass(1)
	s.look(alpha)
	s.show(alpha, "lease-4")
	s.say("lease-4 cannot end, because its start has failed; it can be deleted")
	_, err := alpha.service.EndLease(ctx, "lease-4")
	s.refused(err, lifecycle.ErrPrecondition)
	s.delete(alpha, "lease-4")

	s.say("lease-5: the start hangs, and the lease is deleted")
	s.create(alpha, "lease-5", 5, 8, "rack")
	s.hosts.set("start rack", "hangs")
	s.pass(1)
	s.look(alpha)
	s.show(alpha, "lease-5")
	s.delete(alpha, "lease-5")
	_, err = alpha.service.GetLease(ctx, "lease-5")
	s.refused(err, lifecycle.ErrNotFound)

	s.say("lease-3: an update is refused, and the lease stays unchanged")
	s.hosts.set("update host", "refuses")
	_, err = alpha.service.UpdateLease(ctx, "lease-3", blazar.LeaseUpdate{End: s.clock.hour(20)})
	s.refused(err, blazar.ErrRefused)
	s.say("lease-3: resources are missing, and the lease is degraded")
	s.flag(alpha, "lease-3")
	s.show(alpha, "lease-3")

	s.say("lease-6: beta starts it and dies during the start")
	s.create(alpha, "lease-6", 6, 8, "rack")
	s.hosts.set("start rack", "hangs")
	s.pass(1)
	s.look(beta)
	s.show(alpha, "lease-6")
	s.kill(beta)
	s.sweep(alpha)
	s.show(alpha, "lease-6")
	s.say("lease-6 is deleted, and lease-3 ends")
	s.delete(alpha, "lease-6")
	s.pass(4)
	s.look(alpha)
	s.show(alpha, "lease-3")
	return s.verify(alpha)
}

// verify returns an error if a lease is in a wrong status, if statuses do not match,
// or if a lease has a host that it should not have.
func (s *story) verify(p *process) error {
	if s.err != nil {
		return s.err
	}
	leases, err := p.service.ListLeases(s.ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if l.Status != blazar.LeaseTerminated {
			return fmt.Errorf("%s ended as %s", l.ID, l.Status)
		}
		var reservations []blazar.ReservationState
		for _, r := range l.Reservations {
			reservations = append(reservations, r.Status)
		}
		events := map[string]blazar.EventState{}
		for _, e := range l.Events {
			events[e.Type] = e.Status
		}
		if derived := blazar.DeriveStatus(reservations, events[blazar.StartLease], events[blazar.EndLease]); derived != l.Status {
			return fmt.Errorf("%s is %s, and its reservations and events lead to %s", l.ID, l.Status, derived)
		}
		rows, err := p.service.Leases.History(s.ctx, l.ID, 0, lifecycle.MaxPage)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := allowed(row); err != nil {
				return err
			}
		}
	}
	if err := s.hosts.verify(); err != nil {
		return err
	}
	s.say("end: %d leases are TERMINATED, the others are gone, and every host is free", len(leases))
	return nil
}

// allowed returns an error if a row of history is none of the table.
func allowed(row lifecycle.HistoryRow) error {
	at, err := blazar.Lease.ParseStatus(or(row.From, string(blazar.LeaseAbsent)), or(row.FromOrigin, string(blazar.LeaseAbsent)))
	if err != nil {
		return err
	}
	step, err := blazar.Lease.Next(context.Background(), at, blazar.Call(row.Event), row.Actor, nil)
	if err == nil && string(step.State) != row.To {
		err = fmt.Errorf("%w: it leads to %s", fsm.ErrNotAllowed, step.State)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", row, err)
	}
	return nil
}

// refused prints an error, which must match the kind.
func (s *story) refused(err, kind error) {
	if s.err == nil && !errors.Is(err, kind) {
		s.err = fmt.Errorf("not refused by %q: %w", kind, err)
	}
	s.calls()
	s.say("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
