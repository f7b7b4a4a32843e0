package blazar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

// Every verb of the service, with a fault at every durable write of it: the
// process dies and comes back, or another one takes over; the store fails, loses
// requests and answers; or the process stands still while others take it for dead.
// Everything comes to rest, and nothing is done twice. All faults are tried with
// INTERLOCK_LONG=1, otherwise those after which somebody else has to clean up.
func TestCrashes(t *testing.T) {
	crashtest.Run(t, harness(nil), crashtest.Scenario[*Service]{
		Processes: []string{"manager"}, Tick: 5 * time.Minute,
		Start: func(ctx context.Context, p *crashtest.Process) (*Service, error) {
			return crashing(ctx, p, func(string, Allocation) {})
		},
		Script: crashScript,
		Ends: map[lifecycle.Key][]string{
			{Machine: "lease", ID: "gone"}:  {""},
			{Machine: "lease", ID: "whole"}: {string(LeaseTerminated), string(LeaseError)},
		},
		Check: inStep,
	})
}

func harness(fresh func()) crashtest.Harness {
	h := crashtest.Harness{
		New: func(testing.TB) lifecycle.Store {
			if fresh != nil {
				fresh()
			}
			return &lifecycle.MemoryStore{KeepHistory: -1}
		},
	}
	if os.Getenv("INTERLOCK_LONG") == "" {
		h.Kinds = []crashtest.Kind{crashtest.CrashBefore, crashtest.CrashAfter, crashtest.LostAnswer, crashtest.Paused}
	}
	return h
}

// crashing starts a process that sweeps, and tells what its plugin is asked for.
func crashing(ctx context.Context, p *crashtest.Process, tell func(what string, a Allocation)) (*Service, error) {
	if err := p.Join(ctx, 12*time.Minute); err != nil {
		return nil, err
	}
	effect := func(what string) func(context.Context, Allocation) error {
		return func(ctx context.Context, a Allocation) error {
			err := p.Effect(ctx)
			if err == nil {
				tell(what, a)
			}
			return err
		}
	}
	s := newService(&Config{Owner: p.Owner(), Queue: p.Queue(), Plugins: map[string]Plugin{"host": {
		Reserve: func(ctx context.Context, a Allocation) (string, error) { return "rack 7", effect("reserve")(ctx, a) },
		Update:  effect("update"), OnStart: effect("start"), BeforeEnd: effect("before end"), OnEnd: effect("end"),
	}}})
	// The harness learns the tables, and nothing of who works: an update or a
	// delete that is asked for again may have nothing left to do.
	crashtest.Manage(p, Lease, &lifecycle.Config[Call]{BeforeCommit: s.beforeCommit})
	crashtest.Manage(p, EventRecord, &lifecycle.Config[Call]{BeforeCommit: s.moveNote, Observe: s.observe})
	s.Leases = lifecycle.Must(Lease, p.Store(), s.leases())
	s.Reservations = crashtest.Manage(p, ReservationRecord, &lifecycle.Config[Call]{})
	s.Events = lifecycle.Must(EventRecord, p.Store(), s.events())
	s.calendar = crashtest.Manage(p, calendar, &lifecycle.Config[noteEvent]{})
	p.Every(func(ctx context.Context) error { _, err := s.Sweep(ctx); return err })
	return s, nil
}

