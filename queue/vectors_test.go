package queue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

type vectors struct {
	Format    string
	Semantics []string
	Vectors   []vector
	Durable   []json.RawMessage // of another engine
}

type vector struct {
	ID, Doc string
	Config  struct {
		MaxRunning, MaxDepth, MaxQueued int
		Limits                          map[string]queue.Limit
		Objects                         map[string]string
		OnFailure                       string
	}
	Script       []operation
	Expect       [][]any
	FinalObjects map[string]string
	Needs        []string
}

type operation struct {
	At    int
	Op    string
	ID    string
	Key   string
	Keys  []string
	Takes int

	Outcome string
	Obeys   *bool
	Fails   int
	Limit   string
	Preempt string
	Admit   *struct {
		Object, Via, To, OnError string
		From                     []string
		Hidden                   bool
	}
	Guard *struct {
		Object string
		In     []string
	}
	Timeout, QueueTimeout int
	Retry                 *struct {
		Max     int
		Backoff []int
	}
	Wait bool
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/queue.json")
	require.NoError(t, err)
	var v vectors
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields() // an unknown feature must not pass
	require.NoError(t, d.Decode(&v))
	require.Equal(t, "queue-vectors/1", v.Format)
	require.GreaterOrEqual(t, len(v.Vectors), 47)
	return v
}

func TestVectors(t *testing.T) {
	for _, v := range readVectors(t).Vectors {
		t.Run(v.ID, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, v)
				s.play()
				s.compare()
			})
		})
	}
}

// stage plays one vector. The times of a vector are milliseconds. Nanoseconds put the
// events of one millisecond in order. An action takes the number of the present step when
// it starts, and ends at that nanosecond: so actions end in the order of their starts.
// Every operation of the script takes a new number, so it runs after all earlier events
// of its millisecond.
type stage struct {
	t     *testing.T
	v     vector
	q     *queue.Queuer[string]
	start time.Time

	mu      sync.Mutex
	step    int
	events  [][]any
	keys    map[string][]string // by id of the action
	tickets map[string]*queue.Ticket[string]
	objects map[string]*object
	over    bool
}

type object struct{ state, owner, before string }

func newStage(t *testing.T, v vector) *stage {
	s := &stage{
		t: t, v: v, start: time.Now(),
		keys: map[string][]string{}, tickets: map[string]*queue.Ticket[string]{}, objects: map[string]*object{},
	}
	for name, state := range v.Config.Objects {
		s.objects[name] = &object{state: state}
	}
	config := &queue.Config[string]{
		MaxRunning: v.Config.MaxRunning, MaxPerKey: v.Config.MaxDepth, MaxWaiting: v.Config.MaxQueued,
		Classes: v.Config.Limits, HaltOnFailure: v.Config.OnFailure == "halt",
		Observer: queue.Observer[string]{
			Started: func(_ context.Context, e queue.Started[string]) {
				if e.Attempt > 1 {
					s.log("start", e.Name, e.Attempt)
				} else {
					s.log("start", e.Name)
				}
			},
			Retried:  func(_ context.Context, e queue.FailedAttempt[string]) { s.log("retry", e.Name, e.Failed.String()) },
			Finished: func(_ context.Context, e queue.Finished[string]) { s.log("end", e.Name, e.Outcome.String()) },
			Halted:   func(_ context.Context, e queue.Halted[string]) { s.log("halted", e.Key) },
		},
	}
	if config.MaxRunning == 0 {
		config.MaxRunning = 1 << 30
	}
	s.q = queue.Must(config)
	return s
}

func (s *stage) log(event ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		ms := time.Since(s.start).Milliseconds()
		s.events = append(s.events, append([]any{int(ms)}, event...))
	}
}

// until returns the time from now to a nanosecond (place) of a millisecond.
func (s *stage) until(ms, place int) time.Duration {
	return time.Duration(ms)*time.Millisecond + time.Duration(place) - time.Since(s.start)
}

func (s *stage) nextStep() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step++
	return s.step * 1000
}

