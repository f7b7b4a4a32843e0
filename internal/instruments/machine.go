package instruments

import (
	"cmp"
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
	table  *fsm.Table
	steps  map[step]transition // the edges of the table; never changes
	calls  map[string]Observe  // of the store; never changes
	counts family[Count]
	times  family[Observe]
}

// step identifies a transition. Its from is empty for an object that did not exist.
type step struct{ event, from, to string }

type transition struct {
	count   Count
	inState Observe // nil: the object did not exist
}

// Machine returns an observer for the managers of a machine.
func Machine(b Backend, t *fsm.Table) lifecycle.Observer {
	m := &machine{
		table: t, steps: map[step]transition{}, calls: map[string]Observe{},
		counts: family[Count]{machine: t.Name, make: b.Counter, made: map[key]Count{}},
		times:  family[Observe]{machine: t.Name, make: b.Histogram, made: map[key]Observe{}},
	}
	m.makeSeries()
	return lifecycle.Observer{
		Changed: m.changed, Refused: m.refused, Reported: m.reported, Finished: m.finished,
		Retried: m.retried, Swept: m.swept, Stored: m.stored,
	}
}

// makeSeries makes the series that the table determines. An increase is seen only in a series
// that exists before it.
func (m *machine) makeSeries() {
	m.counts.of(conflicts)
	for verdict := range lifecycle.Refused + 1 {
		m.counts.of(reports, verdict.String())
	}
	for _, call := range []string{"get", "list", "commit"} {
		m.calls[call] = m.times.of(storeTime, call)
	}
	if sweepable(m.table) {
		m.times.of(sweepTime, lifecycle.Code(nil))
		for _, cause := range []string{ownerDead, overdue, unattended} {
			for _, r := range resolutions {
				m.counts.of(sweepResults, cause, nameOf(r))
			}
		}
	}
	for edge := range m.table.Edges() {
		if m.table.Rows[edge.Row].Then == fsm.ThenIgnore {
			continue // it is not a change
		}
		from := &m.table.States[edge.From]
		s := step{m.table.Events[edge.Event], from.Name, m.table.States[edge.To].Name}
		made := transition{count: m.counts.of(transitions, s.event, s.from, s.to)}
		if from.Kind == fsm.Absent {
			s.from = ""
		} else {
			made.inState = m.times.of(stateTime, s.from)
		}
		m.steps[s] = made
	}
}

// sweepable reports whether a table needs sweeps. Without them its series of sweeps would
// stay at 0, and raise the alert that sweeps have stopped.
func sweepable(t *fsm.Table) bool {
	return slices.ContainsFunc(t.States, func(s fsm.TableState) bool { return s.Kind == fsm.Transitional }) ||
		slices.ContainsFunc(t.Rows, func(r fsm.TableRow) bool { return r.Timeout > 0 })
}

func (m *machine) changed(ctx context.Context, e lifecycle.CommittedChange) {
	made, ok := m.steps[step{e.Event, e.From, e.To}]
	if !ok { // an override, a migration, or names of an older version
		made.count = m.counts.of(transitions, cmp.Or(e.Event, "(add)"), e.From, e.To)
		if e.From != "" {
			made.inState = m.times.of(stateTime, e.From)
		}
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
	m.counts.of(refusals, event, lifecycle.Code(err))(ctx)
}

func (m *machine) reported(ctx context.Context, e lifecycle.Reported) {
	m.counts.of(reports, e.Verdict.String())(ctx)
}

func (m *machine) finished(ctx context.Context, e lifecycle.Finished) {
	m.times.of(operationTime, e.Event, lifecycle.Code(e.Err))(ctx, e.Took)
}

func (m *machine) retried(ctx context.Context, e lifecycle.FailedAttempt) {
	m.counts.of(retries, e.Event)(ctx)
}

func (m *machine) swept(ctx context.Context, e lifecycle.Swept) {
	m.times.of(sweepTime, lifecycle.Code(e.Err))(ctx, e.Took)
	for i := range e.Results {
		r := &e.Results[i]
		m.counts.of(sweepResults, causeOf(r), nameOf(r.Resolution))(ctx)
	}
}

func (m *machine) stored(ctx context.Context, e lifecycle.StoreCall) {
	m.calls[e.Call](ctx, e.Took)
	switch {
	case e.Err == nil:
	case errors.Is(e.Err, lifecycle.ErrConflict):
		m.counts.of(conflicts)(ctx)
	default:
		m.counts.of(storeErrors, e.Call, lifecycle.Code(e.Err))(ctx)
	}
}

// resolutions are those of a sweep.
var resolutions = []lifecycle.Resolution{
	lifecycle.Moved, lifecycle.Redone, lifecycle.NeedsOperator, lifecycle.NoRow, lifecycle.NoHandler,
	lifecycle.Overtaken, lifecycle.NotMoved,
}

func nameOf(r lifecycle.Resolution) string { return strings.ReplaceAll(string(r), " ", "-") }

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

// key identifies a series by the values of its labels, without the machine.
type key struct {
	metric *Metric
	labels [3]string
}

// family makes each of its series once.
type family[Series any] struct {
	machine string
	make    func(m *Metric, labels ...string) Series

	mu   sync.Mutex
	made map[key]Series
}

func (f *family[Series]) of(m *Metric, labels ...string) Series {
	k := key{metric: m}
	copy(k.labels[:], labels)
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.made[k]
	if !ok {
		s = f.make(m, append([]string{f.machine}, labels...)...)
		f.made[k] = s
	}
	return s
}