// Two leases of the same rack, one after the other, of which nobody asks for
// anything: two processes execute their events as they become due, or too late,
// because nobody has looked. With a fault at every write, every event is executed
// once or has failed, and the rack is never handed out before it was given back.
func TestCrashesOfProcess(t *testing.T) {
	var mu sync.Mutex
	var told []string
	crashtest.Run(t, harness(func() { told = nil }), crashtest.Scenario[*Service]{
		Processes: []string{"manager", "other"}, Tick: 5 * time.Minute,
		Start: func(ctx context.Context, p *crashtest.Process) (*Service, error) {
			s, err := crashing(ctx, p, func(what string, a Allocation) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, what+" "+a.Lease)
			})
			if err == nil {
				p.Every(func(ctx context.Context) error { _, err := s.Process(ctx); return err })
			}
			return s, err
		},
		Script: func(_ context.Context, w *crashtest.Clients[*Service]) error {
			start := time.Now().Add(45 * time.Minute) // after a creation that is given up
			leases := []struct {
				id   string
				spec LeaseSpec
			}{
				{"first", LeaseSpec{Start: start, End: start.Add(10 * time.Minute), BeforeEnd: start.Add(5 * time.Minute), Reservations: []Request{{"host", 1}}}},
				{"second", LeaseSpec{Start: start.Add(10 * time.Minute), End: start.Add(20 * time.Minute), Reservations: []Request{{"host", 1}}}},
			}
			for _, lease := range leases {
				err := w.Insist("manager", "create "+lease.id, func(ctx context.Context, s *Service) error {
					now, err := s.GetLease(ctx, lease.id)
					if errors.Is(err, lifecycle.ErrNotFound) {
						_, err = s.CreateLease(ctx, lease.id, lease.spec)
					} else if err == nil && now.Status.IsTransitional() {
						err = errors.New(string(now.Status))
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			w.Pass(75 * time.Minute)
			return w.Insist("other", "look", func(ctx context.Context, s *Service) error {
				for e, err := range s.Events.All(ctx, lifecycle.Select[EventState]{States: []EventState{EventUndone, EventInProgress}}) {
					if err != nil {
						return err
					}
					return errors.New(e.ID + " is " + string(e.State))
				}
				return nil
			})
		},
		Ends: map[lifecycle.Key][]string{
			{Machine: "lease", ID: "first"}:  {string(LeaseTerminated), string(LeaseError)},
			{Machine: "lease", ID: "second"}: {string(LeaseTerminated), string(LeaseError)},
		},
		Check: func(ctx context.Context, s *Service) error {
			mu.Lock()
			defer mu.Unlock()
			// An end that has failed is over for the clock; whether it has given back
			// the rack, nobody knows.
			first, err := s.GetLease(ctx, "first")
			if err == nil && first.Status == LeaseTerminated && slices.Contains(told, "start second") &&
				slices.Index(told, "start second") < slices.Index(told, "end first") {
				err = fmt.Errorf("the rack was handed out before it was given back: %v", told)
			}
			return errors.Join(err, inStep(ctx, s))
		},
	})
}

// crashScript is a lease that lives its life, and one that is deleted early.
func crashScript(_ context.Context, w *crashtest.Clients[*Service]) error {
	ends := time.Now().Add(1000 * time.Hour)
	steps := []struct {
		what string
		to   LeaseState
		do   func(ctx context.Context, s *Service, id string) error
	}{
		{"create", LeasePending, func(ctx context.Context, s *Service, id string) error {
			_, err := s.CreateLease(ctx, id, LeaseSpec{Start: ends.Add(-time.Hour), End: ends, Reservations: []Request{{"host", 1}}})
			return err
		}},
		{"update", LeasePending, func(ctx context.Context, s *Service, id string) error {
			_, err := s.UpdateLease(ctx, id, LeaseUpdate{End: ends.Add(time.Minute)})
			return err
		}},
		{"start", LeaseActive, func(ctx context.Context, s *Service, id string) error {
			_, err := s.StartLease(ctx, id)
			return err
		}},
		{"end", LeaseTerminated, func(ctx context.Context, s *Service, id string) error {
			_, err := s.EndLease(ctx, id)
			return err
		}},
	}
	for _, lease := range []struct {
		id    string
		steps int
	}{{"gone", 3}, {"whole", 4}} {
		for _, step := range steps[:lease.steps] {
			err := w.Insist("manager", step.what+" "+lease.id, func(ctx context.Context, s *Service) error {
				err := step.do(ctx, s, lease.id)
				switch now, gone := s.GetLease(ctx, lease.id); {
				case err == nil || gone != nil:
					return err // a lease that is not there is to be created again
				case now.Status == step.to || now.Status == LeaseError:
					return nil // it was done, or has failed for good
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return w.Insist("manager", "delete gone", func(ctx context.Context, s *Service) error {
		err := s.DeleteLease(ctx, "gone")
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		return err
	})
}

// inStep says whether all statuses go together in the end.
func inStep(ctx context.Context, s *Service) error {
	leases, err := s.ListLeases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		related := make([]relation.Related, 0, 3)
		for _, r := range l.Reservations {
			related = append(related, reservationRole.Saw(r.ID, r.Status))
		}
		for _, e := range l.Events {
			related = append(related, eventRoles[e.Type].Saw(e.ID, e.Status))
			if e.Status == EventInProgress {
				return errors.New(e.ID + " is in progress, and its lease is " + string(l.Status))
			}
		}
		if err := Relationships.Check(l.Status, related...); err != nil && l.Status != LeaseError {
			return err
		}
	}
	if err := calendarRight(ctx, s); err != nil {
		return err
	}
	if n, err := s.Reservations.List(ctx, lifecycle.Select[ReservationState]{After: "gone/"}); err != nil || len(n) > 1 {
		return errors.Join(err, errors.New("reservations of a lease that is gone"))
	}
	return nil
}

// calendarRight says whether what is in the calendar is what is UNDONE.
func calendarRight(ctx context.Context, s *Service) error {
	wrong := map[string]bool{}
	for e, err := range s.Events.All(ctx, lifecycle.Select[EventState]{States: []EventState{EventUndone}}) {
		if err != nil {
			return err
		}
		wrong[noteID(e.ID, &e.Payload)] = true
	}
	for n, err := range s.calendar.All(ctx, lifecycle.Select[noteState]{}) {
		if err != nil {
			return err
		}
		if !wrong[n.ID] {
			return errors.New(n.ID + " is in the calendar, and not UNDONE")
		}
		delete(wrong, n.ID)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%v are UNDONE, and not in the calendar", wrong)
	}
	return nil
}
