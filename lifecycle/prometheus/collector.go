package prometheus

import (
	"context"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/instruments"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// Collector has the metrics of any number of machines, queues and lock trees. [New] makes
// one; the zero Collector is not usable. Register it once. It is safe for concurrent use
// and must not be copied.
type Collector struct {
	backend backend
	vectors []client.Collector // of the backend
	gauges  instruments.Gauges
	descs   map[*instruments.Metric]*client.Desc // of gauges
}

var _ client.Collector = (*Collector)(nil)

// New returns a collector without series.
func New() *Collector {
	c := &Collector{
		backend: backend{map[*instruments.Metric]*client.CounterVec{}, map[*instruments.Metric]*client.HistogramVec{}},
		descs:   map[*instruments.Metric]*client.Desc{},
	}
	for _, m := range instruments.All {
		switch m.Kind {
		case instruments.Counter:
			c.backend.counters[m] = client.NewCounterVec(client.CounterOpts{Name: m.Prometheus, Help: m.Help}, m.Labels)
			c.vectors = append(c.vectors, c.backend.counters[m])
		case instruments.Histogram:
			opts := client.HistogramOpts{Name: m.Prometheus, Help: m.Help, Buckets: m.Buckets}
			c.backend.histograms[m] = client.NewHistogramVec(opts, m.Labels)
			c.vectors = append(c.vectors, c.backend.histograms[m])
		case instruments.Gauge:
			c.descs[m] = client.NewDesc(m.Prometheus, m.Help, m.Labels, nil)
		}
	}
	return c
}

// Observer returns the observer for the managers of a machine, for [lifecycle.Config]. It
// makes the series of the table's rows, so that they are 0 before the first event.
func (c *Collector) Observer(table *fsm.Table) lifecycle.Observer {
	return instruments.Machine(c.backend, table)
}

// QueueObserver returns the observer that measures how long actions wait in a queue, for
// [queue.Config]. The label queue has the name.
func QueueObserver[K comparable](c *Collector, name string) queue.Observer[K] {
	return instruments.QueueObserver[K](c.backend, name)
}

// LockObserver returns the observer that measures how long requests wait for a lock, for
// [lock.Config]. The label lock has the name.
func (c *Collector) LockObserver(name string) lock.Observer {
	return instruments.LockObserver(c.backend, name)
}

// AddManager makes scrapes count the stuck objects of a machine. A later manager of the
// same name replaces it: managers with different stores need different names.
func (c *Collector) AddManager(machine string, m lifecycle.AnyManager) {
	c.gauges.AddManager(machine, m)
}

// AddQueue makes scrapes read the depth of a [queue.Queuer]. It visits every key that is busy. A
// later queue of the same name replaces it.
func (c *Collector) AddQueue(name string, q interface{ Stats() queue.Stats }) {
	c.gauges.AddQueue(name, q)
}

// AddLocks makes scrapes read the numbers of locks of a [lock.Tree] that are held and that wait. A later
// tree of the same name replaces it.
func (c *Collector) AddLocks(name string, l interface{ Counts() lock.Snapshot }) {
	c.gauges.AddLocks(name, l)
}

// Describe implements the collector of the client library.
func (c *Collector) Describe(ch chan<- *client.Desc) {
	for _, v := range c.vectors {
		v.Describe(ch)
	}
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements the collector of the client library.
func (c *Collector) Collect(ch chan<- client.Metric) {
	for _, v := range c.vectors {
		v.Collect(ch)
	}
	err := c.gauges.Read(context.Background(), func(m *instruments.Metric, value float64, labels ...string) {
		ch <- client.MustNewConstMetric(c.descs[m], client.GaugeValue, value, labels...)
	})
	if err != nil {
		ch <- client.NewInvalidMetric(c.descs[instruments.StuckObjects], err)
	}
}

// backend makes series.
type backend struct {
	counters   map[*instruments.Metric]*client.CounterVec
	histograms map[*instruments.Metric]*client.HistogramVec
}

func (b backend) Counter(m *instruments.Metric, labels ...string) instruments.Count {
	series := b.counters[m].WithLabelValues(labels...)
	return func(context.Context) { series.Inc() }
}

func (b backend) Histogram(m *instruments.Metric, labels ...string) instruments.Observe {
	series := b.histograms[m].WithLabelValues(labels...)
	return func(_ context.Context, d time.Duration) { series.Observe(d.Seconds()) }
}
