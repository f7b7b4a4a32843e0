package queue_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

var errBoom = errors.New("boom")

// in runs the test with virtual time.
func in(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func makeQueue(t *testing.T, config *queue.Config[string]) *queue.Queuer[string] {
	t.Helper()
	q, err := queue.New(config)
	require.NoError(t, err)
	// A test that fails in virtual time must leave no goroutine asleep.
	t.Cleanup(func() { q.Abort(nil) })
	return q
}

func submit(t *testing.T, q *queue.Queuer[string], key string, act *queue.Action) *queue.Ticket[string] {
	t.Helper()
	ticket, err := q.Submit(t.Context(), key, act)
	require.NoError(t, err)
	return ticket
}

// takes returns an action that runs for d or until its context ends. It returns err.
func takes(name string, d time.Duration, err error) *queue.Action {
	return &queue.Action{Name: name, Run: func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
}

// ofClass sets the class of an action.
func ofClass(class string, act *queue.Action) *queue.Action {
	act.Class = class
	return act
}

// stubborn returns an action that ignores its context.
func stubborn(name string, d time.Duration, err error) *queue.Action {
	return &queue.Action{Name: name, Run: func(context.Context) error {
		time.Sleep(d)
		return err
	}}
}

// notes is a log that goroutines write.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, line)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

func (n *notes) String() string { return strings.Join(n.all(), " ") }

// pauses returns a back-off with these pauses; the last one repeats.
func pauses(list ...time.Duration) func(int, error) time.Duration {
	return func(attempts int, _ error) time.Duration {
		if len(list) == 0 {
			return 0
		}
		return list[min(attempts, len(list))-1]
	}
}

// contextErrors are the errors that an action may return when its context has ended.
var contextErrors = map[string]func(context.Context) error{"the cause": context.Cause, "Err": context.Context.Err}

// requireEmpty requires that the queue keeps no action and no key.
func requireEmpty(t *testing.T, q *queue.Queuer[string]) {
	t.Helper()
	require.Zero(t, q.Stats())
	for k, l := range q.All() {
		t.Errorf("key %v left: %+v", k, l)
	}
}

// names returns n keys.
func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	return keys
}
