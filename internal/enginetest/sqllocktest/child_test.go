package sqllocktest

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/child"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// asHolder is the variable of the children that are holders.
const asHolder = "INTERLOCK_SQLLOCK_HOLDER"

// orders are what a holder is to do: hold X at /a of a tree.
type orders struct {
	DSN, Tree string
	TTL       time.Duration
}

// hold is the program of a holder. It prints "held TOKEN" and waits for a line. Then it prints
// the first answer of Check, and what becomes of its guard.
func hold(o orders) error {
	ctx := context.Background()
	db, err := sql.Open("pgx", o.DSN)
	if err != nil {
		return err
	}
	c, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return err
	}
	l, err := openLocker(ctx, db, c, o.Tree, &sqllock.Config{TTL: o.TTL})
	if err != nil {
		return err
	}
	g, err := l.Lock(ctx, at(lock.X, "/a"), &lock.Options{Owner: "holder"})
	if err != nil {
		return err
	}
	fmt.Println("held", g.Token())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err // the end of the parent
	}
	check := g.Check()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	held, err := holds(ctx, tx, g)
	if err != nil {
		return err
	}
	_ = tx.Rollback()
	<-g.Lost()
	_, err = fmt.Printf("lost %t, guard %t\n", check != nil, held)
	return err
}

// startHolder starts a process and returns its token.
func startHolder(t *testing.T, o orders) (*child.Process, lock.Token) {
	t.Helper()
	p, err := child.Start(asHolder, o)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	line, err := p.Line()
	require.NoError(t, err)
	var token lock.Token
	_, err = fmt.Sscanf(line, "held %d", &token)
	require.NoError(t, err)
	return p, token
}

// After kill -9 of the holder the next one is granted within TTL + 2 s.
func TestKilled(t *testing.T) {
	d := newDatabase(t)
	const ttl = 2 * time.Second
	for range 3 {
		tree := newTree()
		p, token := startHolder(t, orders{d.dsn, tree, ttl})
		l := d.open(t, tree, nil)
		next := wait(t, l, at(lock.X, "/a"), "next")
		p.Kill()
		killed := time.Now()
		g := granted(t, next)
		after := time.Since(killed)
		t.Logf("granted %s after the kill, with a TTL of %s", after.Round(time.Millisecond), ttl)
		require.Greater(t, g.Token(), token)
		require.NoError(t, g.Unlock(t.Context()))
	}
}

// A holder that was stopped for longer than its TTL finds at its first Check that the grant is
// lost, whether another process was granted the lock or not, and the guard refuses its write.
func TestStopped(t *testing.T) {
	d := newDatabase(t)
	const ttl = 2 * time.Second
	for i := range scale.Of(2, 20) {
		tree := newTree()
		p, _ := startHolder(t, orders{d.dsn, tree, ttl})
		l := d.open(t, tree, nil)
		require.NoError(t, p.Pause())
		stopped := time.Now()
		require.NoError(t, p.Order("write")) // it gets this when it continues
		if i%2 == 0 {
			g, err := l.Lock(t.Context(), at(lock.X, "/a"), nil)
			require.NoError(t, err)
			t.Logf("granted %s after the stop, with a TTL of %s", time.Since(stopped).Round(time.Millisecond), ttl)
			defer func() { require.NoError(t, g.Unlock(t.Context())) }()
		} else {
			eventually(t, func() bool { s, err := l.Snapshot(t.Context()); return err == nil && s.Nodes == 0 }, "the session does not end")
		}
		require.NoError(t, p.Continue())
		line, err := p.Line()
		require.NoError(t, err)
		require.Equal(t, "lost true, guard false", line)
	}
}
