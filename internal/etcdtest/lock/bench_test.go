//go:build linux

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lock"
)

// BenchmarkRatios compares with the mutex of etcd's client. A pair is measured in the
// processor time of client and server, handovers in elapsed time.
func BenchmarkRatios(b *testing.B) {
	server := etcdtest.Start(b, nil)
	client := server.Client(b)
	var pairs []ratio.Pair
	for _, depth := range []int{1, 4, 16, 32} {
		pairs = append(pairs, ratio.Pair{
			Name: fmt.Sprintf("etcdlock/pair-depth-%d", depth), Goal: 1.7,
			Base: mutexPairs(b, client), Subject: treePairs(b, client, deepPath(depth)),
		})
	}
	config := &ratio.Config{Rounds: 51, Slice: 20 * time.Millisecond}
	config.Clock = func() time.Duration { return processorTime(b, 0) + processorTime(b, server.PID()) }
	figures := ratio.Measure(pairs, config)

	config = &ratio.Config{Rounds: 5, Slice: time.Second}
	figures = append(figures, ratio.Measure([]ratio.Pair{{
		Name: "etcdlock/handovers-of-two", Goal: 0.1,
		Base: handovers(b, mutexContender(b, client)), Subject: handovers(b, treeContender(b, client)),
	}}, config)...)
	ratio.Print(os.Stdout, figures)
	ratio.PrintMachine(os.Stdout)
}

func deepPath(depth int) lock.Path { return lock.MustParse(strings.Repeat("/node", depth)) }

// processorTime returns the processor time that a process has used; 0 is this process.
func processorTime(b *testing.B, pid int) time.Duration {
	var t unix.Timespec
	require.NoError(b, unix.ClockGettime(int32(^pid<<3|2), &t)) // clock_getcpuclockid of Linux
	return time.Duration(t.Nano())
}

func treePairs(b *testing.B, client *clientv3.Client, p lock.Path) func(int) {
	l := open(b, client, freshPrefix(), nil)
	return func(n int) {
		for range n {
			g, err := l.TryLock(context.Background(), lock.Request{Path: p, Mode: lock.X}, nil)
			require.NoError(b, err)
			require.NoError(b, g.Unlock(context.Background()))
		}
	}
}

func mutexPairs(b *testing.B, client *clientv3.Client) func(int) {
	m := newMutex(b, client, freshPrefix())
	return func(n int) {
		for range n {
			require.NoError(b, m.Lock(context.Background()))
			require.NoError(b, m.Unlock(context.Background()))
		}
	}
}

func newMutex(b *testing.B, client *clientv3.Client, prefix string) *concurrency.Mutex {
	s, err := concurrency.NewSession(client)
	require.NoError(b, err)
	b.Cleanup(func() { _ = s.Close() })
	return concurrency.NewMutex(s, prefix)
}

// handovers runs two contenders that lock n times together.
func handovers(b *testing.B, contender func() (lock, unlock func() error)) func(int) {
	type pair struct{ lock, unlock func() error }
	var pairs [2]pair
	for i := range pairs {
		pairs[i].lock, pairs[i].unlock = contender()
	}
	return func(n int) {
		var all errgroup.Group
		for _, p := range pairs {
			all.Go(func() error {
				for range (n + 1) / 2 {
					if err := errors.Join(p.lock(), p.unlock()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(b, all.Wait())
	}
}

func mutexContender(b *testing.B, client *clientv3.Client) func() (lock, unlock func() error) {
	prefix := freshPrefix()
	return func() (lock, unlock func() error) {
		m := newMutex(b, client, prefix)
		return func() error { return m.Lock(context.Background()) }, func() error { return m.Unlock(context.Background()) }
	}
}

func treeContender(b *testing.B, client *clientv3.Client) func() (acquire, release func() error) {
	prefix := freshPrefix()
	return func() (acquire, release func() error) {
		l := open(b, client, prefix, nil)
		var g *lock.Grant
		return func() (err error) {
				g, err = l.Lock(context.Background(), lock.Request{Path: deepPath(1), Mode: lock.X}, nil)
				return err
			}, func() error {
				return g.Unlock(context.Background())
			}
	}
}
