package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/instruments"
	"github.com/interlock-go/interlock/lifecycle"
	telemetry "github.com/interlock-go/interlock/lifecycle/otel"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

var vmTable = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[string]{
		{Name: "absent", Kind: fsm.Absent},
		{Name: "creating", Kind: fsm.Transitional},
		{Name: "running"},
		{Name: "failed", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move("absent", "create", "creating").By("user"),
		fsm.Move("creating", "done", "running").By("worker"),
		fsm.Move("creating", "fail", "failed").By("worker"),
		fsm.Redo("creating", "again", time.Minute),
		fsm.Move("running", "delete", "absent").AlsoFrom("failed").By("user"),
	),
})

// sdk keeps spans and metrics in memory.
type sdk struct {
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
	tracer *trace.TracerProvider
	*telemetry.Telemetry
}

func newSDK(t *testing.T) *sdk {
	s := &sdk{spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	s.tracer = trace.NewTracerProvider(trace.WithSpanProcessor(s.spans))
	var err error
	s.Telemetry, err = telemetry.New(&telemetry.Config{
		TracerProvider: s.tracer, MeterProvider: metric.NewMeterProvider(metric.WithReader(s.reader)),
		Propagator: propagation.TraceContext{},
	})
	require.NoError(t, err)
	return s
}

type manager = lifecycle.Manager[string, string, struct{}]

// vms is the manager of a process.
func (s *sdk) vms(store lifecycle.Store, owner *lifecycle.Owner, boot lifecycle.Handler) *manager {
	return lifecycle.Must(vmTable, store, &lifecycle.Config[string]{
		WorkerActor: "worker", Done: []string{"done"}, Failed: []string{"fail"}, Owner: owner,
		Observer: s.Observer(vmTable.Table()), Inject: s.Inject, Extract: s.Extract,
		Handlers: s.Handlers(map[string]lifecycle.Handler{"boot": boot}),
	})
}

// request creates a VM in the span of a request, and returns the span.
func (s *sdk) request(t *testing.T, vms *manager, work lifecycle.Work) (trace.ReadOnlySpan, *lifecycle.Ticket[string, struct{}]) {
	ctx, span := s.tracer.Tracer("api").Start(t.Context(), "POST /vms")
	ticket, err := vms.Do(ctx, "vm-1", "create", "user", work, nil)
	require.NoError(t, err)
	span.End()
	return s.spans.Ended()[0], ticket
}

func attributes(list []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range list {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

// TestWorkLinksToItsRequest: the process that took the request dies. The span of the work
// in another process links to the span of the request.
func TestWorkLinksToItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newSDK(t), newSDK(t)
		store := lifecycle.NewMemoryStore()
		dying, err := lifecycle.Join(t.Context(), store, "first", time.Second)
		require.NoError(t, err)
		vms := first.vms(store, dying, func(ctx context.Context, _ []byte) error { <-ctx.Done(); return ctx.Err() })
		request, _ := first.request(t, vms, lifecycle.Named("boot", nil))
		synctest.Wait()

		owner, err := lifecycle.Join(t.Context(), store, "second", time.Hour)
		require.NoError(t, err)
		others := second.vms(store, owner, func(context.Context, []byte) error { return nil })
		for range 5 {
			time.Sleep(time.Second)
			_, err := others.Sweep(t.Context())
			require.NoError(t, err)
		}
		synctest.Wait()
		rec, err := others.Get(t.Context(), "vm-1")
		require.NoError(t, err)
		require.Equal(t, "running", rec.State)

		spans := second.spans.Ended()
		require.Len(t, spans, 1)
		work := spans[0]
		require.Equal(t, "interlock work boot", work.Name())
		require.Len(t, work.Links(), 1)
		require.Equal(t, request.SpanContext().TraceID(), work.Links()[0].SpanContext.TraceID())
		require.Equal(t, request.SpanContext().SpanID(), work.Links()[0].SpanContext.SpanID())
		require.NotEqual(t, request.SpanContext().TraceID(), work.SpanContext().TraceID(), "it is the root of its own trace")
		require.False(t, work.Parent().IsValid())
		require.Equal(t, map[string]string{
			"interlock.machine": "vm", "interlock.id": "vm-1", "interlock.operation": "2",
			"interlock.handler": "boot", "interlock.owner": "second",
		}, attributes(work.Attributes()))

		require.Len(t, request.Events(), 1)
		require.Equal(t, "interlock.transition", request.Events()[0].Name)
		require.Equal(t, map[string]string{
			"interlock.machine": "vm", "interlock.id": "vm-1", "interlock.operation": "1",
			"interlock.event": "create", "interlock.from": "", "interlock.to": "creating",
		}, attributes(request.Events()[0].Attributes))
		require.Error(t, dying.Heartbeat(t.Context())) // ends the work of the first process
	})
}

