//go:build unix

package sqllocktest

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

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// asChild is the environment variable that makes the test binary another process with a locker.
// It holds the orders as JSON.
const asChild = "INTERLOCK_SQLLOCK_CHILD"

// orders are what a child is to do: hold X at /a of a tree until it ends.
type orders struct {
	DSN, Tree string
	TTL       time.Duration
}

// child takes the lock and prints "held TOKEN". When it finds that it was stopped for longer
// than its TTL, it prints the first answer of Check, and what becomes of a guarded write and
// of one without a guard.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx := context.Background()
	db, err := sql.Open("pgx", o.DSN)
	if err != nil {
		return err
	}
	c, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return err
	}
	l, err := sqllock.Open(ctx, db, c, o.Tree, &sqllock.Config{TTL: o.TTL})
	if err != nil {
		return err
	}
	g, err := l.Lock(ctx, at(lock.X, "/a"), &lock.Options{Owner: "child"})
	if err != nil {
		return err
	}
	go func() { // until the parent ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("held", g.Token())
	last := time.Now()
	for {
		check := g.Check()
		now := time.Now()
		if now.Sub(last) > o.TTL {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			held, err := holds(ctx, tx, g)
			if err != nil {
				return err
			}
			_ = tx.Rollback()
			fmt.Printf("stopped: check %v, guard %t, lost %t\n", check != nil, held, closedSoon(g.Lost()))
			return nil
		}
		if check != nil {
			return check // too slow without a stop
		}
		last = now
		time.Sleep(time.Millisecond)
	}
}

func closedSoon(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(10 * time.Second):
		return false
	}
}

// process is a running child.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	token lock.Token
}

func start(t *testing.T, o orders) *process {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill() // stopped or not
		_ = cmd.Wait()
	})
	p := &process{cmd: cmd, lines: bufio.NewScanner(stdout)}
	_, err = fmt.Sscanf(p.line(t), "held %d", &p.token)
	require.NoError(t, err)
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	require.True(t, p.lines.Scan(), "the child has ended")
	return p.lines.Text()
}

// After kill -9 of the holder the next one is granted within TTL + 2 s.
func TestKilled(t *testing.T) {
	d := newDatabase(t)
	const ttl = 2 * time.Second
	for range 3 {
		tree := newTree()
		p := start(t, orders{d.dsn, tree, ttl})
		l := d.open(t, tree, &sqllock.Config{TTL: ttl})
		next := wait(t, l, at(lock.X, "/a"), "next")
		require.NoError(t, p.cmd.Process.Kill())
		killed := time.Now()
		g := granted(t, next)
		after := time.Since(killed)
		t.Logf("granted %s after the kill, with a TTL of %s", after.Round(time.Millisecond), ttl)
		require.Greater(t, g.Token(), p.token)
		require.NoError(t, g.Unlock(t.Context()))
	}
}

// A holder that was stopped for longer than its TTL finds at its first Check that the grant is
// lost, whether another process was granted the lock or not, and the guard refuses its write.
func TestStopped(t *testing.T) {
	d := newDatabase(t)
	const ttl = 2 * time.Second
	rounds := 2
	if long() {
		rounds = 20
	}
	for i := range rounds {
		tree := newTree()
		p := start(t, orders{d.dsn, tree, ttl})
		l := d.open(t, tree, &sqllock.Config{TTL: ttl})
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
		stopped := time.Now()
		if i%2 == 0 {
			g, err := l.Lock(t.Context(), at(lock.X, "/a"), nil)
			require.NoError(t, err)
			t.Logf("granted %s after the stop, with a TTL of %s", time.Since(stopped).Round(time.Millisecond), ttl)
			defer func() { require.NoError(t, g.Unlock(t.Context())) }()
		}
		time.Sleep(time.Until(stopped.Add(ttl + 500*time.Millisecond)))
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
		require.Equal(t, "stopped: check true, guard false, lost true", p.line(t))
	}
}
