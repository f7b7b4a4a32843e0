// Blazar leases hosts and networks by the hour. One lease follows another on the
// same host while nobody looks; a network does not come up; a start hangs and is
// deleted; an update is refused; a host breaks; and a process dies in the middle of
// a lease. The statuses of leases, reservations and events stay in step.
//
// It prints the story, and fails if a host is ever handed out twice, if statuses do
// not go together, or if any lease ends where it should not.
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

// run tells the whole story. A process is dead that has not beaten its heart for
// so long.
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

	s.say("ann, bob and eve lease the same host, one after the other")
	s.create(alpha, "ann", 1, 2, "host")
	s.create(alpha, "bob", 2, 3, "host")
	s.create(alpha, "eve", 3, 9, "host")
	s.pass(3)
	s.say("nobody has looked until now; every end comes before the next start")
	s.look(alpha)
	s.show(alpha, "ann", "bob", "eve")

	s.say("joe's network does not come up")
	s.create(alpha, "joe", 4, 8, "rack", "network")
	s.hosts.set("start network", "fails")
	s.pass(1)
	s.look(alpha)
	s.show(alpha, "joe")
	s.say("his lease cannot end, because it has never begun; but it can be deleted")
	_, err := alpha.service.EndLease(ctx, "joe")
	s.refused(err, lifecycle.ErrPrecondition)
	s.delete(alpha, "joe")

	s.say("sue's start hangs, and she deletes her lease at once")
	s.create(alpha, "sue", 5, 8, "rack")
	s.hosts.set("start rack", "hangs")
	s.pass(1)
	s.look(alpha)
	s.show(alpha, "sue")
	s.delete(alpha, "sue")
	_, err = alpha.service.GetLease(ctx, "sue")
	s.refused(err, lifecycle.ErrNotFound)

	s.say("eve wants the host for longer than it is free, and keeps what she has")
	s.hosts.set("update host", "refuses")
	_, err = alpha.service.UpdateLease(ctx, "eve", blazar.LeaseUpdate{End: s.clock.hour(20)})
	s.refused(err, blazar.ErrRefused)
	s.say("a disk of her host breaks: her lease is degraded, and goes on")
	s.flag(alpha, "eve")
	s.show(alpha, "eve")

	s.say("max's lease starts at beta, which dies in the middle")
	s.create(alpha, "max", 6, 8, "rack")
	s.hosts.set("start rack", "hangs")
	s.pass(1)
	s.look(beta)
	s.show(alpha, "max")
	s.kill(beta)
	s.sweep(alpha)
	s.show(alpha, "max")
	s.say("all that is left comes to its end")
	s.delete(alpha, "max")
	s.pass(4)
	s.look(alpha)
	s.show(alpha, "eve")
	return s.verify(alpha)
}

// verify returns an error if a lease is not where it should be, if statuses do not
// go together, or if somebody has a host that is not theirs.
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
			return fmt.Errorf("%s is %s, and its reservations and events say %s", l.ID, l.Status, derived)
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
	s.say("in the end: %d leases are TERMINATED, the others are gone, and every host is free", len(leases))
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

// refused prints an error that has to be of a kind.
func (s *story) refused(err, kind error) {
	if s.err == nil && !errors.Is(err, kind) {
		s.err = fmt.Errorf("not refused by %q: %w", kind, err)
	}
	s.tell()
	s.say("  HTTP %d: %v", lifecycle.HTTPStatus(err), err)
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