// TestSpans: every attempt has a span with its error; a request has an event for its refusal.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDK(t)
		attempts := 0
		vms := s.vms(lifecycle.NewMemoryStore(), nil, func(context.Context, []byte) error {
			time.Sleep(time.Second) // the request ends first
			attempts++
			if attempts == 1 {
				return errors.New("no room")
			}
			panic("a bug")
		})
		work := lifecycle.Named("boot", nil)
		work.Retries = lifecycle.Retries{Attempts: 3, Delay: 1}
		_, ticket := s.request(t, vms, work)
		_, err := ticket.Wait(t.Context())
		require.Error(t, err)
		ctx, span := s.tracer.Tracer("api").Start(t.Context(), "POST /vms/vm-1/create")
		_, err = vms.Fire(ctx, "vm-1", "create", "user", nil)
		require.Error(t, err)
		span.End()

		var got []string
		for _, span := range s.spans.Ended() {
			got = append(got, fmt.Sprint(span.Name(), ": ", span.Status().Code, " ", span.Status().Description))
			for _, e := range span.Events() {
				a := attributes(e.Attributes)
				got = append(got, strings.TrimSpace("  "+e.Name+" "+a["exception.message"]+a["interlock.to"]+a["interlock.code"]))
			}
		}
		require.Equal(t, []string{
			"POST /vms: Unset ", "interlock.transition creating",
			"interlock work boot: Error internal", "exception no room",
			"interlock work boot: Error work-panicked", "exception a bug",
			"POST /vms/vm-1/create: Unset ", "interlock.refusal not-allowed",
		}, got)

		// Without a span in the context there is nothing to link to, and nothing to keep.
		require.Empty(t, s.Inject(t.Context()))
		require.NoError(t, s.Handlers(map[string]lifecycle.Handler{"h": func(context.Context, []byte) error { return nil }})["h"](t.Context(), nil))
		require.Empty(t, s.spans.Ended()[4].Links())
		require.Empty(t, s.Handlers(map[string]lifecycle.Handler{"none": nil}))
	})
}

// TestTextsAreUTF8: the text of a client or of a provider does not make an exporter drop spans.
func TestTextsAreUTF8(t *testing.T) {
	s := newSDK(t)
	vms := s.vms(lifecycle.NewMemoryStore(), nil, nil)
	ctx, span := s.tracer.Tracer("api").Start(t.Context(), "POST /vms/vm-1/action")
	_, err := vms.Fire(ctx, "vm-1", "\xff", "user", nil)
	require.ErrorContains(t, err, "\uFFFD")
	span.End()
	failed := errors.New("no room: \xff")
	boot := s.Handlers(map[string]lifecycle.Handler{"boot": func(context.Context, []byte) error { return failed }})["boot"]
	require.Equal(t, failed, boot(t.Context(), nil))
	crash := s.Handlers(map[string]lifecycle.Handler{"crash": func(context.Context, []byte) error { panic("a bug: \xff") }})["crash"]
	require.PanicsWithValue(t, "a bug: \xff", func() { _ = crash(t.Context(), nil) })
	for _, span := range s.spans.Ended() {
		require.Len(t, span.Events(), 1)
		for name, text := range attributes(span.Events()[0].Attributes) {
			require.True(t, utf8.ValidString(text), name)
		}
	}
}

