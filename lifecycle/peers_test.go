package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// While Occupy holds the turn, one user request is admitted and waits. The table
// refuses the second one.
func TestHiddenActionAdmitsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		end := make(chan struct{})
		migrate := occupy(t, m, "a", "migrate", lifecycle.Func(func(context.Context) error { <-end; return nil }), "running")
		synctest.Wait()
		rec := get(t, m, "a")
		require.Equal(t, state("running"), rec.State, "the state has not changed")
		stop := do(t, m, "a", "stop", "user", nothing, nil)
		_, err := m.Do(t.Context(), "a", "reboot", "user", nothing, nil)
		require.ErrorIs(t, err, lifecycle.ErrBusy)
		synctest.Wait()
		rec = get(t, m, "a")
		require.Equal(t, state("stopping"), rec.State, "admitted, and waiting")
		close(end)
		require.NoError(t, migrate.Wait(t.Context()))
		rec = wait(t, stop)
		require.Equal(t, state("stopped"), rec.State)

		// And one that waits is skipped if the object has gone elsewhere.
		again := occupy(t, m, "a", "migrate", nothing, "stopped")
		require.NoError(t, again.Wait(t.Context()))
		gate := make(chan struct{})
		first := occupy(t, m, "a", "look", lifecycle.Func(func(context.Context) error { <-gate; return nil }))
		late := occupy(t, m, "a", "migrate", nothing, "stopped")
		fire(t, m, "a", "start", "user", nil)
		close(gate)
		require.NoError(t, first.Wait(t.Context()))
		require.ErrorIs(t, late.Wait(t.Context()), queue.ErrSkipped)
	})
}

func TestHiddenActionRefused(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
		"noop": func(context.Context, []byte) error { return nil },
	}})
	running(t, m, "a")
	for want, call := range map[error]func() error{
		lifecycle.ErrNotFound: func() error { _, err := lifecycle.Occupy(t.Context(), m, "none", "x", nothing); return err },
		lifecycle.ErrBusy:     func() error { _, err := lifecycle.Occupy(t.Context(), m, "a", "x", nothing, "stopped"); return err },
		lifecycle.ErrInvalid:  func() error { _, err := lifecycle.Occupy(t.Context(), m, "", "x", nothing); return err },
		fsm.ErrUnknownState:   func() error { _, err := lifecycle.Occupy(t.Context(), m, "a", "x", nothing, "nowhere"); return err },
	} {
		t.Run(want.Error(), func(t *testing.T) { require.ErrorIs(t, call(), want) })
	}
	_, err := lifecycle.Occupy(t.Context(), m, "a", "x", lifecycle.Work{})
	require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
	ticket := occupy(t, m, "a", "x", lifecycle.Named("noop", nil))
	require.NoError(t, ticket.Wait(t.Context()))
}

// Await misses no change between its subscription and its read.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m, other := workers(store, lifecycle.Config[event]{}), workers(store, lifecycle.Config[event]{})
		is := func(want state) func(lifecycle.Record[state, size]) bool {
			return func(r lifecycle.Record[state, size]) bool { return r.State == want }
		}
		absent, err := lifecycle.Await(t.Context(), m, "a", is(""))
		require.NoError(t, err)
		require.Equal(t, "a", absent.ID)

		began := time.Now()
		var writes errgroup.Group
		writes.Go(func() error {
			_, err := m.Create(t.Context(), "a", "create", "user", size{}, nil)
			return err
		})
		_, err = lifecycle.Await(t.Context(), m, "a", is("creating"))
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "without delay")

		writes.Go(func() error {
			_, err := other.Report(t.Context(), "a", 1, "done", "worker", nil)
			return err
		})
		_, err = lifecycle.Await(t.Context(), m, "a", is("stopped"))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), time.Second)
		require.NoError(t, writes.Wait())

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too late"))
		defer cancel()
		last, err := lifecycle.Await(ctx, m, "a", is("running"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "too late")
		require.Equal(t, state("stopped"), last.State, "what is known")
		_, err = lifecycle.Await(t.Context(), m, "", is(""))
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	})
}