func (s *stage) play() {
	for _, op := range s.v.Script {
		time.Sleep(s.until(op.At, s.nextStep()))
		s.do(op)
		synctest.Wait()
	}
	time.Sleep(1000 * time.Hour)
	synctest.Wait()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.q.Abort(nil)
	require.NoError(s.t, s.q.Terminate(s.t.Context()))
}

func (s *stage) do(op operation) {
	switch op.Op {
	case "submit":
		s.submit(op)
	case "cancel":
		s.log("cancel", op.ID, s.tickets[op.ID].Cancel(nil).String())
	case "stop":
		s.drain(op, func(ctx context.Context) error { return s.q.Stop(ctx, op.Key) }, "stop-timeout", "stopped", op.Key)
	case "terminate":
		s.drain(op, s.q.Terminate, "terminate-timeout", "terminated")
	case "abort":
		s.q.Abort(nil)
		s.drain(op, s.q.Terminate, "terminate-timeout", "terminated")
	case "resume":
		s.q.Resume(op.Key)
	case "abandon":
		s.q.Abandon(op.Key)
	case "snapshot":
		list := []any{}
		for _, i := range s.q.Inspect(op.Key) {
			state := i.State.String()
			if i.State == queue.Waiting {
				state = "queued"
			}
			list = append(list, []any{i.Name, state})
		}
		s.log("snapshot", op.Key, list)
	case "stats":
		st := s.q.Stats()
		s.log("stats", map[string]any{"keys": st.Keys, "queued": st.Waiting, "running": st.Running})
	default:
		s.t.Fatalf("unknown operation %q", op.Op)
	}
}

func (s *stage) drain(op operation, drain func(context.Context) error, late string, done ...any) {
	go func() {
		ctx := s.t.Context()
		if op.Timeout > 0 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(op.Timeout)*time.Millisecond)
			defer cancel()
			err := drain(limited)
			var left *queue.DrainError
			if errors.As(err, &left) {
				event := append([]any{late}, done[1:]...)
				s.log(append(event, left.Waiting, left.Running)...)
				err = drain(ctx)
			}
			if err == nil {
				s.log(done...)
			}
			return
		}
		if drain(ctx) == nil {
			s.log(done...)
		}
	}()
}

func (s *stage) submit(op operation) {
	keys := op.Keys
	if len(keys) == 0 {
		keys = []string{op.Key}
	}
	s.keys[op.ID] = keys
	act := s.action(op)
	blocked := false
	if !op.Wait {
		s.submitted(op, keys, act, &blocked)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.submitted(op, keys, act, &blocked)
	}()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-done:
	default:
		blocked = true
	}
}

func (s *stage) submitted(op operation, keys []string, act *queue.Action, blocked *bool) {
	ticket, err := s.q.SubmitAll(s.t.Context(), keys, act)
	if err != nil {
		reasons := map[error]string{
			queue.ErrTerminated: "terminated", queue.ErrStopping: "stopping",
			queue.ErrFull: "full", queue.ErrConflict: "conflict",
		}
		reason := "invalid"
		var refused *queue.RefusedError
		if errors.As(err, &refused) {
			reason = reasons[refused.Reason]
		}
		s.log("reject", op.ID, reason)
		return
	}
	s.mu.Lock()
	s.tickets[op.ID] = ticket
	waited := *blocked
	s.mu.Unlock()
	if waited {
		s.log("accepted", op.ID)
	}
}

var errOutcome = errors.New("scripted failure")

func (s *stage) action(op operation) *queue.Action {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	act := &queue.Action{
		Name: op.ID, Class: op.Limit, Wait: op.Wait,
		Timeout: ms(op.Timeout), QueueTimeout: ms(op.QueueTimeout),
		Preempt: map[string]queue.Preempt{"queued": queue.PreemptQueued, "running": queue.PreemptRunning}[op.Preempt],
	}
	if op.Timeout == op.Takes && op.Timeout > 0 {
		act.Timeout += time.Millisecond / 2 // an action that ends at the limit is not late
	}
	if op.Retry != nil {
		act.Retry.Attempts = op.Retry.Max
		var list []time.Duration
		for _, b := range op.Retry.Backoff {
			list = append(list, ms(b))
		}
		act.Retry.Backoff = pauses(list...)
	}
	act.Run = func(ctx context.Context) error { return s.run(ctx, op) }
	if g := op.Guard; g != nil {
		act.Guard = func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if slices.Contains(g.In, s.objects[g.Object].state) {
				return nil
			}
			return fmt.Errorf("%s is %s", g.Object, s.objects[g.Object].state)
		}
	}
	if op.Admit != nil && !op.Admit.Hidden {
		act.Admit = func(context.Context) error { return s.admit(op) }
		act.Settle = func(_ context.Context, o queue.Outcome, _ error) { s.settle(op, o) }
	}
	return act
}

