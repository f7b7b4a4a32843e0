//go:build unix

package pgqueuetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/child"
	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// asChild is the variable of the children that have a worker.
const asChild = "INTERLOCK_PGQUEUE_CHILD"

type orders struct {
	DSN   string
	Name  string
	Lease time.Duration
	Gated bool // an action takes until the parent releases the gate
	Stops bool // the process stops, as by SIGSTOP, between the end of an action and its COMMIT
}

// report is a line that a child prints.
type report struct {
	Event string // ready, started or lost
	ID    int64
	Token int64
	At    time.Time
}

// work runs a worker until it is killed or loses its parent. Each action writes the table
// target, which refuses lower tokens, and then waits for the gate, whatever its context.
func work(o orders) error {
	db, err := sql.Open("pgx", o.DSN)
	if err != nil {
		return err
	}
	db.SetMaxIdleConns(64)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
		cancel()
	}()
	reports := json.NewEncoder(os.Stdout)
	lines := make(chan report, 1000)
	go func() {
		for line := range lines {
			_ = reports.Encode(line)
		}
	}()
	send := func(event string, t *pgqueue.Task) { lines <- report{event, t.ID, t.Token, time.Now()} }
	write := func(ctx context.Context, t *pgqueue.Task) error {
		for _, key := range t.Keys {
			// Without the handler's context: a late write is to reach the target.
			if _, err := db.ExecContext(context.Background(), `INSERT INTO target AS old VALUES ($1, $2, 1)
				ON CONFLICT (key) DO UPDATE SET token = $2, writes = old.writes + 1 WHERE old.token <= $2`, key, t.Token); err != nil {
				return err
			}
		}
		if o.Gated {
			_, err := db.ExecContext(context.Background(), "SELECT pg_advisory_lock_shared($1), pg_advisory_unlock_shared($1)", gate)
			return err
		}
		return nil
	}
	h := pgqueue.Handler{Run: write, Settle: settle}
	if o.Stops {
		h.Settle = func(ctx context.Context, tx *sql.Tx, t *pgqueue.Task, outcome queue.Outcome, cause error) error {
			if err := settle(ctx, tx, t, outcome, cause); err != nil {
				return err
			}
			// As the worker does after Settle.
			if _, err := tx.ExecContext(ctx, "SELECT interlock_queue_leave($1, $2)", t.ID, t.Token); err != nil {
				return err
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
				return err
			}
			select {} // the signal may reach another thread first, and this one would go on to COMMIT
		}
	}
	w, err := pgqueue.New(db, map[string]pgqueue.Handler{"work": h}, &pgqueue.Config{
		Owner: o.Name, Lease: o.Lease, Poll: 100 * time.Millisecond, Observer: pgqueue.Observer{
			Started: func(_ context.Context, s pgqueue.Started) { send("started", s.Task) },
			Lost:    func(_ context.Context, l pgqueue.Lost) { send("lost", l.Task) },
		},
	})
	if err != nil {
		return err
	}
	lines <- report{Event: "ready", At: time.Now()}
	_ = w.Run(ctx)
	return nil
}

// gate is an advisory lock.
const gate = 1

const target = "CREATE TABLE target (key text PRIMARY KEY, token bigint NOT NULL, writes bigint NOT NULL)"

// process is a running child.
type process struct {
	*child.Process
	name string
}

// launch starts a child and returns when it is ready.
func launch(t *testing.T, o orders) *process {
	t.Helper()
	c, err := child.Start(asChild, o)
	require.NoError(t, err)
	t.Cleanup(c.Kill)
	p := &process{c, o.Name}
	require.Equal(t, "ready", p.next(t).Event)
	return p
}

// next returns the next report of the child.
func (p *process) next(t *testing.T) (r report) {
	t.Helper()
	line, err := p.Line()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(line), &r))
	return r
}
