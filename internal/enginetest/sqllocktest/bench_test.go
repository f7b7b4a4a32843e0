package sqllocktest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// BenchmarkRatios compares TryLock and Unlock with an insert and a delete of the same row by
// hand, in the processor time of this process and of the connection's server process.
func BenchmarkRatios(b *testing.B) {
	d := newDatabase(b)
	db := pool(b, d.dsn)
	db.SetMaxOpenConns(1)
	var pid int
	require.NoError(b, db.QueryRow("SELECT pg_backend_pid()").Scan(&pid))
	if _, err := processorTime(pid); err != nil {
		b.Skipf("the server runs elsewhere: %v", err)
	}
	_, err := db.Exec("CREATE TABLE bare (LIKE interlock_lock_requests INCLUDING ALL)")
	require.NoError(b, err)
	l, err := sqllock.Open(b.Context(), db, configOf(b, d.dsn), newTree(), &sqllock.Config{TTL: slow})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	var pairs []ratio.Pair
	for _, depth := range []int{1, 4, 16} {
		path := strings.Repeat("/segment", depth)
		pairs = append(pairs, ratio.Pair{
			Name: fmt.Sprintf("sqllock/pair-depth-%d", depth), Goal: 1.7,
			Base: bare(db, path), Subject: pair(l, path),
		})
	}
	clock := func() time.Duration {
		now, err := processorTime(pid)
		must(err)
		return now
	}
	ratio.Print(os.Stdout, ratio.Measure(pairs, &ratio.Config{Rounds: 201, Slice: 10 * time.Millisecond, Clock: clock}))
	ratio.PrintMachine(os.Stdout)
}

// BenchmarkHandover reports how often a lock changes between two processes that both wait for
// it all the time.
func BenchmarkHandover(b *testing.B) {
	d, tree := newDatabase(b), newTree()
	ls := []*sqllock.Locker{d.open(b, tree, nil), d.open(b, tree, nil)}
	var handovers atomic.Int64
	var last atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for i, l := range ls {
		all.Go(func() {
			for handovers.Load() < int64(b.N) {
				g, err := l.Lock(context.Background(), at(lock.X, "/a"), nil)
				must(err)
				if last.Swap(int64(i)) != int64(i) {
					handovers.Add(1)
				}
				must(g.Unlock(context.Background()))
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(handovers.Load())/b.Elapsed().Seconds(), "handovers/s")
}

func bare(db *sql.DB, path string) func(int) {
	return func(n int) {
		for i := range n {
			_, err := db.Exec("INSERT INTO bare (tree, path, number, mode, token, session, attempt, id, owner, reason, since)"+
				" VALUES ($1, $2, $3, 5, $3, 1, $3, '', 'worker', 'bench', clock_timestamp())", "tree", path, i)
			must(err)
			_, err = db.Exec("DELETE FROM bare WHERE tree = $1 AND path = $2 AND number = $3", "tree", path, i)
			must(err)
		}
	}
}

func pair(l *sqllock.Locker, path string) func(int) {
	r, o := at(lock.X, path), &lock.Options{Owner: "worker", Reason: "bench"}
	return func(n int) {
		for range n {
			g, err := l.TryLock(context.Background(), r, o)
			must(err)
			must(g.Unlock(context.Background()))
		}
	}
}

// processorTime returns that of this process and another one.
func processorTime(pid int) (time.Duration, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	other, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	return time.Duration(own.Utime.Nano() + own.Stime.Nano() + other), err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
