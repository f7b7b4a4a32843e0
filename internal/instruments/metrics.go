// Package instruments is what the metrics of lifecycle/prometheus and lifecycle/otel have
// in common: their names, what they count, and when. The two packages are its back ends.
package instruments

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
	transitions = &Metric{
		Kind: Counter, Name: "interlock.transition.count", Prometheus: "interlock_transitions_total", Unit: "{transition}",
		Help: "Changes that were committed.", Labels: []string{"machine", "event", "from", "to"},
	}
	stateTime = &Metric{
		Kind: Histogram, Name: "interlock.state.duration", Prometheus: "interlock_state_duration_seconds", Unit: "s",
		Help: "Time in a state until the next change of the object.", Labels: []string{"machine", "state"}, Buckets: slow,
	}
	refusals = &Metric{
		Kind: Counter, Name: "interlock.refusal.count", Prometheus: "interlock_refusals_total", Unit: "{request}",
		Help: "Requests that should have changed an object and returned an error.", Labels: []string{"machine", "event", "code"},
	}
	conflicts = &Metric{
		Kind: Counter, Name: "interlock.conflict.count", Prometheus: "interlock_conflicts_total", Unit: "{commit}",
		Help: "Commits that another writer has overtaken, repeated ones included.", Labels: []string{"machine"},
	}
	reports = &Metric{
		Kind: Counter, Name: "interlock.report.count", Prometheus: "interlock_reports_total", Unit: "{report}",
		Help: "Reports of peers by verdict.", Labels: []string{"machine", "verdict"},
	}
	operationTime = &Metric{
		Kind: Histogram, Name: "interlock.operation.duration", Prometheus: "interlock_operation_duration_seconds", Unit: "s",
		Help: "Time from the start of an operation to its outcome.", Labels: []string{"machine", "event", "code"}, Buckets: slow,
	}
	retries = &Metric{
		Kind: Counter, Name: "interlock.retry.count", Prometheus: "interlock_retries_total", Unit: "{attempt}",
		Help: "Attempts of work that failed and are repeated.", Labels: []string{"machine", "event"},
	}
	sweepTime = &Metric{
		Kind: Histogram, Name: "interlock.sweep.duration", Prometheus: "interlock_sweep_duration_seconds", Unit: "s",
		Help: "Time of a sweep.", Labels: []string{"machine", "code"}, Buckets: fast,
	}
	sweepResults = &Metric{
		Kind: Counter, Name: "interlock.sweep.result.count", Prometheus: "interlock_sweep_results_total", Unit: "{object}",
		Help: "Stuck objects that sweeps have found.", Labels: []string{"machine", "cause", "resolution"},
	}
	storeTime = &Metric{
		Kind: Histogram, Name: "interlock.store.duration", Prometheus: "interlock_store_duration_seconds", Unit: "s",
		Help: "Time of a call of the store.", Labels: []string{"machine", "call"}, Buckets: fast,
	}
	storeErrors = &Metric{
		Kind: Counter, Name: "interlock.store.error.count", Prometheus: "interlock_store_errors_total", Unit: "{call}",
		Help: "Calls of the store that returned an error other than a conflict.", Labels: []string{"machine", "call", "code"},
	}
	stuckObjects = &Metric{
		Kind: Gauge, Name: "interlock.stuck.count", Prometheus: "interlock_stuck_objects", Unit: "{object}",
		Help: "Objects that a sweep would find now, up to 1000.", Labels: []string{"machine", "cause"},
	}
	queueDepth = &Metric{
		Kind: Gauge, Name: "interlock.queue.depth", Prometheus: "interlock_queue_depth", Unit: "{action}",
		Help: "Actions in a queue. Those that are delayed or retrying are waiting too.", Labels: []string{"queue", "state"},
	}
	queueOldest = &Metric{
		Kind: Gauge, Name: "interlock.queue.oldest", Prometheus: "interlock_queue_oldest_seconds", Unit: "s",
		Help: "Time that the first action in a queue has waited.", Labels: []string{"queue"},
	}
	queueWait = &Metric{
		Kind: Histogram, Name: "interlock.queue.wait.duration", Prometheus: "interlock_queue_wait_seconds", Unit: "s",
		Help: "Time from the acceptance of an action to its first attempt, without its delay.", Labels: []string{"queue"}, Buckets: slow,
	}
	lockRequests = &Metric{
		Kind: Gauge, Name: "interlock.lock.depth", Prometheus: "interlock_lock_requests", Unit: "{request}",
		Help: "Requests in a lock tree.", Labels: []string{"lock", "state"},
	}
	lockWait = &Metric{
		Kind: Histogram, Name: "interlock.lock.wait.duration", Prometheus: "interlock_lock_wait_seconds", Unit: "s",
		Help: "Time from a request for a lock to its grant.", Labels: []string{"lock"}, Buckets: slow,
	}
)

// All lists the metrics.
var All = []*Metric{
	transitions, stateTime, refusals, conflicts, reports, operationTime, retries, stuckObjects, sweepTime, sweepResults,
	storeTime, storeErrors, queueDepth, queueOldest, queueWait, lockRequests, lockWait,
}

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
