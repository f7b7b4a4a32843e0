package queue_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/queue"
)

// given reports whether the command line has -rapid.checks. Its first call is before
// checks sets the flag, which counts as given from then on.
var given = sync.OnceValue(func() (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	return given
})

// checks sets the number of cases, unless the command line has -rapid.checks. The race detector
// never frees the up to 100 KB that it needs for a case in a bubble of synctest.
func checks(t *testing.T, normal, long string) {
	if given() {
		return
	}
	if os.Getenv("INTERLOCK_LONG") != "" && !raceDetector {
		normal = long
	}
	before := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", normal); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
}

var modelKeys = []string{"a", "b", "c", "d"}

// TestModel drives a queue and the naive reference with the same operations, in
// virtual time. After each operation it compares everything that a caller can see. So
// the queue runs no action that the reference does not permit (places, limits), and it
// delays none that the reference permits (progress, order of turns).
func TestModel(t *testing.T) {
	checks(t, "3000", "1000000")
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			ref: &reference{
				halts:  rapid.IntRange(0, 3).Draw(rt, "halts") == 0,
				halted: map[string]bool{}, paused: map[string]bool{}, served: map[string]int{},
				limits: map[string]queue.Limit{
					"":    {MaxRunning: rapid.IntRange(1, 4).Draw(rt, "running"), MaxChildren: rapid.IntRange(0, 2).Draw(rt, "children"), Fair: rapid.Bool().Draw(rt, "fair")},
					"p":   {MaxChildren: rapid.IntRange(0, 1).Draw(rt, "children of p"), Fair: rapid.Bool().Draw(rt, "fair p")},
					"p/x": {MaxRunning: rapid.IntRange(0, 2).Draw(rt, "running in p/x")},
					"p/y": {}, "r": {},
				},
				perKey: rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "per key"),
				all:    rapid.SampledFrom([]int{0, 0, 5}).Draw(rt, "waiting"),
			},
			observed: rapid.Bool().Draw(rt, "observed"),
		}
		script := rapid.SliceOfN(rapid.Custom(draw), 1, 40).Draw(rt, "script")
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = m.play(t.Context(), script) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// step is one operation. n selects one of the actions that exist.
type step struct {
	do     string
	n      int
	keys   []string
	act    refAction
	settle bool
	limit  queue.Limit
}

func draw(t *rapid.T) step {
	s := step{
		do: rapid.SampledFrom([]string{
			"submit", "submit", "submit", "submit", "ok", "ok", "ok", "error", "panic",
			"cancel", "sleep", "resume", "abandon", "pause class", "resume class", "limit",
		}).Draw(t, "do"),
		n: rapid.IntRange(0, 20).Draw(t, "n"),
	}
	s.act.class = rapid.SampledFrom([]string{"", "p", "p/x", "p/y", "r"}).Draw(t, "class")
	if s.do == "limit" {
		s.limit = queue.Limit{
			MaxRunning: rapid.IntRange(0, 3).Draw(t, "running"), MaxChildren: rapid.IntRange(0, 2).Draw(t, "children"),
			Fair: rapid.Bool().Draw(t, "fair"),
		}
	}
	if s.do != "submit" {
		return s
	}
	s.keys = rapid.SliceOfNDistinct(rapid.SampledFrom(modelKeys), 1, 3, rapid.ID).Draw(t, "keys")
	s.settle = rapid.Bool().Draw(t, "settle")
	s.act = refAction{
		class:    s.act.class,
		preempt:  rapid.SampledFrom([]queue.Preempt{0, 0, 0, 0, queue.PreemptQueued, queue.PreemptRunning}).Draw(t, "preempt"),
		obeys:    rapid.Bool().Draw(t, "obeys"),
		attempts: rapid.IntRange(0, 3).Draw(t, "attempts"),
		backoff:  time.Duration(rapid.IntRange(0, 2).Draw(t, "backoff")),
		keep:     rapid.Bool().Draw(t, "keep"),
		patience: rapid.SampledFrom([]time.Duration{0, 0, 1, 3}).Draw(t, "patience"),
	}
	if s.act.preempt == queue.NoPreempt {
		s.act.delay = rapid.SampledFrom([]time.Duration{0, 0, 0, 1, 2}).Draw(t, "delay")
	}
	return s
}

type model struct {
	ref      *reference
	observed bool
	q        *queue.Queuer[string]
	acts     []*modelAction
}

type modelAction struct {
	*refAction
	ticket   *queue.Ticket[string]
	gate     chan queue.Outcome
	accepted bool
	gone     bool // abandoned
	inside   atomic.Int32
	settled  []queue.Outcome
	finished []queue.Outcome
}

// Nanoseconds put simultaneous events in the order of the ids. A moment is longer than
// all of these, and a unit is longer than all moments of a step.
const (
	moment = time.Microsecond
	unit   = time.Second
)

