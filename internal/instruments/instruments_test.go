package instruments_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/instruments"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// recorder notes measurements, and the series that are made.
type recorder struct {
	mu          sync.Mutex
	lines, made []string
}

func (r *recorder) note(m *instruments.Metric, value any, labels []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%s %s %v", m.Prometheus, strings.Join(labels, " "), value))
}

func (r *recorder) Counter(m *instruments.Metric, labels ...string) instruments.Count {
	r.made = append(r.made, m.Prometheus+" "+strings.Join(labels, " "))
	return func(context.Context) { r.note(m, 1, labels) }
}

func (r *recorder) Histogram(m *instruments.Metric, labels ...string) instruments.Observe {
	r.made = append(r.made, m.Prometheus+" "+strings.Join(labels, " "))
	return func(_ context.Context, d time.Duration) { r.note(m, d, labels) }
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.lines = nil }()
	return r.lines
}

var vmTable = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "absent", Kind: fsm.Absent}, {Name: "running"}},
	Rows: fsm.Rows(
		fsm.Move("absent", "create", "running").By("user"),
		fsm.Move("running", "delete", "absent").By("user"),
		fsm.Ignore("running", "create").By("user"),
	),
})

func TestMachine(t *testing.T) {
	var r recorder
	o := instruments.Machine(&r, vmTable.Table())
	require.Contains(t, r.made, "interlock_transitions_total vm delete running absent")
	require.NotContains(t, r.made, "interlock_transitions_total vm create running running", "the event is ignored")
	ctx := t.Context()
	changed := func(from, event, to string) {
		o.Changed(ctx, lifecycle.CommittedChange{HistoryRow: lifecycle.HistoryRow{From: from, Event: event, To: to}, InState: time.Second})
	}
	changed("", "create", "running")
	changed("running", "delete", "absent")
	changed("", "", "running")
	changed("started", lifecycle.Migrated, "running") // a name of an older version
	require.Equal(t, []string{
		"interlock_transitions_total vm create absent running 1",
		"interlock_transitions_total vm delete running absent 1", "interlock_state_duration_seconds vm running 1s",
		"interlock_transitions_total vm (add)  running 1",
		"interlock_transitions_total vm (migrate) started running 1", "interlock_state_duration_seconds vm started 1s",
	}, r.take())

	o.Refused(ctx, context.Canceled) // an error of another package
	o.Refused(ctx, &lifecycle.Error{Verb: "fire", Event: "delete", Err: lifecycle.ErrConflict})
	o.Refused(ctx, &lifecycle.Error{Verb: "fire", Event: "<script>", Err: fsm.ErrUnknownEvent})
	o.Refused(ctx, &lifecycle.Error{Verb: "add", Err: lifecycle.ErrInvalid})
	o.Refused(ctx, &lifecycle.Error{Verb: "override", Event: lifecycle.Overridden, Err: lifecycle.ErrInvalid})
	o.Refused(ctx, &lifecycle.Error{Verb: "migrate", Event: lifecycle.Migrated, Err: lifecycle.ErrInvalid})
	o.Reported(ctx, lifecycle.Reported{Verdict: lifecycle.Stale})
	o.Finished(ctx, lifecycle.Finished{Event: "create", Took: time.Minute, Err: &lifecycle.OutcomeError{Outcome: lifecycle.TimedOut}})
	o.Retried(ctx, lifecycle.FailedAttempt{Event: "create"})
	o.Swept(ctx, lifecycle.Swept{Took: time.Second, Err: lifecycle.ErrUnavailable, Results: []lifecycle.SweepResult{
		{OwnerDead: true, Resolution: lifecycle.Redone}, {Resolution: lifecycle.NeedsOperator},
	}})
	o.Stored(ctx, lifecycle.StoreCall{Call: "get", Took: time.Second})
	o.Stored(ctx, lifecycle.StoreCall{Call: "commit", Err: &lifecycle.ConflictError{}})
	o.Stored(ctx, lifecycle.StoreCall{Call: "list", Err: errors.New("disk")})
	require.Equal(t, []string{
		"interlock_refusals_total vm delete conflict 1",
		"interlock_refusals_total vm (undeclared) unknown-event 1",
		"interlock_refusals_total vm (add) invalid 1",
		"interlock_refusals_total vm (override) invalid 1",
		"interlock_refusals_total vm (migrate) invalid 1",
		"interlock_reports_total vm stale 1",
		"interlock_operation_duration_seconds vm create work-timed-out 1m0s",
		"interlock_retries_total vm create 1",
		"interlock_sweep_duration_seconds vm unavailable 1s",
		"interlock_sweep_results_total vm owner-dead redone 1", "interlock_sweep_results_total vm no-owner needs-an-operator 1",
		"interlock_store_duration_seconds vm get 1s",
		"interlock_store_duration_seconds vm commit 0s", "interlock_conflicts_total vm 1",
		"interlock_store_duration_seconds vm list 0s", "interlock_store_errors_total vm list internal 1",
	}, r.take())
}