// TestMetrics: every metric is recorded with its unit, its attributes and its value.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDK(t)
		vms := s.vms(lifecycle.NewMemoryStore(), nil, func(context.Context, []byte) error { time.Sleep(time.Second); return nil })
		work := queue.Must(&queue.Config[string]{Observer: telemetry.QueueObserver[string](s.Telemetry, "work")})
		sites := lock.Must(&lock.Config{Observer: s.LockObserver("sites")})
		s.AddManager("vm", vms)
		s.AddQueue("work", work)
		s.AddLocks("sites", sites)
		_, ticket := s.request(t, vms, lifecycle.Named("boot", nil))
		_, err := ticket.Wait(t.Context())
		require.NoError(t, err)
		_, err = vms.Fire(t.Context(), "vm-1", "create", "user", nil)
		require.Error(t, err)
		_, err = work.Submit(t.Context(), "a", &queue.Action{Run: func(context.Context) error { return nil }})
		require.NoError(t, err)
		require.NoError(t, work.Terminate(t.Context()))
		_, err = sites.Try(lock.MustParse("/a"), lock.X)
		require.NoError(t, err)

		var all metricdata.ResourceMetrics
		require.NoError(t, s.reader.Collect(t.Context(), &all))
		var got []string
		for _, m := range all.ScopeMetrics[0].Metrics {
			i := slices.IndexFunc(instruments.All, func(x *instruments.Metric) bool { return x.Name == m.Name })
			require.Equal(t, instruments.All[i].Unit, m.Unit)
			require.Equal(t, instruments.All[i].Help, m.Description)
			for _, line := range points(m) {
				got = append(got, m.Name+" "+line)
			}
		}
		slices.Sort(got)
		require.Equal(t, []string{
			"interlock.lock.depth lock=sites state=held: 1",
			"interlock.lock.depth lock=sites state=waiting: 0",
			"interlock.lock.wait.duration lock=sites: 1 of 0",
			"interlock.operation.duration code=ok event=create machine=vm: 1 of 1",
			"interlock.queue.depth queue=work state=delayed: 0",
			"interlock.queue.depth queue=work state=retrying: 0",
			"interlock.queue.depth queue=work state=running: 0",
			"interlock.queue.depth queue=work state=waiting: 0",
			"interlock.queue.oldest queue=work: 0",
			"interlock.queue.wait.duration queue=work: 1 of 0",
			"interlock.refusal.count code=not-allowed event=create machine=vm: 1",
			"interlock.state.duration machine=vm state=creating: 1 of 1",
			"interlock.store.duration call=commit machine=vm: 2 of 0",
			"interlock.store.duration call=get machine=vm: 4 of 0",
			"interlock.store.duration call=list machine=vm: 4 of 0",
			"interlock.stuck.count cause=deadline machine=vm: 0",
			"interlock.stuck.count cause=no-owner machine=vm: 0",
			"interlock.stuck.count cause=owner-dead machine=vm: 0",
			"interlock.transition.count event=create from=absent machine=vm to=creating: 1",
			"interlock.transition.count event=done from=creating machine=vm to=running: 1",
		}, got)
	})
}

// panicking is a store that a bug of its driver makes panic.
type panicking struct{ *lifecycle.MemoryStore }

func (panicking) List(context.Context, lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	panic("a bug")
}

// TestStorePanics: the error handler receives the panic, and all other metrics are exported.
func TestStorePanics(t *testing.T) {
	var handled []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled = append(handled, err) }))
	t.Cleanup(func() { otel.SetErrorHandler(before) })

	s := newSDK(t)
	s.AddManager("broken", s.vms(panicking{lifecycle.NewMemoryStore()}, nil, nil))
	s.AddManager("vm", s.vms(lifecycle.NewMemoryStore(), nil, nil))
	var all metricdata.ResourceMetrics
	require.NoError(t, s.reader.Collect(t.Context(), &all))
	require.Len(t, handled, 1)
	require.ErrorContains(t, handled[0], "a bug")
	i := slices.IndexFunc(all.ScopeMetrics[0].Metrics, func(m metricdata.Metrics) bool { return m.Name == "interlock.stuck.count" })
	require.Len(t, points(all.ScopeMetrics[0].Metrics[i]), 3)
}

// points returns a line for each series.
func points(m metricdata.Metrics) (lines []string) {
	line := func(set attribute.Set, value string) {
		var labels []string
		for _, kv := range set.ToSlice() {
			labels = append(labels, strings.TrimPrefix(string(kv.Key), "interlock.")+"="+kv.Value.String())
		}
		lines = append(lines, strings.Join(labels, " ")+": "+value)
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, fmt.Sprint(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, fmt.Sprint(p.Value))
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, fmt.Sprintf("%d of %v", p.Count, p.Sum))
		}
	}
	return lines
}

// TestDisabledAllocations: without a provider, an event allocates nothing.
func TestDisabledAllocations(t *testing.T) {
	for name, config := range map[string]*telemetry.Config{"global": nil, "no-op": {MeterProvider: noop.NewMeterProvider()}} {
		t.Run(name, func(t *testing.T) {
			s, err := telemetry.New(config)
			require.NoError(t, err)
			o := s.Observer(vmTable.Table())
			e := lifecycle.CommittedChange{HistoryRow: lifecycle.HistoryRow{From: "creating", Event: "done", To: "running"}, InState: time.Second}
			require.Zero(t, testing.AllocsPerRun(100, func() {
				o.Changed(t.Context(), e)
				o.Stored(t.Context(), lifecycle.StoreCall{Machine: "vm", Call: "commit", Took: time.Millisecond})
			}))
		})
	}
}
