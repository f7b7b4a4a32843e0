package otel_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/interlock-go/interlock/lifecycle"
	telemetry "github.com/interlock-go/interlock/lifecycle/otel"
)

// The span of the work has a link to the span of the request.
func Example() {
	spans := tracetest.NewSpanRecorder() // a real service exports them
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	otel, err := telemetry.New(&telemetry.Config{
		TracerProvider: tracer, MeterProvider: metric.NewMeterProvider(), Propagator: propagation.TraceContext{},
	})
	if err != nil {
		panic(err)
	}
	boot := func(context.Context, []byte) error { return nil }
	vms := lifecycle.Must(vmTable, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{
		WorkerActor: "worker", Done: []string{"done"}, Failed: []string{"fail"},
		Observer: otel.Observer(vmTable.Table()),
		Inject:   otel.Inject, Extract: otel.Extract,
		Handlers: otel.Handlers(map[string]lifecycle.Handler{"boot": boot}),
	})
	otel.AddManager("vm", vms)

	ctx, request := tracer.Tracer("api").Start(context.Background(), "POST /vms")
	ticket, err := vms.Do(ctx, "vm-1", "create", "user", lifecycle.Named("boot", nil), nil)
	if err != nil {
		panic(err)
	}
	request.End()
	_, err = ticket.Wait(context.Background())
	fmt.Println(err)
	for _, span := range spans.Ended() {
		if len(span.Links()) > 0 {
			linked := span.Links()[0].SpanContext.SpanID() == request.SpanContext().SpanID()
			fmt.Println(span.Name(), "links to POST /vms:", linked)
		}
	}
	// Output:
	// <nil>
	// interlock work boot links to POST /vms: true
}
