package pgqueuetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

const (
	benchKeys    = 1000
	benchClients = 16
)

// inParallel performs n operations in the clients.
func inParallel(n int, operation func(i int)) {
	var next atomic.Int64
	var clients sync.WaitGroup
	for range benchClients {
		clients.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				operation(int(i))
			}
		})
	}
	clients.Wait()
}

// BenchmarkRatios compares Enqueue, and the work of an action that does nothing, with a bare
// commit: one statement that changes one of 1,000 rows, on a durable server of its own, by 16
// clients at once. All are transactions of one statement of the caller.
func BenchmarkRatios(b *testing.B) {
	db := pool(b, servers.PrivatePostgres(b, nil).DSN())
	require.NoError(b, pgqueue.Migrate(b.Context(), db))
	execute(b, db, "CREATE TABLE object (id text PRIMARY KEY, n bigint NOT NULL)")
	execute(b, db, "INSERT INTO object SELECT 'vm' || i, 0 FROM generate_series(0, $1 - 1) i", benchKeys)
	var turn atomic.Int64
	key := func() string { return fmt.Sprintf("vm%d", turn.Add(1)%benchKeys) }
	ctx := context.Background()
	bare := func(n int) {
		inParallel(n, func(int) {
			_, err := db.ExecContext(ctx, "UPDATE object SET n = n + 1 WHERE id = $1", key())
			must(err)
		})
	}
	args := []byte(`{"size": 3}`)
	one := func() {
		_, err := pgqueue.Enqueue(ctx, db, &pgqueue.Action{Keys: []string{key()}, Name: "work", Args: args})
		must(err)
	}
	for range benchKeys {
		one() // the lanes are busy, and no action notifies
	}
	busy := ratio.Pair{Name: "pgqueue/enqueue", Goal: 2, Base: bare, Subject: func(n int) { inParallel(n, func(int) { one() }) }}
	config := &ratio.Config{Rounds: 31, Slice: 200 * time.Millisecond}
	ratio.Print(os.Stdout, ratio.Measure([]ratio.Pair{busy}, config))

	// Not measured: more actions than the rounds need.
	inParallel(40*benchKeys, func(int) { one() })
	tokens, finished := make(chan struct{}), make(chan struct{}, benchClients)
	w, err := pgqueue.New(db, handler(func(ctx context.Context, _ *pgqueue.Task) error {
		select {
		case <-tokens:
		case <-ctx.Done():
		}
		return ctx.Err()
	}), &pgqueue.Config{MaxRunning: 4 * benchClients, Observer: pgqueue.Observer{
		Finished: func(context.Context, pgqueue.Finished) { finished <- struct{}{} },
	}})
	require.NoError(b, err)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	work := ratio.Pair{Name: "pgqueue/claim-and-complete", Goal: 2, Base: bare, Subject: func(n int) {
		given := 0
		for done := 0; done < n; {
			give := tokens
			if given == n {
				give = nil
			}
			select {
			case give <- struct{}{}:
				given++
			case <-finished:
				done++
			}
		}
	}}
	ratio.Print(os.Stdout, ratio.Measure([]ratio.Pair{work}, &ratio.Config{Rounds: 31, Slice: 100 * time.Millisecond}))
	stop()
	<-ended
	ratio.PrintMachine(os.Stdout)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