// A peer comes back with all it has: what is over, what is not, and what it has.
func TestReconcile(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	for _, id := range []string{"done", "lost", "working", "late", "other"} {
		create(t, m, id, "create", "user", size{})
	}
	for _, id := range []string{"here", "away"} {
		running(t, m, id)
	}
	override(t, m, "late", "stopped", "admin", "gave up", nil)
	account := []lifecycle.PeerReport[event]{
		{ID: "done", Operation: 1, Ended: true, Event: "done", Present: true},
		{ID: "working", Operation: 1},
		{ID: "late", Operation: 1, Ended: true, Event: "done", Present: true},
		{ID: "here", Operation: 2, Present: true},
		{ID: "stray", Present: true},
		{ID: "stray", Present: true},
	}
	its := func(r lifecycle.Record[state, size]) bool { return r.ID != "other" }
	for i, want := range []lifecycle.Verdict{lifecycle.Applied, lifecycle.Repeated} {
		got, err := lifecycle.Reconcile(t.Context(), m, "worker", account, its)
		require.NoError(t, err)
		require.Equal(t, []lifecycle.PeerOutcome{{"done", 1, want}, {"late", 1, lifecycle.Stale}}, got.Outcomes, "time %d", i+1)
		require.Equal(t, []string{"lost"}, ids(got.Resend), "it has never heard of it")
		require.Equal(t, []string{"away"}, ids(got.Missing))
		require.Equal(t, []string{"stray"}, got.Extra)
	}
	all, err := lifecycle.Reconcile(t.Context(), m, "worker", nil, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"lost", "other", "working"}, ids(all.Resend))
}

// An entry of the account that fails does not stop the others.
func TestReconcileFailed(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	refused := errors.New("not now")
	m := workers(store, lifecycle.Config[event]{BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (_ *lifecycle.Tx, err error) {
		if ch.To.ID == "c" && ch.To.State == "stopped" {
			err = refused
		}
		return nil, err
	}})
	for _, id := range []string{"b", "c", "d", "e"} {
		create(t, m, id, "create", user, size{})
	}
	for _, id := range []string{"a", "b"} {
		plant(t, store, lifecycle.StoredRecord{
			Key: lifecycle.Key{Machine: "work-vm", ID: id}, State: "creating", Origin: "none", Payload: []byte(`"text"`),
		})
	}
	done := func(id string) lifecycle.PeerReport[event] {
		return lifecycle.PeerReport[event]{ID: id, Operation: 1, Ended: true, Event: "done", Present: true}
	}
	r, err := lifecycle.Reconcile(t.Context(), m, "worker", []lifecycle.PeerReport[event]{done("a"), done("c"), done("d"), {ID: "f", Present: true}}, nil)
	require.NoError(t, err)
	require.Equal(t, []lifecycle.PeerOutcome{{ID: "d", Operation: 1, Verdict: lifecycle.Applied}}, r.Outcomes)
	require.Equal(t, []string{"e"}, ids(r.Resend))
	require.Empty(t, r.Missing)
	require.Equal(t, []string{"f"}, r.Extra, "the others exist")
	var failed []string
	for _, e := range r.Failed {
		require.True(t, errors.Is(e, lifecycle.ErrForeign) || errors.Is(e, refused), "%v", e)
		failed = append(failed, e.Verb+" "+e.ID)
	}
	require.Equal(t, []string{"report a", "report c", "list a", "list b"}, failed)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err = lifecycle.Reconcile(ctx, m, "worker", []lifecycle.PeerReport[event]{done("e")}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.Failed)
}

// The entries about one object count in any order.
func TestReconcileSeveral(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	stopped(t, m, "a")
	fire(t, m, "a", "start", user, nil)
	stopped(t, m, "b")
	account := []lifecycle.PeerReport[event]{
		{ID: "a", Operation: 1, Ended: true, Event: "done"},
		{ID: "a", Operation: 2, Present: true},
		{ID: "b", Operation: 1, Present: true},
		{ID: "b", Operation: 1, Ended: true, Event: "done"},
	}
	for range 2 {
		r, err := lifecycle.Reconcile(t.Context(), m, "worker", account, nil)
		require.NoError(t, err)
		require.Empty(t, r.Resend)
		require.Empty(t, r.Missing)
		require.Empty(t, r.Extra)
		require.Len(t, r.Outcomes, 2)
		slices.Reverse(account)
	}
}

// Explain names the next move and what blocks it, in text and JSON.
func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner := join(t, store, "host-1", 0)
		gate := make(chan struct{})
		m := workers(store, lifecycle.Config[event]{
			Owner:    owner,
			Handlers: map[string]lifecycle.Handler{"boot": func(context.Context, []byte) error { <-gate; return nil }},
		})
		ticket := do(t, m, "a", "create", "user", lifecycle.Named("boot", nil), nil)
		synctest.Wait()
		x := explain(t, m, "a", m.Require("b", "running"))
		require.Equal(t, strings.TrimPrefix(`
work-vm "a" is creating (transitional) since 2000-01-01T00:00:00Z, origin none
  next move: the process host-1, which is alive
  last change: create by user in operation 1
  work: boot
  deadline: 2000-01-01T00:01:00Z; after 1m0s the sweeper fires late: the object moves to failed
  queue: create is running since 2000-01-01T00:00:00Z
  precondition: work-vm "b" is absent, not running
  user:
    not done: only by worker
    not fail: only by worker
    not late: only by sweeper
    not create: only in none
    not start: only in stopped, running
    not stop: only in running
    not reboot: only in running
    not delete: only in stopped, failed, starting
  worker:
    done to stopped
    fail to failed
    not late: only by sweeper
    not progress: only in rebooting
  sweeper:
    not done: only by worker
    not fail: only by worker
    late to failed
`, "\n"), withoutExtras(x.Verbose()))
		data, err := json.Marshal(x)
		require.NoError(t, err)
		var back lifecycle.Explanation
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, x, back)

		require.NoError(t, owner.Leave(t.Context()))
		x = explain(t, m, "a")
		require.Equal(t, `owner "host-1" of epoch 1 is dead`, x.Cause)
		close(gate)
		_, _ = ticket.Wait(t.Context())
		_, err = m.Explain(t.Context(), "missing")
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
		_, err = m.Explain(t.Context(), "")
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	})
}

