package sqltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// onNetworks runs a test on every engine with a network, with a store whose connections
// go through a proxy, and a store whose connections do not.
func onNetworks(t *testing.T, run func(t *testing.T, p *proxy.Proxy, through, direct *sqlstore.Store)) {
	onEach(t, func(t *testing.T, e engine) {
		if !e.networked() {
			t.Skip("skipped: the engine is in this process")
		}
		w := e.open(t)
		by, p := w.through(t)
		run(t, p, existing(t, pool(t, by), e), existing(t, pool(t, w), e))
	})
}

// next returns a commit that moves an object.
func next(r lifecycle.StoredRecord, messages int) *lifecycle.Commit {
	to := r
	to.State, to.Origin, to.Sequence = "open", "open", r.Sequence+1
	c := &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
		Expect: r.Revision, From: r.State, FromOrigin: r.Origin, To: to,
	}}}
	for i := range messages {
		c.Messages = append(c.Messages, lifecycle.Message{Topic: "t", Payload: fmt.Append(nil, i)})
	}
	return c
}

// exactCommits commits to one object by many writers while disturb runs, and requires
// that every error was true: a commit without an error is in the history once, a commit
// with an unknown outcome has one when it is sent again, and no other commit is there.
func exactCommits(t *testing.T, writer, reader lifecycle.Store, disturb func()) {
	t.Helper()
	const writers, each = 8, 60
	type sent struct {
		c   *lifecycle.Commit
		err error
	}
	var done atomic.Bool
	var mu sync.Mutex
	var all []sent
	var group sync.WaitGroup
	move := func(messages int) (written bool) {
		now, err := reader.Get(t.Context(), orderA)
		if err != nil {
			time.Sleep(time.Millisecond) // for an engine that starts
			return false
		}
		c := next(now, messages)
		twin := *c
		twin.Changes = slices.Clone(c.Changes)
		err = writer.Commit(t.Context(), &twin)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, sent{c, err})
		return err == nil
	}
	for range writers {
		group.Go(func() {
			for i := 0; i < each || !done.Load(); i++ {
				move(i % 2)
			}
		})
	}
	disturb()
	done.Store(true)
	group.Wait()
	for !move(0) { // no earlier commit that is sent again can be written now
		continue
	}

	var rows []lifecycle.HistoryRow
	for err := errors.New("not read"); err != nil; { // an engine that starts refuses
		rows, err = reader.(lifecycle.Historian).History(t.Context(), orderA, 0, 1_000_000)
	}
	written := map[lifecycle.Token]int{}
	for i, row := range rows {
		require.EqualValues(t, i+1, row.Sequence)
		written[row.Token]++
	}
	count := map[string]int{}
	for _, s := range all {
		n := written[s.c.Token]
		delete(written, s.c.Token)
		switch {
		case s.err == nil:
			count["written"]++
			require.Equal(t, 1, n, "acknowledged, but not in the history once")
		case errors.Is(s.err, lifecycle.ErrUnknownOutcome):
			count["unknown"]++
			var unknown *lifecycle.UnknownOutcomeError
			require.ErrorAs(t, s.err, &unknown)
			require.Equal(t, s.c.Token, unknown.Token)
			err := reader.Commit(t.Context(), s.c)
			require.Equal(t, n == 1, err == nil, "sent again: %v", err)
		default:
			count["not written"]++
			require.Zero(t, n, "%v", s.err)
		}
	}
	require.Empty(t, written, "commits that no caller has sent")
	last, err := reader.Get(t.Context(), orderA)
	require.NoError(t, err)
	require.EqualValues(t, len(rows), last.Sequence)
	require.Positive(t, count["written"])
	t.Logf("%d commits: %v", len(all), count)
}

// Connections are cut at random requests.
func TestCutConnections(t *testing.T) {
	onNetworks(t, func(t *testing.T, p *proxy.Proxy, through, direct *sqlstore.Store) {
		p.CutAtRandom(20)
		exactCommits(t, through, direct, func() {
			for p.Cuts() < 30 {
				time.Sleep(time.Millisecond)
			}
		})
		p.CutAtRandom(0)
	})
}

// A commit uses another connection if that of the pool has ended.
func TestEndedConnections(t *testing.T) {
	onNetworks(t, func(t *testing.T, p *proxy.Proxy, through, direct *sqlstore.Store) {
		for i := range 10 {
			require.NoError(t, through.Commit(t.Context(), next(get(t, direct, orderA), i%2)))
			p.SetDown(true)
			p.SetDown(false)
		}
		rows, err := direct.History(t.Context(), orderA, 0, 100)
		require.NoError(t, err)
		require.Len(t, rows, 10)
	})
}
