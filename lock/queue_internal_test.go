package lock

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/ratio"
)

// queueUp makes n acquisitions without a goroutine for each: the first is held, the
// others wait. It returns their claims.
func queueUp(t *Tree, n int, requests func(int) []Request) []*claim {
	claims := make([]*claim, n)
	for i := range claims {
		rs, err := Normalize(requests(i))
		if err != nil {
			panic(err)
		}
		t.mu.Lock()
		c := t.enter(rs, &Options{})
		if c.blocked == 0 {
			t.grant(c)
		} else {
			c.state, c.granted, c.calls = waiting, make(chan struct{}), 1
			t.waiting++
		}
		t.mu.Unlock()
		claims[i] = c
	}
	return claims
}

var longQueues = map[string]func(int) []Request{
	"X":       func(int) []Request { return []Request{{MustParse("/a"), X}} },
	"X and S": func(i int) []Request { return []Request{{MustParse("/a"), []Mode{X, S}[i%2]}} },
	"all modes": func(i int) []Request {
		return []Request{{MustParse("/a"), Modes[(i+4)%len(Modes)]}}
	},
	"S after X":       func(i int) []Request { return []Request{{MustParse("/a"), []Mode{X, S}[min(i, 1)]}} },
	"above and below": func(i int) []Request { return []Request{{MustParse([]string{"/a", "/a/b/c"}[i%2]), X}} },
	"lists":           func(int) []Request { return []Request{{MustParse("/a"), X}, {MustParse("/b"), S}} },
	"below": func(i int) []Request {
		if i == 0 {
			return []Request{{Root(), X}}
		}
		return []Request{{MustParse(fmt.Sprint("/a/", i)), X}}
	},
}

// drainAndCancel returns the time that each of n waiters takes to be granted, and to be
// canceled: the least of some rounds.
func drainAndCancel(tb testing.TB, n, rounds int, requests func(int) []Request) (drain, cancel time.Duration) {
	drain, cancel = time.Hour, time.Hour
	for range rounds {
		var tree Tree
		begin := time.Now()
		for _, c := range queueUp(&tree, n, requests) {
			require.Equal(tb, held, c.state)
			require.NoError(tb, c.Unlock(context.Background()))
		}
		drain = min(drain, time.Since(begin)/time.Duration(n))
		require.Empty(tb, checkTree(&tree))
		claims := queueUp(&tree, n, requests)
		begin = time.Now()
		for _, c := range slices.Backward(claims[n/2:]) {
			_, _ = tree.leave(c, context.Canceled)
		}
		for _, c := range claims[1 : n/2] {
			_, _ = tree.leave(c, context.Canceled)
		}
		cancel = min(cancel, time.Since(begin)/time.Duration(n))
		require.NoError(tb, claims[0].Unlock(context.Background()))
		require.Empty(tb, checkTree(&tree))
	}
	return drain, cancel
}

func TestLongQueue(t *testing.T) {
	for name, requests := range longQueues {
		t.Run(name, func(t *testing.T) { drainAndCancel(t, 1000, 1, requests) })
	}
}

// A long queue costs as much for each waiter as a short one: to join it, to be granted, and to
// be canceled. A queue that is quadratic is 32 times as slow for each.
func BenchmarkRatios(b *testing.B) {
	var figures []ratio.Figure
	for _, name := range slices.Sorted(maps.Keys(longQueues)) {
		shortDrain, shortCancel := drainAndCancel(b, 1000, 10, longQueues[name])
		longDrain, longCancel := drainAndCancel(b, 32_000, 2, longQueues[name])
		growth := func(what string, short, long time.Duration) {
			name := "lock/growth-1000-to-32000-waiters-" + what + "-" + strings.ReplaceAll(name, " ", "-")
			figures = append(figures, ratio.Figure{Name: name, Value: float64(long) / float64(short), Goal: 3})
		}
		growth("drain", shortDrain, longDrain)
		growth("cancel", shortCancel, longCancel)
	}
	ratio.Print(os.Stdout, figures)
	ratio.PrintMachine(os.Stdout)
}

// A Snapshot of many holders releases the tree after each piece. What begins or ends
// in between changes neither the order nor what else is listed.
func TestSnapshotInPieces(t *testing.T) {
	var tree Tree
	const n = 3*piece + 7
	claims := queueUp(&tree, n, func(i int) []Request { return []Request{{MustParse(fmt.Sprint("/a/", i)), X}} })
	tree.mu.Lock()
	pauses := 0
	all := tree.list(func() {
		tree.list(func() {}) // another Snapshot reads at the same time
		tree.mu.Unlock()
		defer tree.mu.Lock()
		if pauses++; pauses > 1 {
			return
		}
		for _, i := range []int{0, piece - 1, piece, n - 1} {
			require.NoError(t, claims[i].Unlock(context.Background()))
		}
		_, err := tree.Try(MustParse("/late"), X)
		require.NoError(t, err)
	})
	require.Equal(t, 3, pauses)
	tree.mu.Unlock()
	require.Len(t, all, n-2, "without the two that were released before they were read")
	require.True(t, slices.IsSortedFunc(all, func(a, b Holder) int { return int(a.Token) - int(b.Token) }))
	require.Empty(t, checkTree(&tree))

	s, err := tree.Snapshot(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Holders, n-3)
	s.Holders = nil
	require.Equal(t, s, tree.Counts())
	require.Equal(t, Snapshot{Held: n - 3, Nodes: s.Nodes, LastToken: n + 1}, s)
	require.Empty(t, checkTree(&tree))
}