// withoutExtras drops the lines of events that the table of work may gain.
func withoutExtras(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "inspect") && !strings.Contains(line, "rename") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// The deadline row takes the failure of work, too, if no other row does.
func TestFailureByTheDeadlinesRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(ovc.VM, lifecycle.NewMemoryStore(), &lifecycle.Config[ovc.Event]{WorkerActor: ovc.Worker, Done: []ovc.Event{ovc.Done}})
		add(t, m, "vm", ovc.API, struct{}{})
		ticket := do(t, m, "vm", ovc.Deploy, ovc.API, nothing, nil)
		wait(t, ticket)
		errNoHost := errors.New("no host")
		ticket = do(t, m, "vm", ovc.Stop, ovc.API, lifecycle.Func(func(context.Context) error { return errNoHost }), nil)
		rec, err := ticket.Wait(t.Context())
		require.ErrorIs(t, err, errNoHost)
		failed := outcomeError(t, err)
		require.NoError(t, failed.Unwritten)
		require.Equal(t, ovc.Running, rec.State)
		require.Equal(t, fsm.Sweeper, rec.Actor)
		require.Equal(t, "no host", rec.Reason)
	})
}

// TestReconcileAdmission: the store has lost commits, and an object is in another operation
// of the number that the peer has received. The peer has not received this one.
func TestReconcileAdmission(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	rec := create(t, m, "a", "create", user, size{})
	other := lifecycle.PeerReport[event]{ID: "a", Operation: 1, Admission: lifecycle.NewToken()}
	this, unnamed := other, other
	this.Admission, unnamed.Admission = rec.Admission, lifecycle.Token{}
	for name, c := range map[string]struct {
		account []lifecycle.PeerReport[event]
		resend  []string
	}{
		"another":          {[]lifecycle.PeerReport[event]{other}, []string{"a"}},
		"this one":         {[]lifecycle.PeerReport[event]{this}, nil},
		"both":             {[]lifecycle.PeerReport[event]{this, other}, nil},
		"without a token":  {[]lifecycle.PeerReport[event]{unnamed}, nil},
		"an earlier token": {[]lifecycle.PeerReport[event]{{ID: "a", Admission: other.Admission}}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				r, err := lifecycle.Reconcile(t.Context(), m, "worker", c.account, nil)
				require.NoError(t, err)
				require.Equal(t, c.resend, ids(r.Resend))
				slices.Reverse(c.account)
			}
		})
	}
}

// TestReconcileStoreFails: an error of a report that is not about its object alone ends
// Reconcile, although the objects can be listed.
func TestReconcileStoreFails(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	m := workers(store, lifecycle.Config[event]{})
	for _, id := range []string{"a", "b"} {
		create(t, m, id, "create", user, size{})
	}
	store.reset()
	store.onCommit = func(int, *lifecycle.Commit, func() error) error { return errBoom }
	account := []lifecycle.PeerReport[event]{
		{ID: "a", Operation: 1, Ended: true, Event: "done"}, {ID: "b", Operation: 1, Ended: true, Event: "done"},
	}
	r, err := lifecycle.Reconcile(t.Context(), m, "worker", account, nil)
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, lifecycle.ReconcileResult[state, size]{}, r)
	require.Equal(t, 1, store.commits, "it ends at the first one")
}

// Occupy refuses work with other objects, and a record that this version cannot read.
func TestOccupyRefuses(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := workers(store, lifecycle.Config[event]{})
	stopped(t, m, "a")
	work := lifecycle.Func(fine)
	work.With = &lifecycle.Tx{}
	_, err := lifecycle.Occupy(t.Context(), m, "a", "migrate", work)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	later := workers(store, lifecycle.Config[event]{Version: "later"})
	_, err = lifecycle.Occupy(t.Context(), later, "a", "migrate", lifecycle.Func(fine))
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.Equal(t, []string{"1: none -create-> creating by user", "1: creating -done-> stopped by worker"}, story(t, m, "a", 0))
}
