// Package instruments is what the metrics of lifecycle/prometheus and lifecycle/otel have
// in common: their names, what they count, and when. The two packages are its back ends.
package instruments

import "strings"

// Kind is the kind of a [Metric].
type Kind string

// The kinds of metrics. Histograms are of seconds. Gauges are read when a back end needs
// them.
const (
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Gauge     Kind = "gauge"
)

// Metric describes a metric.
type Metric struct {
	Kind       Kind
	Name       string // for OpenTelemetry
	Prometheus string
	Unit       string // by UCUM
	Help       string
	Labels     []string  // for OpenTelemetry after Prefix
	Buckets    []float64 // upper bounds of a histogram, in seconds
}

// The metrics. The values of all labels are bounded by the tables of the machines, the
// names of queues and locks, and the constants of this repository.
var (
	transitions = metric(Counter, "interlock.transition.count", "interlock_transitions_total", "{transition}",
		"Changes that were committed.", "machine", "event", "from", "to")
	stateTime = histogram("interlock.state.duration", "interlock_state_duration_seconds", slow,
		"Time in a state until the next change of the object.", "machine", "state")
	refusals = metric(Counter, "interlock.refusal.count", "interlock_refusals_total", "{request}",
		"Requests that should have changed an object and returned an error.", "machine", "event", "code")
	conflicts = metric(Counter, "interlock.conflict.count", "interlock_conflicts_total", "{commit}",
		"Commits that another writer has overtaken, repeated ones included.", "machine")
	reports = metric(Counter, "interlock.report.count", "interlock_reports_total", "{report}",
		"Reports of peers by verdict.", "machine", "verdict")
	operationTime = histogram("interlock.operation.duration", "interlock_operation_duration_seconds", slow,
		"Time from the start of an operation to its outcome.", "machine", "event", "code")
	retries = metric(Counter, "interlock.retry.count", "interlock_retries_total", "{attempt}",
		"Attempts of work that failed and are repeated.", "machine", "event")
	StuckObjects = metric(Gauge, "interlock.stuck.count", "interlock_stuck_objects", "{object}",
		"Objects that a sweep would find now, up to 1000.", "machine", "cause")
	sweepTime = histogram("interlock.sweep.duration", "interlock_sweep_duration_seconds", fast,
		"Time of a sweep.", "machine", "code")
	sweepResults = metric(Counter, "interlock.sweep.result.count", "interlock_sweep_results_total", "{object}",
		"Stuck objects that sweeps have found.", "machine", "cause", "resolution")
	storeTime = histogram("interlock.store.duration", "interlock_store_duration_seconds", fast,
		"Time of a call of the store.", "machine", "call")
	storeErrors = metric(Counter, "interlock.store.error.count", "interlock_store_errors_total", "{call}",
		"Calls of the store that returned an error other than a conflict.", "machine", "call", "code")
	queueDepth = metric(Gauge, "interlock.queue.depth", "interlock_queue_depth", "{action}",
		"Actions in a queue. Those that are delayed or retrying are waiting too.", "queue", "state")
	queueOldest = metric(Gauge, "interlock.queue.oldest", "interlock_queue_oldest_seconds", "s",
		"Time that the first action in a queue has waited.", "queue")
	queueWait = histogram("interlock.queue.wait.duration", "interlock_queue_wait_seconds", slow,
		"Time from the acceptance of an action to its first attempt, without its delay.", "queue")
	lockRequests = metric(Gauge, "interlock.lock.depth", "interlock_lock_requests", "{request}",
		"Requests in a lock tree.", "lock", "state")
	lockWait = histogram("interlock.lock.wait.duration", "interlock_lock_wait_seconds", slow,
		"Time from a request for a lock to its grant.", "lock")
)

// All lists the metrics.
var All = []*Metric{
	transitions, stateTime, refusals, conflicts, reports, operationTime, retries, StuckObjects, sweepTime, sweepResults,
	storeTime, storeErrors, queueDepth, queueOldest, queueWait, lockRequests, lockWait,
}

func metric(kind Kind, name, prometheus, unit, help string, labels ...string) *Metric {
	return &Metric{Kind: kind, Name: name, Prometheus: prometheus, Unit: unit, Help: help, Labels: labels}
}

func histogram(name, prometheus string, buckets []float64, help string, labels ...string) *Metric {
	return &Metric{Kind: Histogram, Name: name, Prometheus: prometheus, Unit: "s", Help: help, Labels: labels, Buckets: buckets}
}

// label returns a name of the caller as the value of a label. Both systems refuse all metrics
// of a process for one value that is not UTF-8. The names in a table are checked by package fsm.
func label(name string) string { return strings.ToValidUTF8(name, "\ufffd") }

// From half a millisecond to ten seconds, and from ten milliseconds to a day.
var (
	fast = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slow = []float64{.01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
)

// Prefix is that of the attributes of OpenTelemetry. WorkSpan is the name of the span of work,
// the others are those of the events that spans of requests have.
const (
	Prefix          = "interlock."
	WorkSpan        = "interlock work" // followed by the name of the handler
	TransitionEvent = "interlock.transition"
	RefusalEvent    = "interlock.refusal"
)
