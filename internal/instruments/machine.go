package instruments

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Backend makes counters and histograms. The labels are the values of [Metric].Labels, in
// order. Equal labels give the same series.
type Backend interface {
	Counter(m *Metric, labels ...string) Count
	Histogram(m *Metric, labels ...string) Observe
}

// Count adds one to a counter. Observe adds a time to a histogram.
type (
	Count   func(context.Context)
	Observe func(context.Context, time.Duration)
)

// machine turns the events of one machine into measurements.
type machine struct {
	name  string
	table *fsm.Table

	steps     map[step]transition // the edges of the table; never changes
	conflicts Count
	reports   [lifecycle.Refused + 1]Count
	calls     map[string]Observe // of the store

	// Series that are made when they are needed.
	otherSteps   family[transition]
	refusals     family[Count]
	operations   family[Observe]
	retries      family[Count]
	sweeps       family[Observe]
	sweepResults family[Count]
	storeErrors  family[Count]
}

// step identifies a transition. From is empty for an object that did not exist.
type step struct{ event, from, to string }

type transition struct {
	count   Count
	inState Observe // nil: the object did not exist
}

// Machine returns an observer for the managers of a machine.
func Machine(b Backend, t *fsm.Table) lifecycle.Observer {
	m := &machine{
		name: t.Name, table: t, steps: map[step]transition{}, conflicts: b.Counter(Conflicts, t.Name), calls: map[string]Observe{},
	}
	m.otherSteps.make = func(l labels) transition {
		made := transition{count: b.Counter(Transitions, t.Name, l[0], l[1], l[2])}
		if i, ok := t.StateIndex(l[1]); l[1] != "" && !(ok && t.States[i].Kind == fsm.Absent) {
			made.inState = b.Histogram(StateTime, t.Name, l[1])
		}
		return made
	}
	m.refusals.make = func(l labels) Count { return b.Counter(Refusals, t.Name, l[0], l[1]) }
	m.operations.make = func(l labels) Observe { return b.Histogram(OperationTime, t.Name, l[0], l[1]) }
	m.retries.make = func(l labels) Count { return b.Counter(Retries, t.Name, l[0]) }
	m.sweeps.make = func(l labels) Observe { return b.Histogram(SweepTime, t.Name, l[0]) }
	m.sweepResults.make = func(l labels) Count { return b.Counter(SweepResults, t.Name, l[0], l[1]) }
	m.storeErrors.make = func(l labels) Count { return b.Counter(StoreErrors, t.Name, l[0], l[1]) }
	for verdict := range m.reports {
		m.reports[verdict] = b.Counter(Reports, t.Name, lifecycle.Verdict(verdict).String())
	}
	for _, call := range []string{"get", "list", "commit"} {
		m.calls[call] = b.Histogram(StoreTime, t.Name, call)
	}
	// An increase is seen only in a series that exists before it.
	if sweepable(t) {
		m.sweeps.of(labels{lifecycle.Code(nil)})
		for _, cause := range []string{ownerDead, overdue, unattended} {
			for r := lifecycle.Moved; r <= lifecycle.NotMoved; r++ {
				m.sweepResults.of(labels{cause, nameOf(r)})
			}
		}
	}
	for edge := range t.Edges() {
		if t.Rows[edge.Row].Then == fsm.ThenIgnore {
			continue // it is no change
		}
		from := &t.States[edge.From]
		s := step{t.Events[edge.Event], from.Name, t.States[edge.To].Name}
		made := m.otherSteps.of(labels{s.event, s.from, s.to})
		if from.Kind == fsm.Absent {
			s.from = ""
		}
		m.steps[s] = made
	}
	return lifecycle.Observer{
		Changed: m.changed, Refused: m.refused, Reported: m.reported, Finished: m.finished,
		Retried: m.retried, Swept: m.swept, Stored: m.stored,
	}
}

// sweepable reports whether a table needs sweeps. Without them its series of sweeps would
// stay at 0, and raise the alert that sweeps have stopped.
func sweepable(t *fsm.Table) bool {
	return slices.ContainsFunc(t.States, func(s fsm.TableState) bool { return s.Kind == fsm.Transitional }) ||
		slices.ContainsFunc(t.Rows, func(r fsm.TableRow) bool { return r.Timeout > 0 })
}

func (m *machine) changed(ctx context.Context, e lifecycle.Changed) {
	made, ok := m.steps[step{e.Event, e.From, e.To}]
	if !ok { // an override, a migration, or names of an older version
		event := e.Event
		if event == "" {
			event = "(add)"
		}
		made = m.otherSteps.of(labels{event, e.From, e.To})
	}
	made.count(ctx)
	if made.inState != nil {
		made.inState(ctx, e.InState)
	}
}

func (m *machine) refused(ctx context.Context, err error) {
	e, ok := errors.AsType[*lifecycle.Error](err)
	if !ok {
		return
	}
	event := e.Event
	if event == "" || event == lifecycle.Overridden || event == lifecycle.Migrated {
		event = "(" + e.Verb + ")"
	} else if _, declared := m.table.EventIndex(event); !declared {
		event = "(undeclared)" // it may be the text of a client
	}
	m.refusals.of(labels{event, lifecycle.Code(err)})(ctx)
}

func (m *machine) reported(ctx context.Context, e lifecycle.Reported) { m.reports[e.Verdict](ctx) }

func (m *machine) finished(ctx context.Context, e lifecycle.Finished) {
	m.operations.of(labels{e.Event, lifecycle.Code(e.Err)})(ctx, e.Took)
}

func (m *machine) retried(ctx context.Context, e lifecycle.Retried) {
	m.retries.of(labels{e.Event})(ctx)
}

func (m *machine) swept(ctx context.Context, e lifecycle.Swept) {
	m.sweeps.of(labels{lifecycle.Code(e.Err)})(ctx, e.Took)
	for i := range e.Results {
		r := &e.Results[i]
		m.sweepResults.of(labels{causeOf(r), nameOf(r.Resolution)})(ctx)
	}
}

func (m *machine) stored(ctx context.Context, e lifecycle.Stored) {
	m.calls[e.Call](ctx, e.Took)
	switch {
	case e.Err == nil:
	case errors.Is(e.Err, lifecycle.ErrConflict):
		m.conflicts(ctx)
	default:
		m.storeErrors.of(labels{e.Call, lifecycle.Code(e.Err)})(ctx)
	}
}

func nameOf(r lifecycle.Resolution) string { return strings.ReplaceAll(r.String(), " ", "-") }

// The causes of stuck objects.
const (
	ownerDead  = "owner-dead"
	overdue    = "deadline"
	unattended = "no-owner"
)

func causeOf(r *lifecycle.SweepResult) string {
	switch {
	case r.OwnerDead:
		return ownerDead
	case r.Overdue:
		return overdue
	}
	return unattended
}

// labels are values of labels, without that of the machine.
type labels [3]string

// family makes each of its series once.
type family[Series any] struct {
	make func(labels) Series

	mu   sync.Mutex
	made map[labels]Series
}

func (f *family[Series]) of(l labels) Series {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.made[l]
	if !ok {
		if f.made == nil {
			f.made = map[labels]Series{}
		}
		s = f.make(l)
		f.made[l] = s
	}
	return s
}
