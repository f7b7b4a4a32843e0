package sqltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// Every outcome is written although the database cannot be reached while the work ends.
// INTERLOCK_LONG adds outages of 5 and 30 seconds.
func TestOutcomesThroughOutages(t *testing.T) {
	lasts := []time.Duration{time.Second}
	if scale.Full {
		lasts = append(lasts, 5*time.Second, 30*time.Second)
	}
	onNetworks(t, func(t *testing.T, p *proxy.Proxy, through, direct *sqlstore.Store) {
		for _, d := range lasts {
			t.Run(d.String(), func(t *testing.T) {
				keepsOutcomes(t, through, direct, d, func() {
					p.SetDown(true)
					time.Sleep(d)
					p.SetDown(false)
				})
			})
		}
	})
}

// keepsOutcomes requires that the outcomes of all operations are written if their work
// ends during an outage that is longer than the TTL of their owner. The sweeper uses the
// same connections and never stops.
//
// On a machine that stalls, the owner can be dead indeed. A run that loses outcomes then
// shows nothing and is repeated.
func keepsOutcomes(t *testing.T, through, direct *sqlstore.Store, lasts time.Duration, outage func()) {
	t.Helper()
	for range 10 {
		counts, stalled := outcomesThrough(t, through, direct, lasts, outage)
		t.Logf("outage of %v, stalled %t: %v", lasts, stalled, counts)
		if !stalled || counts["written"] == operations {
			require.Equal(t, map[string]int{"written": operations}, counts)
			return
		}
	}
	t.Fatal("this machine stalls all the time")
}

const operations = 100

// outcomesThrough counts how operations end whose work ends during an outage. stalled is
// true if the owner was late with a heartbeat while there was no outage.
func outcomesThrough(
	t *testing.T, through, direct *sqlstore.Store, lasts time.Duration, outage func(),
) (counts map[string]int, stalled bool) {
	t.Helper()
	ttl := lasts * 9 / 10
	owner, err := lifecycle.Join(t.Context(), through, "worker", ttl)
	require.NoError(t, err)
	worker := lifecycle.Must(order, through, &lifecycle.Config[event]{
		WorkerActor: bank, Done: []event{settled}, Owner: owner,
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	var written []time.Time
	group.Go(func() { written = sendHeartbeats(ctx, owner, ttl/3) })
	swept := make(chan struct{}, 1)
	group.Go(func() {
		_ = lifecycle.Run(ctx, 20*time.Millisecond, func([]lifecycle.SweepResult, error) {
			select {
			case swept <- struct{}{}:
			default:
			}
		}, manage(through))
	})

	var began sync.WaitGroup
	began.Add(operations)
	end := make(chan struct{})
	tickets := map[string]*lifecycle.Ticket[state, string]{}
	for i := range operations {
		id := fmt.Sprintf("%d-%d", owner.Epoch(), i)
		_, err := worker.Create(t.Context(), id, place, customer, "", nil)
		require.NoError(t, err)
		tickets[id], err = worker.Do(t.Context(), id, pay, customer, lifecycle.Func(func(context.Context) error {
			began.Done()
			<-end
			time.Sleep(lasts * time.Duration(i) / operations)
			return nil
		}), nil)
		require.NoError(t, err)
	}
	began.Wait()
	close(end)
	down := time.Now()
	outage()
	up := time.Now()

	counts = map[string]int{}
	for _, ticket := range tickets {
		_, err := ticket.Wait(t.Context())
		failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
		switch {
		case err == nil:
			counts["written"]++
		case failed.Unwritten != nil:
			counts["dropped"]++
		default:
			counts[string(failed.Outcome)]++
		}
	}
	for range 3 { // the first may be an old one, and the next may have begun before the last outcome
		<-swept
	}
	stop()
	group.Wait()
	for id, ticket := range tickets {
		rows, err := direct.History(t.Context(), lifecycle.Key{Machine: "order", ID: id}, 0, 10)
		require.NoError(t, err)
		last := rows[len(rows)-1]
		if last.Actor == fsm.Sweeper {
			counts["rolled back"]++
		}
		if _, err := ticket.Wait(t.Context()); err == nil {
			require.Equal(t, string(paid), last.To, "%s: reported as written", id)
			require.Len(t, rows, 3)
		}
	}
	return counts, pause(written, down, up) > ttl*2/3
}

// sendHeartbeats sends heartbeats until the context ends, and returns when they were written.
func sendHeartbeats(ctx context.Context, owner *lifecycle.Owner, every time.Duration) (written []time.Time) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return written
		case <-ticker.C:
		}
		if owner.Heartbeat(ctx) == nil {
			written = append(written, time.Now())
		}
	}
}

// pause returns the longest time without a heartbeat while there was no outage.
func pause(written []time.Time, down, up time.Time) (longest time.Duration) {
	moments := append(slices.Clone(written), down, up)
	slices.SortFunc(moments, time.Time.Compare)
	for i, to := range moments[1:] {
		if from := moments[i]; from.Before(down) || to.After(up) {
			longest = max(longest, to.Sub(from))
		}
	}
	return longest
}
