package otel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/internal/instruments"
	"github.com/interlock-go/interlock/lifecycle"
)

// Inject is for [lifecycle.Config].Inject: the record of the operation keeps the trace
// context of its request.
func (t *Telemetry) Inject(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	return carrier
}

// Extract is for [lifecycle.Config].Extract: the span of the request becomes the remote
// parent in the context of the work.
func (t *Telemetry) Extract(ctx context.Context, values map[string]string) context.Context {
	return t.propagator.Extract(ctx, propagation.MapCarrier(values))
}

// Handlers is for [lifecycle.Config].Handlers: it returns the handlers with a span around
// each attempt, by name.
func (t *Telemetry) Handlers(handlers map[string]lifecycle.Handler) map[string]lifecycle.Handler {
	traced := make(map[string]lifecycle.Handler, len(handlers))
	for name, handler := range handlers {
		if handler != nil { // a manager refuses work without a handler
			traced[name] = t.handler(name, handler)
		}
	}
	return traced
}

// handler returns a handler with a span, which is the root of a trace with a link to the
// span of the request.
func (t *Telemetry) handler(name string, work lifecycle.Handler) lifecycle.Handler {
	return func(ctx context.Context, args []byte) error {
		request := trace.LinkFromContext(ctx)
		options := []trace.SpanStartOption{
			trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(attribute.String(instruments.Prefix+"handler", name)),
		}
		if request.SpanContext.IsValid() {
			options = append(options, trace.WithLinks(request))
		}
		ctx, span := t.tracer.Start(ctx, instruments.WorkSpan+" "+name, options...)
		defer endSpan(span)
		if task := lifecycle.TaskOf(ctx); task != nil && span.IsRecording() {
			span.SetAttributes(objectOf(task.Key, task.Operation)...)
			span.SetAttributes(attribute.String(instruments.Prefix+"owner", task.Owner))
		}
		err := work(ctx, args)
		if err != nil {
			span.RecordError(valid(err))
			span.SetStatus(codes.Error, lifecycle.Code(err))
		}
		return err
	}
}

// endSpan ends the span of work. It is deferred. It records a panic, which continues: End of the
// span would record it too, but also a text that is not UTF-8, see valid.
func endSpan(span trace.Span) {
	panicked := recover()
	if panicked == nil {
		span.End()
		return
	}
	span.AddEvent("exception", trace.WithAttributes(
		attribute.String("exception.type", fmt.Sprintf("%T", panicked)),
		attribute.String("exception.message", strings.ToValidUTF8(fmt.Sprint(panicked), "?")),
	))
	span.SetStatus(codes.Error, lifecycle.Code(&lifecycle.OutcomeError{Outcome: lifecycle.Panicked}))
	span.End()
	panic(panicked)
}

// valid returns an error of work whose text is UTF-8. Another text would make an exporter of
// OTLP drop all spans of its batch.
func valid(err error) error {
	if text := err.Error(); !utf8.ValidString(text) {
		return errors.New(strings.ToValidUTF8(text, "?"))
	}
	return err
}

// objectOf returns the attributes of an operation of an object.
func objectOf(key lifecycle.Key, operation lifecycle.OpID) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(instruments.Prefix+"machine", key.Machine), attribute.String(instruments.Prefix+"id", key.ID),
		attribute.String(instruments.Prefix+"operation", strconv.FormatUint(uint64(operation), 10)),
	}
}

// spanEvents adds events to the span of a request.
var spanEvents = lifecycle.Observer{
	Changed: func(ctx context.Context, e lifecycle.CommittedChange) {
		span := trace.SpanFromContext(ctx)
		if !span.IsRecording() {
			return
		}
		span.AddEvent(instruments.TransitionEvent, trace.WithAttributes(append(
			objectOf(e.Key, e.Operation), attribute.String(instruments.Prefix+"event", e.Event),
			attribute.String(instruments.Prefix+"from", e.From), attribute.String(instruments.Prefix+"to", e.To),
		)...))
	},
	Refused: func(ctx context.Context, err error) {
		span := trace.SpanFromContext(ctx)
		if !span.IsRecording() {
			return
		}
		span.AddEvent(instruments.RefusalEvent, trace.WithAttributes(
			attribute.String(instruments.Prefix+"code", lifecycle.Code(err)), attribute.String(instruments.Prefix+"error", err.Error()),
		))
	},
}