// TestSweepsOfMachine: only machines that need sweeps have series at 0 from the start, for the
// alert about missing ones.
func TestSweepsOfMachine(t *testing.T) {
	late := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "lease", Initial: "valid",
		States: []fsm.State[string]{{Name: "valid"}, {Name: "expired", Kind: fsm.Final}},
		Rows:   fsm.Rows(fsm.Move("valid", "expire", "expired").After(time.Hour)),
	})
	manual := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "disk", Initial: "sound", Actors: []fsm.Actor{"user"},
		States: []fsm.State[string]{{Name: "sound"}, {Name: "damaged", Kind: fsm.Transitional, Manual: "an operator restores it"}},
		Rows:   fsm.Rows(fsm.Move("sound", "damage", "damaged"), fsm.Move("damaged", "restored", "sound")),
	})
	var rests, expires, waits recorder
	instruments.Machine(&rests, vmTable.Table())
	instruments.Machine(&expires, late.Table())
	instruments.Machine(&waits, manual.Table())
	require.NotContains(t, rests.made, "interlock_sweep_duration_seconds vm ok")
	require.Contains(t, expires.made, "interlock_sweep_duration_seconds lease ok")
	require.Contains(t, expires.made, "interlock_sweep_results_total lease deadline not-moved")
	require.Contains(t, waits.made, "interlock_sweep_duration_seconds disk ok")
}

// TestWaits: the wait of an action counts from the end of its delay, and once.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		var g instruments.Gauges
		q := queue.Must(&queue.Config[string]{MaxRunning: 1, Observer: instruments.QueueObserver[string](&r, "work")})
		g.AddQueue("work", q)
		attempts := 0
		slow := &queue.Action{Retry: queue.Retry{Attempts: 2, Backoff: queue.Exponential(1, 1)}, Run: func(context.Context) error {
			time.Sleep(time.Minute)
			if attempts++; attempts == 1 {
				return errors.New("again")
			}
			return nil
		}}
		for _, id := range []string{"a", "b"} {
			_, err := q.Submit(t.Context(), id, slow)
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		readAll := func(m *instruments.Metric, value float64, labels ...string) { r.note(m, value, labels) }
		require.NoError(t, g.Read(t.Context(), readAll))
		require.NoError(t, q.Terminate(t.Context()))
		require.Equal(t, []string{
			"interlock_queue_wait_seconds work 0s",
			"interlock_queue_depth work running 1", "interlock_queue_depth work waiting 1",
			"interlock_queue_depth work delayed 0", "interlock_queue_depth work retrying 0",
			"interlock_queue_oldest_seconds work 1",
			"interlock_queue_wait_seconds work 1m0s",
		}, r.take())

		q = queue.Must(&queue.Config[string]{Observer: instruments.QueueObserver[string](&r, "late")})
		_, err := q.Submit(t.Context(), "c", &queue.Action{Delay: time.Hour, Run: func(context.Context) error { return nil }})
		require.NoError(t, err)
		require.NoError(t, q.Terminate(t.Context()))
		require.Equal(t, []string{"interlock_queue_wait_seconds late 0s"}, r.take())

		tree := lock.Must(&lock.Config{Observer: instruments.LockObserver(&r, "sites")})
		g = instruments.Gauges{}
		g.AddLocks("sites", tree)
		grant, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/a"), Mode: lock.S}, nil)
		require.NoError(t, err)
		require.NoError(t, grant.Upgrade(t.Context(), lock.X), "another mode is no second wait")
		require.NoError(t, g.Read(t.Context(), readAll))
		require.Equal(t, []string{
			"interlock_lock_wait_seconds sites 0s", "interlock_lock_requests sites held 1", "interlock_lock_requests sites waiting 0",
		}, r.take())
	})
}

// manager has stuck objects, or an error.
type manager struct {
	reads int
	err   error
}

func (m *manager) stuck(context.Context) ([]lifecycle.SweepResult, error) {
	m.reads++
	return []lifecycle.SweepResult{{Overdue: true}, {Overdue: true}, {OwnerDead: true}}, m.err
}

func TestStuckIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g instruments.Gauges
		m := &manager{}
		g.AddStuck("vm", m.stuck)
		read := func() map[string]float64 {
			got := map[string]float64{}
			g.Read(t.Context(), func(_ *instruments.Metric, value float64, labels ...string) { got[strings.Join(labels, " ")] = value })
			return got
		}
		want := map[string]float64{"vm deadline": 2, "vm owner-dead": 1, "vm no-owner": 0}
		for range 3 {
			require.Equal(t, want, read())
		}
		require.Equal(t, 1, m.reads)
		m.err = lifecycle.ErrUnavailable
		time.Sleep(10 * time.Second)
		require.Empty(t, read(), "it is not known")
		require.Equal(t, 2, m.reads)
	})
}

// TestStoreHangs: a read ends within the time-out of a scrape, however many machines there are.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g instruments.Gauges
		hanging := func(ctx context.Context) ([]lifecycle.SweepResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for i := range 20 {
			g.AddStuck(fmt.Sprint("vm", i), hanging)
		}
		began := time.Now()
		g.Read(t.Context(), func(*instruments.Metric, float64, ...string) { t.Error("the store has not answered") })
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// TestOneRead: a store that ignores the end of its context is read by one scrape at a time.
func TestOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g instruments.Gauges
		reads := 0
		g.AddStuck("vm", func(context.Context) ([]lifecycle.SweepResult, error) {
			reads++
			time.Sleep(time.Minute)
			return nil, nil
		})
		read := func() { g.Read(t.Context(), func(*instruments.Metric, float64, ...string) {}) }
		var first sync.WaitGroup
		first.Go(read)
		time.Sleep(20 * time.Second)
		read()
		first.Wait()
		require.Equal(t, 1, reads)
	})
}

// TestStoreOfGaugePanics: the reader receives the panic, and the values of the other stores.
func TestStoreOfGaugePanics(t *testing.T) {
	var g instruments.Gauges
	g.AddStuck("broken", func(context.Context) ([]lifecycle.SweepResult, error) { panic("a bug") })
	g.AddStuck("vm", (&manager{}).stuck)
	read := 0
	err := g.Read(t.Context(), func(_ *instruments.Metric, _ float64, labels ...string) {
		require.Equal(t, "vm", labels[0])
		read++
	})
	panicked, ok := errors.AsType[*queue.PanicError](err)
	require.True(t, ok)
	require.Equal(t, "a bug", panicked.Value)
	require.Equal(t, 3, read)
}

// TestSourcesAreReplaced: a second source with a name makes no second series.
func TestSourcesAreReplaced(t *testing.T) {
	var g instruments.Gauges
	for range 2 {
		g.AddManager("a", lifecycle.Must(vmTable, lifecycle.NewMemoryStore(), nil))
		g.AddQueue("a", queue.Must[string](nil))
		g.AddLocks("a", lock.Must(nil))
	}
	seen := map[string]bool{}
	g.Read(t.Context(), func(m *instruments.Metric, _ float64, labels ...string) {
		series := m.Prometheus + " " + strings.Join(labels, " ")
		require.False(t, seen[series], series)
		seen[series] = true
	})
	require.Len(t, seen, 3+5+2)
}

// TestNotUTF8: names of any bytes become labels that both systems take, and still make one
// series each.
func TestNotUTF8(t *testing.T) {
	var r recorder
	instruments.QueueObserver[string](&r, "a\xff")
	instruments.LockObserver(&r, "a\xff")
	require.Equal(t, []string{"interlock_queue_wait_seconds a\ufffd", "interlock_lock_wait_seconds a\ufffd"}, r.made)

	var g instruments.Gauges
	for _, name := range []string{"a\xfe", "a\xff"} {
		g.AddStuck(name, (&manager{}).stuck)
		g.AddQueue(name, queue.Must[string](nil))
		g.AddLocks(name, lock.Must(nil))
	}
	read := 0
	g.Read(t.Context(), func(_ *instruments.Metric, _ float64, labels ...string) {
		require.Equal(t, "a\ufffd", labels[0])
		read++
	})
	require.Equal(t, 3+5+2, read)
}

// TestNames: names are unique, and as the two systems want them.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range instruments.All {
		require.False(t, seen[m.Name] || seen[m.Prometheus], m.Name)
		seen[m.Name], seen[m.Prometheus] = true, true
		require.Regexp(t, `^interlock(\.[a-z]+)+$`, m.Name)
		require.Regexp(t, `^interlock(_[a-z]+)+$`, m.Prometheus)
		require.Equal(t, m.Kind == instruments.Counter, strings.HasSuffix(m.Prometheus, "_total"), m.Prometheus)
		require.Equal(t, m.Unit == "s", strings.HasSuffix(m.Prometheus, "_seconds"), m.Prometheus)
		require.Equal(t, m.Kind == instruments.Histogram, m.Buckets != nil, m.Prometheus)
	}
}