func (m *model) play(ctx context.Context, script []step) string {
	config := &queue.Config[string]{MaxPerKey: m.ref.perKey, MaxWaiting: m.ref.all, Classes: maps.Clone(m.ref.limits), HaltOnFailure: m.ref.halts}
	if m.observed {
		config.Observer.Finished = func(_ context.Context, e queue.Finished[string]) {
			var id int
			fmt.Sscan(e.Name, &id)
			m.acts[id].finished = append(m.acts[id].finished, e.Outcome)
		}
	}
	m.q = queue.Must(config)
	defer func() {
		m.q.Abort(nil)
		for _, a := range m.acts {
			close(a.gate)
		}
		// Virtual time stops at the end of the test. Actions that still end need some.
		time.Sleep(moment)
	}()
	for i, s := range script {
		what := m.do(ctx, s)
		time.Sleep(moment)
		m.ref.sleep(moment)
		synctest.Wait()
		if diff := m.compare(); diff != "" {
			return fmt.Sprintf("step %d, %s: reference -, queue +\n%s", i, what, diff)
		}
	}
	return m.drain(ctx)
}

func (m *model) do(ctx context.Context, s step) string {
	pick := func(fits func(*modelAction) bool) *modelAction {
		var list []*modelAction
		for _, a := range m.acts {
			if a.accepted && fits(a) {
				list = append(list, a)
			}
		}
		if len(list) == 0 {
			return nil
		}
		return list[s.n%len(list)]
	}
	key := modelKeys[s.n%len(modelKeys)]
	switch s.do {
	case "submit":
		return m.submit(ctx, s)
	case "ok", "error", "panic":
		a := pick(func(a *modelAction) bool { return a.state == queue.Running })
		if a == nil {
			return "nothing"
		}
		o := map[string]queue.Outcome{"ok": queue.OK, "error": queue.Failed, "panic": queue.Panicked}[s.do]
		a.gate <- o
		m.ref.finish(a.refAction, o)
		return fmt.Sprint(s.do, " of ", a.id)
	case "cancel":
		a := pick(func(*modelAction) bool { return true })
		if a == nil {
			return "nothing"
		}
		got, want := a.ticket.Cancel(nil), m.ref.cancel(a.refAction)
		if got != want {
			return fmt.Sprint("cancel of ", a.id, " is ", got, ", not ", want)
		}
		return fmt.Sprint("cancel of ", a.id)
	case "sleep":
		time.Sleep(time.Duration(s.n%3) * unit)
		m.ref.sleep(time.Duration(s.n%3) * unit)
	case "resume":
		if m.q.Resume(key) != m.ref.resume(key) {
			return s.do + " gives another answer"
		}
	case "pause class", "resume class":
		m.ref.paused[s.act.class] = s.do == "pause class"
		m.ref.start()
		set := m.q.PauseClass
		if s.do == "resume class" {
			set = m.q.ResumeClass
		}
		if err := set(s.act.class); err != nil {
			return s.do + " gives " + err.Error()
		}
		return s.do + " " + s.act.class
	case "limit":
		if err := m.q.SetLimit(s.act.class, s.limit); err != nil {
			return "limit gives " + err.Error()
		}
		m.ref.limits[s.act.class] = s.limit // 0 running actions: more than the model has
		m.ref.start()
		return fmt.Sprintf("limit of %q: %+v", s.act.class, s.limit)
	case "abandon":
		lane := m.ref.inLane(key)
		if m.q.Abandon(key) != m.ref.abandon(key) {
			return s.do + " gives another answer"
		}
		if len(lane) > 0 {
			m.acts[lane[0].id].gone = true
		}
	}
	return s.do + " " + key
}

func (m *model) submit(ctx context.Context, s step) string {
	ref := s.act
	a := &modelAction{refAction: &ref, gate: make(chan queue.Outcome, 1)}
	a.id, a.keys = len(m.acts), s.keys
	a.backoff *= unit
	if a.backoff > 0 {
		a.backoff += time.Duration(a.id) // no two end at the same time
	}
	a.patience *= unit
	if a.patience > 0 {
		a.patience += moment/2 + time.Duration(a.id) // and none when a back-off ends
	}
	a.delay *= unit
	if a.delay > 0 {
		a.delay += moment/4 + time.Duration(a.id)
	}
	act := &queue.Action{
		Name: fmt.Sprint(a.id), Class: a.class, Preempt: a.preempt, Run: a.run,
		QueueTimeout: a.patience, Delay: a.delay,
		Retry: queue.Retry{Attempts: a.attempts, Backoff: pauses(a.backoff), Keep: a.keep},
	}
	if s.settle {
		act.Settle = func(_ context.Context, o queue.Outcome, _ error) { a.settled = append(a.settled, o) }
	}
	m.acts = append(m.acts, a)
	var err error
	a.ticket, err = m.q.SubmitAll(ctx, a.keys, act)
	a.accepted = err == nil
	if want := m.ref.submit(a.refAction); want != a.accepted {
		return fmt.Sprint("submit of ", a.id, " gives ", err)
	}
	return fmt.Sprintf("submit %+v", ref)
}

