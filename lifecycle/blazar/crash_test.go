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

// harness tests all faults with INTERLOCK_LONG=1, otherwise those that leave an operation
// to another process.
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

// startProcess starts a process that sweeps, and records the calls of its plugin.
func startProcess(ctx context.Context, p *crashtest.Process, record func(call string, a Allocation)) (*Service, error) {
	if err := p.Join(ctx, 12*time.Minute); err != nil {
		return nil, err
	}
	effect := func(call string) func(context.Context, Allocation) error {
		return func(ctx context.Context, a Allocation) error {
			err := p.Effect(ctx)
			if err == nil {
				record(call, a)
			}
			return err
		}
	}
	s, err := New(p.Store(), &Config{Owner: p.Owner(), Queue: p.Queue(), Plugins: map[string]Plugin{"host": {
		Reserve: func(ctx context.Context, a Allocation) (string, error) { return "rack 7", effect("reserve")(ctx, a) },
		Update:  effect("update"), OnStart: effect("start"), OnEnd: effect("end"),
	}}})
	if err != nil {
		return nil, err
	}
	// The harness checks the histories. It does not count the work, because a repeated
	// update or delete may have nothing left to do.
	crashtest.Manage(p, Lease, &lifecycle.Config[Call]{BeforeCommit: s.beforeCommit})
	s.Reservations = crashtest.Manage(p, Reservation, &lifecycle.Config[Call]{})
	p.Every(func(ctx context.Context) error { _, err := s.Sweep(ctx); return err })
	return s, nil
}

// Every method of the service, with a fault at every write of it.
func TestCrashes(t *testing.T) {
	crashtest.Run(t, harness(nil), crashtest.Scenario[*Service]{
		Processes: []string{"manager"}, Tick: 5 * time.Minute,
		Start: func(ctx context.Context, p *crashtest.Process) (*Service, error) {
			return startProcess(ctx, p, func(string, Allocation) {})
		},
		Script: func(_ context.Context, w *crashtest.Clients[*Service]) error { return methodsScript(w) },
		Ends: map[lifecycle.Key][]string{
			{Machine: "lease", ID: "deleted"}: {""},
			{Machine: "lease", ID: "ended"}:   {string(LeaseTerminated), string(LeaseError)},
		},
		Check: statusesMatch,
	})
}

