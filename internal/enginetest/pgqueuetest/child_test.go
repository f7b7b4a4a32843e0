//go:build unix

package pgqueuetest

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// asChild is the environment variable that makes the test binary a process with a worker. It
// holds the orders as JSON.
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

// child runs a worker until it is killed or loses its parent. Each action writes the table
// target, which refuses lower tokens, and then waits for the gate, whatever its context.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
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
	work := func(ctx context.Context, t *pgqueue.Task) error {
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
	h := pgqueue.Handler{Run: work, Settle: settle}
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
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	reports chan report // closed at its end
}

// launch starts a child and returns when it is ready.
func launch(t *testing.T, o orders) *process {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"="+string(text))
	cmd.Stderr = os.Stderr
	p := &process{name: o.Name, cmd: cmd, reports: make(chan report, 100_000)}
	p.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		defer close(p.reports)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var r report
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				fmt.Fprintln(os.Stderr, lines.Text())
				continue
			}
			p.reports <- r
		}
	}()
	t.Cleanup(p.kill)
	require.Equal(t, "ready", next(t, p.reports).Event)
	return p
}

// kill ends the child as kill -9 does. It may be called again.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.reports { // until its end
	}
	_ = p.cmd.Wait() // whose error is the state
	_ = p.in.Close()
}