func (a *modelAction) run(ctx context.Context) error {
	if a.inside.Add(1) > 1 {
		return errors.New("runs twice at once")
	}
	defer a.inside.Add(-1)
	var obeyed <-chan struct{}
	if a.obeys {
		obeyed = ctx.Done()
	}
	select {
	case o := <-a.gate:
		switch o {
		case queue.Failed:
			return errBoom
		case queue.Panicked:
			panic(errBoom)
		}
		return nil
	case <-obeyed:
		time.Sleep(time.Duration(a.id))
		return context.Cause(ctx)
	}
}

// view is everything that a caller can see.
type view struct {
	Actions map[int]string
	Lanes   map[string][]string
	Classes map[string]int // actions with a share
	Stats   queue.Stats
}

func (m *model) compare() string {
	want := view{Actions: map[int]string{}, Lanes: map[string][]string{}, Classes: map[string]int{}}
	got := view{Actions: map[int]string{}, Lanes: map[string][]string{}, Classes: map[string]int{}}
	for _, a := range m.acts {
		if !a.accepted {
			if a.state != queue.Admitting {
				want.Actions[a.id] = "accepted"
			}
			continue
		}
		i := a.ticket.Info()
		want.Actions[a.id] = fmt.Sprint(a.state, a.outcome, a.attempt, m.ref.isPaused(a.class))
		got.Actions[a.id] = fmt.Sprint(i.State, a.ticket.Outcome(), i.Attempt, i.Paused)
		if a.state == queue.Ended {
			// The action was settled and reported once, and Done is closed.
			select {
			case <-a.ticket.Done():
			default:
				got.Actions[a.id] += ", not done"
			}
			for what, list := range map[string][]queue.Outcome{"settled": a.settled, "finished": a.finished} {
				if len(list) > 1 || len(list) == 1 && list[0] != a.outcome || what == "finished" && m.observed && len(list) == 0 {
					got.Actions[a.id] += fmt.Sprint(", ", what, list)
				}
			}
		}
		if (a.inside.Load() > 0) != (a.state == queue.Running || a.gone) && !a.gone {
			got.Actions[a.id] += fmt.Sprint(", inside ", a.inside.Load())
		}
	}
	for _, c := range m.q.Classes() {
		want.Classes[c.Path] = m.ref.count(sharing(c.Path))
		got.Classes[c.Path] = c.Running
	}
	keys := map[string]bool{}
	for _, k := range modelKeys {
		for _, a := range m.ref.of(k) {
			want.Lanes[k] = append(want.Lanes[k], fmt.Sprint(a.id, " ", a.state))
		}
		for _, i := range m.q.Inspect(k) {
			got.Lanes[k] = append(got.Lanes[k], fmt.Sprint(i.Name, " ", i.State))
		}
		if m.ref.halted[k] || len(want.Lanes[k]) > 0 {
			keys[k] = true
		}
	}
	want.Stats = queue.Stats{
		Keys: len(keys), Running: m.ref.count(running), Halted: len(m.ref.halted),
		Delayed:  m.ref.count(delayed),
		Retrying: m.ref.count(func(a *refAction) bool { return a.state == queue.Retrying }),
	}
	want.Stats.Waiting = len(m.ref.list) - want.Stats.Running
	got.Stats = m.q.Stats()
	got.Stats.Abandoned, got.Stats.OldestWaiting, got.Stats.LongestRunning = 0, 0, 0
	return cmp.Diff(want, got)
}

// drain ends all actions and requires that the queue keeps nothing.
func (m *model) drain(ctx context.Context) string {
	for class := range m.ref.limits {
		if err := m.q.ResumeClass(class); err != nil {
			return err.Error()
		}
		delete(m.ref.paused, class)
		m.ref.start()
		synctest.Wait()
	}
	for _, k := range modelKeys {
		if m.q.Resume(k) != m.ref.resume(k) {
			return "resume gives another answer"
		}
		synctest.Wait()
	}
	for range 10_000 {
		if len(m.ref.list) == 0 {
			break
		}
		time.Sleep(3 * unit)
		m.ref.sleep(3 * unit)
		i := slices.IndexFunc(m.ref.list, running)
		if i < 0 {
			return "reference: nothing runs"
		}
		a := m.acts[m.ref.list[i].id]
		a.gate <- queue.OK
		m.ref.finish(a.refAction, queue.OK)
		time.Sleep(moment)
		m.ref.sleep(moment)
		synctest.Wait()
		if diff := m.compare(); diff != "" {
			return "drain: reference -, queue +\n" + diff
		}
	}
	for _, a := range m.acts {
		if a.accepted {
			// In virtual time a wait that hangs is a deadlock of the bubble.
			_ = a.ticket.Wait(ctx)
			if a.gone {
				select {
				case a.gate <- queue.OK:
				default:
				}
			}
		}
	}
	if err := m.q.Terminate(ctx); err != nil {
		return err.Error()
	}
	synctest.Wait()
	if s := m.q.Stats(); s != (queue.Stats{}) {
		return fmt.Sprintf("left: %+v", s)
	}
	return ""
}