// methodsScript creates, updates and starts two leases, ends one and deletes the other.
func methodsScript(w *crashtest.Clients[*Service]) error {
	end := time.Now().Add(1000 * time.Hour)
	steps := []struct {
		name string
		to   LeaseState
		do   func(ctx context.Context, s *Service, id string) (LeaseDetails, error)
	}{
		{"create", LeasePending, func(ctx context.Context, s *Service, id string) (LeaseDetails, error) {
			return s.CreateLease(ctx, id, LeaseSpec{Start: end.Add(-time.Hour), End: end, Reservations: []Request{{Resource: "host", Amount: 1}}})
		}},
		{"update", LeasePending, func(ctx context.Context, s *Service, id string) (LeaseDetails, error) {
			return s.UpdateLease(ctx, id, LeaseUpdate{End: end.Add(time.Minute)})
		}},
		{"start", LeaseActive, func(ctx context.Context, s *Service, id string) (LeaseDetails, error) { return s.StartLease(ctx, id) }},
		{"end", LeaseTerminated, func(ctx context.Context, s *Service, id string) (LeaseDetails, error) { return s.EndLease(ctx, id) }},
	}
	for _, lease := range []struct {
		id    string
		steps int
	}{{"deleted", 3}, {"ended", 4}} {
		for _, step := range steps[:lease.steps] {
			err := w.Insist("manager", step.name+" "+lease.id, func(ctx context.Context, s *Service) error {
				_, err := step.do(ctx, s, lease.id)
				switch now, gone := s.GetLease(ctx, lease.id); {
				case err == nil || gone != nil:
					return err // a lease that does not exist is created again
				case now.Status == step.to || now.Status == LeaseError:
					return nil
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return w.Insist("manager", "delete", func(ctx context.Context, s *Service) error {
		err := s.DeleteLease(ctx, "deleted")
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		return err
	})
}

// Two processes execute the events of two leases that follow each other on one rack, with
// a fault at every write. Every event is executed once or has failed, and the rack is
// released before the second lease starts.
func TestCrashesOfProcess(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	crashtest.Run(t, harness(func() { calls = nil }), crashtest.Scenario[*Service]{
		Processes: []string{"manager", "other"}, Tick: 5 * time.Minute,
		Start: func(ctx context.Context, p *crashtest.Process) (*Service, error) {
			s, err := startProcess(ctx, p, func(call string, a Allocation) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, call+" "+a.Lease)
			})
			if err == nil {
				p.Every(func(ctx context.Context) error { _, err := s.Process(ctx); return err })
			}
			return s, err
		},
		Script: func(_ context.Context, w *crashtest.Clients[*Service]) error { return eventsScript(w) },
		Ends: map[lifecycle.Key][]string{
			{Machine: "lease", ID: "first"}:  {string(LeaseTerminated), string(LeaseError)},
			{Machine: "lease", ID: "second"}: {string(LeaseTerminated), string(LeaseError)},
		},
		Check: func(ctx context.Context, s *Service) error {
			mu.Lock()
			defer mu.Unlock()
			// A failed end is over, and may not have released the rack.
			first, err := s.GetLease(ctx, "first")
			if err == nil && first.Status == LeaseTerminated && slices.Contains(calls, "start second") &&
				slices.Index(calls, "start second") < slices.Index(calls, "end first") {
				err = fmt.Errorf("the rack was not released before the second start: %v", calls)
			}
			return errors.Join(err, statusesMatch(ctx, s))
		},
	})
}

// eventsScript creates two leases, and waits until all events are over.
func eventsScript(w *crashtest.Clients[*Service]) error {
	start := time.Now().Add(45 * time.Minute) // after the timeout of a creation
	for i, id := range []string{"first", "second"} {
		from := start.Add(time.Duration(i) * 10 * time.Minute)
		spec := LeaseSpec{Start: from, End: from.Add(10 * time.Minute), Reservations: []Request{{Resource: "host", Amount: 1}}}
		err := w.Insist("manager", "create "+id, func(ctx context.Context, s *Service) error {
			now, err := s.GetLease(ctx, id)
			if errors.Is(err, lifecycle.ErrNotFound) {
				_, err = s.CreateLease(ctx, id, spec)
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
	return w.Insist("other", "wait", func(ctx context.Context, s *Service) error {
		for e, err := range s.Events.All(ctx, lifecycle.Select[EventState]{States: []EventState{EventUndone, EventInProgress}}) {
			if err != nil {
				return err
			}
			return errors.New(e.ID + " is " + string(e.State))
		}
		return nil
	})
}

// statusesMatch returns an error if statuses do not match, or if members of a deleted
// lease exist.
func statusesMatch(ctx context.Context, s *Service) error {
	leases, err := s.ListLeases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		var related []relation.Related
		for _, r := range l.Reservations {
			related = append(related, reservationRole.Saw(r.ID, r.Status))
		}
		for _, e := range l.Events {
			related = append(related, eventRoles[e.Type].Saw(e.ID, e.Status))
			if e.Status == EventInProgress {
				return errors.New(e.ID + " is IN_PROGRESS, and its lease is " + string(l.Status))
			}
		}
		if err := Relationships.Check(l.Status, related...); err != nil && l.Status != LeaseError {
			return err
		}
	}
	left, err := s.members(ctx, "deleted")
	if err == nil && len(left.reservations)+len(left.events) > 0 {
		err = errors.New("members of a deleted lease exist")
	}
	return err
}