func (s *stage) run(ctx context.Context, op operation) error {
	ticket := queue.Current[string](ctx)
	s.mu.Lock()
	place := s.step*1000 + int(ticket.Seq())
	now := int(time.Since(s.start).Milliseconds())
	s.mu.Unlock()
	due := time.NewTimer(s.until(now+op.Takes, place))
	defer due.Stop()
	var obeyed <-chan struct{}
	if op.Obeys == nil || *op.Obeys {
		obeyed = ctx.Done()
	}
	select {
	case <-due.C:
	case <-obeyed:
		s.nextStep()
		return context.Cause(ctx)
	}
	s.nextStep()
	if ticket.Info().Attempt <= op.Fails {
		return errOutcome
	}
	switch op.Outcome {
	case "error":
		return errOutcome
	case "panic":
		panic("scripted panic")
	}
	return nil
}

func (s *stage) admit(op operation) error {
	s.mu.Lock()
	o := s.objects[op.Admit.Object]
	if !slices.Contains(op.Admit.From, o.state) && !slices.Contains(op.Admit.From, "*") {
		defer s.mu.Unlock()
		return fmt.Errorf("%s is %s", op.Admit.Object, o.state)
	}
	*o = object{state: op.Admit.Via, owner: op.ID, before: o.state}
	s.mu.Unlock()
	s.log("state", op.Admit.Object, op.Admit.Via)
	return nil
}

func (s *stage) settle(op operation, outcome queue.Outcome) {
	s.mu.Lock()
	o := s.objects[op.Admit.Object]
	state := o.before
	switch {
	case o.owner != op.ID, outcome == queue.Superseded, outcome == queue.Preempted:
		s.mu.Unlock()
		return // the state belongs to the successor
	case outcome == queue.OK:
		state = op.Admit.To
	case op.Admit.OnError != "":
		state = op.Admit.OnError
	}
	*o = object{state: state}
	s.mu.Unlock()
	s.log("state", op.Admit.Object, state)
}

// compare requires equal events in every millisecond, in any order, and for every key
// equal starts and ends, in this order.
func (s *stage) compare() {
	s.t.Helper()
	got := normal(s.t, s.events)
	require.Empty(s.t, cmp.Diff(byInstant(s.v.Expect), byInstant(got)), "expected -, got +")
	keys := map[string]bool{}
	for _, ks := range s.keys {
		for _, k := range ks {
			keys[k] = true
		}
	}
	for k := range keys {
		require.Empty(s.t, cmp.Diff(s.byKey(s.v.Expect, k), s.byKey(got, k)), "key %s: expected -, got +", k)
	}
	final := map[string]string{}
	for name := range s.v.FinalObjects {
		final[name] = s.objects[name].state
	}
	if s.v.FinalObjects != nil {
		require.Equal(s.t, s.v.FinalObjects, final)
	}
}

// normal converts the events to the types of decoded JSON.
func normal(t *testing.T, events [][]any) (out [][]any) {
	data, err := json.Marshal(events)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func byInstant(events [][]any) map[float64][]string {
	set := map[float64][]string{}
	for _, e := range events {
		at := e[0].(float64)
		set[at] = append(set[at], fmt.Sprint(e[1:]...))
	}
	for _, list := range set {
		sort.Strings(list)
	}
	return set
}

func (s *stage) byKey(events [][]any, key string) (order []string) {
	for _, e := range events {
		kind := e[1].(string)
		if (kind == "start" || kind == "end") && slices.Contains(s.keys[e[2].(string)], key) {
			order = append(order, strings.TrimSpace(fmt.Sprintln(e...)))
		}
	}
	return order
}
