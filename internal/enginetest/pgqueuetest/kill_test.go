//go:build unix

package pgqueuetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// Three processes run actions; one at random is killed by SIGKILL again and again, and
// another one takes its place. Some actions have two keys.
func TestKill(t *testing.T) {
	actions, kills := scale.Of(1_500, 60_000), scale.Of(3, 12)
	dsn, db := database(t)
	execute(t, db, effect)
	execute(t, db, target)
	execute(t, db, batchTable)
	const lease = 2 * time.Second
	started := 0
	spawn := func() *process {
		started++
		return launch(t, orders{DSN: dsn, Name: fmt.Sprint("child ", started), Lease: lease})
	}
	processes := []*process{spawn(), spawn(), spawn()}
	tr := &traffic{keys: 200}
	seed := rand.Uint64()
	produced := make(chan error, 1)
	go func() { produced <- tr.produce(t.Context(), db, actions, rand.New(rand.NewPCG(seed, 0))) }()
	dice := rand.New(rand.NewPCG(seed, 1))
	interrupted, attempts := 0, 0
	var longest time.Duration
	for k := range kills {
		require.Eventually(t, func() bool {
			done := 0
			err := db.QueryRow("SELECT count(*) FROM effect").Scan(&done)
			return err == nil && done >= actions*(k+1)/(kills+1)
		}, 10*patience, 5*time.Millisecond)
		victim := dice.IntN(len(processes))
		processes[victim].Kill()
		at := time.Now()
		// What it had claimed is claimed again when its leases are over.
		var held int
		owner := processes[victim].name
		require.NoError(t, db.QueryRow("SELECT count(*) FROM interlock_queue_actions WHERE owner = $1", owner).Scan(&held))
		interrupted += held
		processes[victim] = spawn()
		awaitCount(t, db, 0, "SELECT count(*) FROM interlock_queue_actions WHERE owner = $1", owner)
		longest = max(longest, time.Since(at))
	}
	require.NoError(t, <-produced)
	idle(t, db)
	require.NoError(t, db.QueryRow("SELECT sum(writes) FROM target").Scan(&attempts))
	t.Logf("%d actions, %d kills, %d actions interrupted, all taken over within %v with a lease of %v; %d writes of attempts outside",
		actions, kills, interrupted, longest.Round(time.Millisecond), lease, attempts)
	tr.verdict(t, db)
}

// A process is stopped for more than a lease, while its actions run elsewhere. When it
// continues, all its late ends are refused, and the outside target refuses its late writes.
func TestPause(t *testing.T) {
	dsn, db := database(t)
	execute(t, db, effect)
	execute(t, db, target)
	const lease = 3 * time.Second
	const keys = 8
	for i := range keys {
		enqueue(t, db, pgqueue.Action{Keys: []string{fmt.Sprint(i)}, Args: []byte("1")})
		enqueue(t, db, pgqueue.Action{Keys: []string{fmt.Sprint(i)}, Args: []byte("2")})
	}
	closed, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer closed.Close()
	_, err = closed.ExecContext(t.Context(), "SELECT pg_advisory_lock($1)", gate)
	require.NoError(t, err)
	first := launch(t, orders{DSN: dsn, Name: "first", Lease: lease, Gated: true})
	tokens := map[int64]int64{}
	for len(tokens) < keys {
		r := first.next(t)
		tokens[r.ID] = r.Token
	}
	require.NoError(t, first.Pause())
	stopped := time.Now()
	second := launch(t, orders{DSN: dsn, Name: "second", Lease: lease})
	idle(t, db)
	_, err = closed.ExecContext(t.Context(), "SELECT pg_advisory_unlock($1)", gate)
	require.NoError(t, err)
	require.NoError(t, first.Continue())
	for range keys {
		r := first.next(t)
		require.Equal(t, "lost", r.Event)
		require.Equal(t, tokens[r.ID], r.Token)
	}
	overlapped := 0
	for range 2 * keys {
		r := second.next(t)
		require.Equal(t, "started", r.Event)
		if old, again := tokens[r.ID]; again {
			require.Greater(t, r.Token, old)
			overlapped++
		}
	}
	for i := range keys {
		require.Equal(t, []string{"1", "2"}, effects(t, db, fmt.Sprint(i)))
	}
	require.Equal(t, keys, overlapped)
	t.Logf("stopped for %v with a lease of %v: %d of %d late ends refused, none lost, twice or out of order",
		time.Since(stopped).Round(time.Millisecond), lease, keys, keys)
}

// A process is stopped in the transaction that ends its action. The server keeps the transaction
// no longer than a lease: the action runs elsewhere, and a producer of its key goes on.
func TestPauseBeforeCommit(t *testing.T) {
	dsn, db := database(t)
	execute(t, db, effect)
	execute(t, db, target)
	first := enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("1")})
	const lease = 3 * time.Second
	launch(t, orders{DSN: dsn, Name: "first", Lease: lease, Stops: true})
	// The action is removed, and that is not committed.
	awaitCount(t, db, 1, "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%interlock_queue_leave%'")
	patient, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	_, err := pgqueue.Enqueue(patient, db, &pgqueue.Action{Keys: []string{"a"}, Name: "work", Args: []byte("2")})
	require.NoError(t, err)
	second := launch(t, orders{DSN: dsn, Name: "second", Lease: lease})
	require.Equal(t, first, second.next(t).ID)
	idle(t, db)
	require.Equal(t, []string{"1", "2"}, effects(t, db, "a"))
}
