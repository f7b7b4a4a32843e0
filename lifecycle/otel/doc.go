// Package otel has metrics and traces of package lifecycle for OpenTelemetry. It is a module
// of its own, and needs the API packages of OpenTelemetry, not the SDK. Import it with a name
// such as telemetry:
//
//	import telemetry "github.com/interlock-go/interlock/lifecycle/otel"
//
// These lines are all that a service needs:
//
//	otel, err := telemetry.New(nil) // the global providers and propagator
//	work := queue.Must(&queue.Config[lifecycle.Key]{
//		Observer: telemetry.QueueObserver[lifecycle.Key](otel, "work"),
//	})
//	vms := lifecycle.Must(VM, store, &lifecycle.Config[Event]{
//		Queue:    work,
//		Observer: lifecycle.Tee(lifecycle.Log(nil), otel.Observer(VM.Table())), // logs, too
//		Inject:   otel.Inject, Extract: otel.Extract,
//		Handlers: otel.Handlers(handlers),
//	})
//	otel.AddManager("vm", vms)
//	otel.AddQueue("work", work)
//
// # Traces
//
// Every attempt of work has a span, "interlock work HANDLER". It is the root of a trace of
// its own, with a link to the span that was in the context of [lifecycle.Manager.Do]: the
// work may begin when the request has ended, and in another process. The record keeps the
// trace context, so the link is the same there. The sampler decides about each of the two
// traces. The span has the machine, the id of the object, the operation and the owner, and
// the error of the attempt.
//
// The span of a request gets an event for each transition and refusal that the request
// causes.
//
// The README of the repository lists the metrics.
//
// # Guarantees
//
//   - No attribute of a metric has the id of an object or other text of a client.
//   - Attributes are built once, not for each event.
//   - Gauges are read when the SDK collects: stuck objects at most every 10 seconds, for at
//     most 5 seconds, and at most 1,000 of each machine, all machines at once.
//   - The error handler of OpenTelemetry receives the panic of a store.
//
// # Limits
//
//   - Work that is a function ([lifecycle.Func]) has no span. The span of the request is the
//     remote parent in its context, so that spans of its own are children of the request.
//   - Every process exports the stuck objects of the store that all of them share: take the
//     maximum over the processes.
package otel
