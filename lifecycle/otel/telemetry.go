package otel

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/instruments"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// scope is the name of the tracer and the meter.
const scope = "github.com/interlock-go/interlock"

// Config has the parts of OpenTelemetry. The zero Config and nil mean the global ones, as
// they are when [New] is called.
type Config struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Propagator writes the trace context of a request into the record of its operation,
	// and reads it for the work. The values count for [lifecycle.Limits].Carrier.
	Propagator propagation.TextMapPropagator
}

// Telemetry has the instruments of any number of machines, queues and lock trees. [New]
// makes one; the zero Telemetry is not usable. It is safe for concurrent use and must not be
// copied.
type Telemetry struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	backend    backend
	gauges     instruments.Gauges
}

// New returns instruments. The error is that of the meter, which refuses an instrument.
func New(config *Config) (*Telemetry, error) {
	c := cmp.Or(config, new(Config))
	t := &Telemetry{
		tracer:     cmp.Or(c.TracerProvider, otel.GetTracerProvider()).Tracer(scope),
		propagator: cmp.Or(c.Propagator, otel.GetTextMapPropagator()),
		backend:    backend{map[*instruments.Metric]metric.Int64Counter{}, map[*instruments.Metric]metric.Float64Histogram{}},
	}
	return t, t.makeInstruments(cmp.Or(c.MeterProvider, otel.GetMeterProvider()).Meter(scope))
}

// makeInstruments makes the instruments of all metrics.
func (t *Telemetry) makeInstruments(meter metric.Meter) error {
	gauges := map[*instruments.Metric]metric.Float64Observable{}
	var observables []metric.Observable
	var errs error
	for _, m := range instruments.All {
		var err error
		unit, help := metric.WithUnit(m.Unit), metric.WithDescription(m.Help)
		switch m.Kind {
		case instruments.Counter:
			t.backend.counters[m], err = meter.Int64Counter(m.Name, unit, help)
		case instruments.Histogram:
			t.backend.histograms[m], err = meter.Float64Histogram(m.Name, unit, help, metric.WithExplicitBucketBoundaries(m.Buckets...))
		case instruments.Gauge:
			var gauge metric.Float64ObservableGauge
			gauge, err = meter.Float64ObservableGauge(m.Name, unit, help)
			gauges[m] = gauge
			observables = append(observables, gauge)
		}
		errs = errors.Join(errs, err)
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		err := t.gauges.Read(ctx, func(m *instruments.Metric, value float64, labels ...string) {
			o.ObserveFloat64(gauges[m], value, attributesOf(m, labels))
		})
		if err != nil {
			otel.Handle(err) // the SDK would export no metric after an error that is returned
		}
		return nil
	}, observables...)
	return errors.Join(errs, err)
}

// Observer returns the observer for the managers of a machine, for [lifecycle.Config]. It
// records metrics, and events in the span of the request.
func (t *Telemetry) Observer(table *fsm.Table) lifecycle.Observer {
	return lifecycle.Tee(instruments.Machine(t.backend, table), spanEvents)
}

// QueueObserver returns the observer that measures how long actions wait in a queue, for
// [queue.Config]. The attribute interlock.queue has the name.
func QueueObserver[K comparable](t *Telemetry, name string) queue.Observer[K] {
	return instruments.QueueObserver[K](t.backend, name)
}

// LockObserver returns the observer that measures how long requests wait for a lock, for
// [lock.Config]. The attribute interlock.lock has the name.
func (t *Telemetry) LockObserver(name string) lock.Observer {
	return instruments.LockObserver(t.backend, name)
}

// AddManager makes collections count the stuck objects of a machine. A later manager of
// the same name replaces it: managers with different stores need different names.
func (t *Telemetry) AddManager(machine string, m lifecycle.AnyManager) {
	t.gauges.AddManager(machine, m)
}

// AddQueue makes collections read the depth of a [queue.Queuer]. It visits every key that is busy.
// A later queue of the same name replaces it.
func (t *Telemetry) AddQueue(name string, q interface{ Stats() queue.Stats }) {
	t.gauges.AddQueue(name, q)
}

// AddLocks makes collections read the numbers of locks of a [lock.Tree] that are held and that wait. A later
// tree of the same name replaces it.
func (t *Telemetry) AddLocks(name string, l interface{ Counts() lock.Snapshot }) {
	t.gauges.AddLocks(name, l)
}

// backend makes series.
type backend struct {
	counters   map[*instruments.Metric]metric.Int64Counter
	histograms map[*instruments.Metric]metric.Float64Histogram
}

func (b backend) Counter(m *instruments.Metric, labels ...string) instruments.Count {
	counter, options := b.counters[m], []metric.AddOption{attributesOf(m, labels)}
	return func(ctx context.Context) { counter.Add(ctx, 1, options...) }
}

func (b backend) Histogram(m *instruments.Metric, labels ...string) instruments.Observe {
	histogram, options := b.histograms[m], []metric.RecordOption{attributesOf(m, labels)}
	return func(ctx context.Context, d time.Duration) { histogram.Record(ctx, d.Seconds(), options...) }
}

// attributesOf returns the labels of a metric.
func attributesOf(m *instruments.Metric, labels []string) metric.MeasurementOption {
	list := make([]attribute.KeyValue, len(labels))
	for i, value := range labels {
		list[i] = attribute.String(instruments.Prefix+m.Labels[i], value)
	}
	return metric.WithAttributeSet(attribute.NewSet(list...))
}
