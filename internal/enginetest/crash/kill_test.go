//go:build unix

package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/child"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lifecycle"
)

// ttl is short, so that on a busy machine some processes are considered dead that
// are only slow. That must do no harm either.
const ttl = 2 * time.Second

// patience bounds every wait for a process.
const patience = time.Minute

// TestKill kills the two processes of a service on one database again and again, at
// random moments and at chosen commits, and starts others. In the end:
//
//   - Every disk is at rest, its history is a path of the table, and its size is the
//     number of its growths.
//   - Every operation that the history reports as done was executed outside, and none
//     twice.
//   - Every answer that a client has received is in the history, and so are the
//     messages.
//   - Every request was accepted once at most, although processes send those of their
//     predecessors again, and the last process sends all of them twice. Each answer to it
//     has the operation id, sequence number and state of the first one.
func TestKill(t *testing.T) { testKill(t, false) }

// TestKillOverAnExistingTable: the disks are in a table of the user's.
func TestKillOverAnExistingTable(t *testing.T) { testKill(t, true) }

func testKill(t *testing.T, existing bool) {
	kills := scale.Of(8, 250) // of each of the two
	onEach(t, func(t *testing.T, e engine) {
		e.existing = existing
		s := &service{e: e, kills: kills, objects: 8}
		s.orders = orders{Engine: e.name, Existing: existing, DSN: e.database(t), Outside: t.TempDir(), Objects: s.objects}
		dir := t.TempDir()
		s.orders.Requests, s.orders.Answers = filepath.Join(dir, "requests"), filepath.Join(dir, "answers")
		e.migrate(t, s.orders.DSN)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var both sync.WaitGroup
		for i, name := range []string{"alpha", "beta"} {
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			both.Go(func() { s.slot(t, name, dice) })
		}
		both.Wait()
		require.False(t, t.Failed())
		store := e.open(t, s.orders.DSN)
		s.resend(t, store)
		s.settle(t, store)
		s.judge(t, store)
		require.NoError(t, store.Close())
	})
}

// service is two processes on one database.
type service struct {
	e       engine
	kills   int
	objects int
	orders  orders

	mu   sync.Mutex
	slow int // processes that ended because they were considered dead
}

// slot runs one process after the other.
func (s *service) slot(t *testing.T, name string, dice *rand.Rand) {
	for n := 0; n < s.kills; {
		o := s.orders
		o.Name, o.Seed = name, dice.Uint64()
		if n%2 == 0 {
			o.At, o.When = 1+dice.Int64N(30), []string{"before", "during", "after"}[n/2%3]
		}
		killed, err := s.life(o, time.Duration(dice.Int64N(int64(300*time.Millisecond))))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if killed {
			n++
			continue
		}
		s.mu.Lock()
		s.slow++
		many := s.slow > 2*s.kills
		s.mu.Unlock()
		if many {
			t.Errorf("%s: more processes were too slow than were killed", name)
			return
		}
	}
}

// life runs a process from its start to its end. It reports whether the process was
// killed.
func (s *service) life(o orders, after time.Duration) (killed bool, err error) {
	p, err := child.Start(asChild, o)
	if err != nil {
		return false, err
	}
	if _, err := p.Line(); err == nil && o.At == 0 { // it is ready
		time.Sleep(after)
		p.Kill()
	}
	err = p.Wait()
	ended, _ := errors.AsType[*exec.ExitError](err)
	if ended != nil && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true, nil
	}
	return false, err
}

// resend sends all requests again, each twice, from a process that has sent none of them.
func (s *service) resend(t *testing.T, store *aged) {
	ctx, stop := context.WithTimeout(t.Context(), 10*patience)
	defer stop()
	owner, err := lifecycle.Join(ctx, store, "resend", 10*patience) // it sends no heartbeats
	require.NoError(t, err)
	c := config(outside(s.orders.Outside).apply, 0)
	c.Owner = owner
	answers, err := appendTo(s.orders.Answers)
	require.NoError(t, err)
	defer answers.Close()
	cl := &client{m: lifecycle.Must(disk, store, c), answers: answers}
	requests, err := lines[request](s.orders.Requests)
	require.NoError(t, err)
	accepted := 0
	for _, r := range requests {
		before, err := store.Requested(ctx, "disk", r.Request)
		require.NoError(t, err)
		if err := cl.send(ctx, r); before.Request != "" {
			require.ErrorIs(t, err, lifecycle.ErrRepeated, "%v", before)
		}
		after, err := store.Requested(ctx, "disk", r.Request)
		require.NoError(t, err)
		if err := cl.send(ctx, r); after.Request != "" {
			accepted++
			require.ErrorIs(t, err, lifecycle.ErrRepeated, "%v", after)
		}
	}
	t.Logf("%d requests, %d of them accepted", len(requests), accepted)
	require.NoError(t, lifecycle.Drain(ctx, cl.m))
	require.NoError(t, owner.Leave(ctx))
}

// settle runs a last process, which sweeps until nothing is left to do.
func (s *service) settle(t *testing.T, store *aged) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	owner, err := lifecycle.Join(ctx, store, "last", 0)
	require.NoError(t, err)
	c := config(outside(s.orders.Outside).apply, 0)
	c.Owner = owner
	m := lifecycle.Must(disk, store, c)
	resolutions := map[lifecycle.Resolution]int{}
	for {
		results, err := m.Sweep(ctx)
		require.NoError(t, err)
		for _, r := range results {
			require.NoError(t, r.Err, "%v", r)
			resolutions[r.Resolution]++
		}
		busy := 0
		for rec, err := range m.All(ctx, lifecycle.Select[state]{}) {
			require.NoError(t, err)
			if !disk.Kind(rec.State).Resting() || rec.Owner != "" {
				busy++
			}
		}
		if busy == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond) // until the owners that were killed are considered dead
	}
	require.NoError(t, owner.Leave(ctx))
	t.Logf("the last process found %v", resolutions)
}

// judge checks what the processes have left.
func (s *service) judge(t *testing.T, store *aged) {
	answers := s.answers(t)
	messages := s.messages(t, store)
	rows, done, swept := 0, 0, 0
	for i := range s.objects {
		id := fmt.Sprintf("d%d", i)
		v, err := judge(t.Context(), store, outside(s.orders.Outside), id, answers[id], messages[id])
		require.NoError(t, err)
		rows += len(v.rows)
		done += v.done
		swept += v.swept
	}
	received := 0
	for _, list := range answers {
		received += len(list)
	}
	t.Logf("%d kills, %d slow; %d changes, %d operations done, %d interrupted, %d answers",
		2*s.kills, s.slow, rows, done, swept, received)
	require.Positive(t, done, "no operation was done")
	require.Positive(t, swept, "no kill has interrupted an operation")
	require.Positive(t, received, "no client has received an answer")
}

// answers returns the answers that clients have received, by disk.
func (s *service) answers(t *testing.T) map[string][]answer {
	all, err := lines[answer](s.orders.Answers)
	require.NoError(t, err)
	list := map[string][]answer{}
	for _, a := range all {
		list[a.ID] = append(list[a.ID], a)
	}
	return list
}

// messages counts them by disk.
func (s *service) messages(t *testing.T, store *aged) map[string]int {
	list, err := store.Messages(t.Context(), 1<<20)
	require.NoError(t, err)
	count := map[string]int{}
	for i := range list {
		count[list[i].Key]++
	}
	return count
}
