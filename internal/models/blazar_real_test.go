package models

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// TestLeaseAsItRuns gives random calls to a real Service and to the model of one,
// and compares the statuses of the lease, its reservations and its events. Every
// call is over before the next: what is interrupted is not compared.
func TestLeaseAsItRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawTurn), 1, 25).Draw(t, "script")
		if wrong := turnBoth(script); wrong != "" {
			t.Fatal(wrong)
		}
	})
}

// turn is one call, and how its plugin takes it.
type turn struct {
	Call blazar.Call // empty: Process; Observe: time passes
	At   int         // the reservation at which the plugin fails; 2: it does not
	How  string
}

func drawTurn(t *rapid.T) turn {
	return turn{
		rapid.SampledFrom([]blazar.Call{
			"", "", blazar.Observe, blazar.Create, blazar.Create, blazar.Update, blazar.Delete, blazar.Start, blazar.Terminate,
		}).Draw(t, "call"),
		rapid.SampledFrom([]int{0, 1, 2, 2, 2, 2}).Draw(t, "at"),
		rapid.SampledFrom([]string{"fails", "is refused"}).Draw(t, "how"),
	}
}

var errPlugin = errors.New("the resources are broken")

// taking is a plugin that takes a call as it should.
type taking struct {
	turn
	asked int
}

func (p *taking) answer() error {
	n := p.asked
	p.asked++
	switch {
	case n != p.At:
		return nil
	case p.How == "is refused":
		return blazar.ErrRefused
	}
	return errPlugin
}

func turnBoth(script []turn) string {
	ctx := context.Background()
	s := &Blazar{Leases: 1, Reservations: 2}
	m := leases{}
	now := time.Unix(0, 0)
	plugin := &taking{}
	does := func(context.Context, blazar.Allocation) error { return plugin.answer() }
	real, err := blazar.New(lifecycle.NewMemoryStore(), &blazar.Config{
		Now: func() time.Time { return now },
		Plugins: map[string]blazar.Plugin{"host": {
			Reserve: func(context.Context, blazar.Allocation) (string, error) { return "", plugin.answer() },
			OnStart: does, OnEnd: does,
		}},
	})
	if err != nil {
		return err.Error()
	}
	for i, tu := range script {
		*plugin = taking{turn: tu}
		var err error
		asked := 0
		begin := func(call blazar.Call) {
			if next, ok := s.begin(m.L[0], call, actorOf(call)); ok {
				m.L[0] = next
				s.run(&m, tu, &asked)
			}
		}
		switch tu.Call {
		case blazar.Observe:
			now, m.Now = now.Add(time.Minute), m.Now+1
		case blazar.Create:
			if m.Now >= startOf(0) {
				continue // a lease that begins in the past is not a lease
			}
			_, err = real.CreateLease(ctx, "a", blazar.LeaseSpec{
				Start: time.Unix(60, 0), End: time.Unix(120, 0), Reservations: []blazar.Request{{Resource: "host"}, {Resource: "host"}},
			})
			begin(tu.Call)
		case blazar.Update:
			_, err = real.Guard(ctx, "a", tu.Call, func(ctx context.Context, l blazar.LeaseDetails) error {
				return errors.Join(plugin.answer(), plugin.answer())
			})
			begin(tu.Call)
		case blazar.Delete:
			err = real.DeleteLease(ctx, "a")
			begin(tu.Call)
		case blazar.Start:
			_, err = real.StartLease(ctx, "a")
			begin(tu.Call)
		case blazar.Terminate:
			_, err = real.EndLease(ctx, "a")
			begin(tu.Call)
		default:
			_, err = real.Process(ctx)
			for more := true; more; {
				more = false
				s.process(m, func(_ string, _ bool, next leases) { m, more = next, true })
				s.run(&m, tu, &asked)
			}
		}
		runs, models := describe(ctx, real), m.L[0].statuses(s)
		if runs != models {
			return fmt.Sprintf("after %d of %v: %s runs (%v), the model has %s", i+1, script, runs, err, models)
		}
	}
	return ""
}

// actorOf returns the actor of a call.
func actorOf(call blazar.Call) fsm.Actor {
	if call == blazar.Start || call == blazar.Terminate {
		return blazar.Manager
	}
	return blazar.User
}

// run lets the method of the lease come to its end, as the plugin takes it, which
// was asked so many times.
func (s *Blazar) run(m *leases, tu turn, asked *int) {
	for m.L[0].Present.At {
		want, w := "goes on", m.L[0].Present
		fails := false
		if int(w.Next) < s.Reservations && (w.call() != blazar.Delete && w.call() != blazar.Terminate ||
			m.L[0].reservations(2)[w.Next] != blazar.ReservationDeleted) {
			fails = *asked == tu.At
			*asked++
		}
		if fails {
			want = tu.How
		}
		// What does not refuse by its table fails.
		var steps []string
		next := map[string]leases{}
		all := *m
		all.Left = spent{Failures: 1, Refusals: 1}
		s.works(all, 0, false, func(label string, _ bool, after leases) {
			label = label[strings.Index(label, " ")+1:]
			_, label, _ = strings.Cut(label, " ")
			steps, next[label] = append(steps, label), after
		})
		if _, ok := next[want]; !ok && fails {
			want = "fails"
		}
		if _, ok := next[want]; !ok {
			want = steps[0]
		}
		*m = next[want]
		m.Left = spent{}
	}
}

// statuses are those that are compared.
func (l *lease) statuses(s *Blazar) string {
	if !l.Exists {
		return "none"
	}
	return fmt.Sprint(l.status(), l.reservations(s.Reservations), l.start(), " ", l.end())
}

func describe(ctx context.Context, real *blazar.Service) string {
	l, err := real.GetLease(ctx, "a")
	if err != nil {
		return "none"
	}
	var reservations []blazar.ReservationState
	for _, r := range l.Reservations {
		reservations = append(reservations, r.Status)
	}
	events := map[string]blazar.EventState{}
	for _, e := range l.Events {
		events[e.Type] = e.Status
	}
	return fmt.Sprint(l.Status, reservations, events[blazar.StartLease], " ", events[blazar.EndLease])
}
