// Package prometheus has the metrics of package lifecycle for Prometheus. It is a module of
// its own, because it needs github.com/prometheus/client_golang. Import it with a name such
// as metrics:
//
//	import metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
//
// These lines are all that a service needs:
//
//	collector := metrics.New()
//	registry.MustRegister(collector)
//	work := queue.Must(&queue.Config[lifecycle.Key]{
//		Observer: metrics.QueueObserver[lifecycle.Key](collector, "work"),
//	})
//	vms := lifecycle.Must(VM, store, &lifecycle.Config[Event]{
//		Queue:    work,
//		Observer: lifecycle.Tee(lifecycle.Log(nil), collector.Observer(VM.Table())), // logs, too
//	})
//	collector.AddManager("vm", vms)
//	collector.AddQueue("work", work)
//
// The README of the repository lists the metrics. alerts.yml beside this file has alert
// rules, such as those for stuck objects, dead owners and conflicts.
//
// # Guarantees
//
//   - No label has the id of an object, or other text of a client. Its values are names of
//     tables, queues and locks, and constants of the library. An event that the table does
//     not have is "(undeclared)"; a request without an event has its verb in brackets.
//   - The series of a machine's rows are made once, by [Collector.Observer]. An event looks
//     up none of the vectors of the client library.
//   - A scrape reads stuck objects at most every 10 seconds, for at most 5 seconds, and at
//     most 1,000 of each machine. It reads all machines at once. If the store does not
//     answer, the series is missing. If it panics, the series is missing, and the scrape
//     reports the panic as an error: promhttp then answers without any series, unless its
//     HandlerOpts have ContinueOnError.
//
// # Limits
//
//   - The buckets are those of the library.
//   - Every process exports the stuck objects of the store that all of them share: take the
//     maximum over the instances, not the sum. Transitions are counted where they are made.
package prometheus
