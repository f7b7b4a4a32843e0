package pgqueuetest

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// call is an operation on the lane of one key.
type call struct {
	key     string
	kind    string // enqueue, run or end
	arg     string
	unknown bool // without an answer: it has happened at any time after its begin, or not
}

// lane is the sequential specification: a FIFO, of which only the first action runs and ends.
// An operation without an answer that has not happened comes after all others.
var lane = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(call).key
			byKey[key] = append(byKey[key], o)
		}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(string), input.(call)
		first, rest, _ := strings.Cut(s, " ")
		switch c.kind {
		case "enqueue":
			return true, s + c.arg + " "
		case "run":
			return first == c.arg, s
		}
		if first != c.arg {
			return c.unknown, s
		}
		return true, rest
	},
}

// history collects operations.
type history struct {
	mu    sync.Mutex
	begin time.Time
	list  []porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.begin)) }

func (h *history) add(client int, c call, from, to int64) {
	if c.unknown {
		to = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, porcupine.Operation{ClientId: client, Input: c, Call: from, Output: nil, Return: to})
}

// TestHistories checks that histories of producers and workers, whose connections are cut at
// random, are those of a FIFO for each key.
func TestHistories(t *testing.T) {
	histories := scale.Of(6, 400)
	dsn, db := database(t)
	operations, unknown := 0, 0
	for n := range histories {
		list := oneHistory(t, dsn, db, n)
		idle(t, db)
		for _, o := range list {
			operations++
			if o.Input.(call).unknown {
				unknown++
			}
		}
		result, _ := porcupine.CheckOperationsVerbose(lane, list, time.Minute)
		require.Equal(t, porcupine.Ok, result, "%v", list)
	}
	t.Logf("%d histories, none illegal: %d operations, %d of them without an answer", histories, operations, unknown)
}

func oneHistory(t *testing.T, dsn string, db *sql.DB, n int) []porcupine.Operation {
	far, p := through(t, dsn)
	defer p.SetDown(true)
	h := &history{begin: time.Now()}
	var mu sync.Mutex
	type attempt struct {
		task     *pgqueue.Task
		returned int64 // when the handler did
	}
	attempts := map[int64]attempt{} // by token: those whose end no observer has received
	end := func(a attempt, unknown bool) {
		h.add(0, call{a.task.Keys[0], "end", string(a.task.Args), unknown}, a.returned, h.now())
	}
	ended := func(task *pgqueue.Task, outcome queue.Outcome, unknown bool) {
		mu.Lock()
		a := attempts[task.Token]
		delete(attempts, task.Token)
		mu.Unlock()
		if outcome != queue.Pending { // otherwise it was put back
			end(attempt{task, a.returned}, unknown)
		}
	}
	run1 := func(ctx context.Context, task *pgqueue.Task) error {
		from := h.now()
		time.Sleep(time.Millisecond) // so that it takes some time
		to := h.now()
		if ctx.Err() == nil {
			h.add(0, call{task.Keys[0], "run", string(task.Args), false}, from, to)
		}
		mu.Lock()
		attempts[task.Token] = attempt{task, to}
		mu.Unlock()
		return nil
	}
	listening(t, db, 0) // those of the history before have ended
	var stops []func() error
	for range 2 {
		stops = append(stops, run(t, far, handler(run1), &pgqueue.Config{
			Lease: 500 * time.Millisecond, Poll: 50 * time.Millisecond, Observer: pgqueue.Observer{
				Finished: func(_ context.Context, f pgqueue.Finished) { ended(f.Task, f.Outcome, false) },
				Lost:     func(_ context.Context, l pgqueue.Lost) { ended(l.Task, l.Outcome, true) },
			},
		}))
	}
	listening(t, db, 2)
	p.CutAtRandom(12)
	var producers sync.WaitGroup
	for client := range 3 {
		producers.Go(func() {
			for i := range 8 {
				c := call{key: fmt.Sprintf("%d-%d", n, i%3), kind: "enqueue", arg: fmt.Sprintf("%d.%d", client, i)}
				from := h.now()
				_, err := pgqueue.Enqueue(context.Background(), far, &pgqueue.Action{Keys: []string{c.key}, Name: "work", Args: []byte(c.arg)})
				c.unknown = err != nil
				h.add(1+client, c, from, h.now())
			}
		})
	}
	producers.Wait()
	idle(t, db)
	p.CutAtRandom(0)
	for _, stop := range stops {
		require.ErrorIs(t, stop(), context.Canceled)
	}
	// On a busy machine a worker may stop before the engine has answered that the action is removed.
	mu.Lock()
	defer mu.Unlock()
	for _, a := range attempts {
		end(a, true)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.list
}
