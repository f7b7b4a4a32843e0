package sqltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// onNetworks runs a test on every engine with a network, with a store that goes
// through a proxy and one that does not.
func onNetworks(t *testing.T, run func(t *testing.T, p *storetest.Proxy, through, direct *sqlstore.Store)) {
	onEach(t, func(t *testing.T, e engine) {
		if !e.networked() {
			t.Skip("skipped: the engine is in this process")
		}
		p := storetest.NewProxy(t)
		w := e.open(t)
		require.NoError(t, sqlstore.Migrate(t.Context(), pool(t, w), e.dialect, nil))
		open := func(w way) *sqlstore.Store {
			store, err := sqlstore.Open(t.Context(), pool(t, w), e.dialect, nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			return store
		}
		run(t, p, open(w.through(t, p)), open(w))
	})
}

// next is a commit that moves an object on.
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

// Connections are cut at any moment: what is said of every commit is true, and
// what cannot be said is found out by sending it again.
func TestCutConnections(t *testing.T) {
	onNetworks(t, func(t *testing.T, p *storetest.Proxy, through, direct *sqlstore.Store) {
		const writers, each = 8, 60
		key := lifecycle.Key{Machine: "order", ID: "a"}
		type sent struct {
			c   *lifecycle.Commit
			err error
		}
		var mu sync.Mutex
		var all []sent
		p.CutAtRandom(20, 1)
		var group sync.WaitGroup
		for range writers {
			group.Go(func() {
				for i := range each {
					now, err := direct.Get(t.Context(), key)
					if err != nil {
						t.Errorf("Get: %v", err)
						return
					}
					c := next(now, i%2)
					again := *c
					again.Changes = append([]lifecycle.StoredChange(nil), c.Changes...)
					err = through.Commit(t.Context(), &again)
					mu.Lock()
					all = append(all, sent{c, err})
					mu.Unlock()
				}
			})
		}
		group.Wait()
		cuts := p.Cuts()
		p.CutAtRandom(0, 0)

		rows, err := direct.History(t.Context(), key, 0, 10_000)
		require.NoError(t, err)
		written := map[lifecycle.Token]int{}
		for i, row := range rows {
			require.EqualValues(t, i+1, row.Sequence)
			written[row.Token]++
		}
		count := map[string]int{}
		for _, s := range all {
			switch n := written[s.c.Token]; {
			case s.err == nil:
				count["written"]++
				require.Equal(t, 1, n, "acknowledged, but not in the history once")
			case errors.Is(s.err, lifecycle.ErrUnknownOutcome):
				count["unknown"]++
				var unknown *lifecycle.UnknownOutcomeError
				require.ErrorAs(t, s.err, &unknown)
				require.Equal(t, s.c.Token, unknown.Token)
				err := direct.Commit(t.Context(), s.c)
				require.Equal(t, n == 1, err == nil, "sent again: %v", err)
			case errors.Is(s.err, lifecycle.ErrConflict):
				count["conflict"]++
				require.Zero(t, n, "a conflict with itself")
			default:
				count["not written"]++
				require.Zero(t, n, "%v", s.err)
			}
		}
		last, err := direct.Get(t.Context(), key)
		require.NoError(t, err)
		require.EqualValues(t, len(rows), last.Sequence)
		require.Positive(t, cuts)
		t.Logf("%d cuts, %d commits: %v", cuts, len(all), count)
	})
}

// Connections that have ended in the pool are nothing that a commit tells of.
func TestEndedConnections(t *testing.T) {
	onNetworks(t, func(t *testing.T, p *storetest.Proxy, through, direct *sqlstore.Store) {
		key := lifecycle.Key{Machine: "order", ID: "a"}
		for i := range 10 {
			require.NoError(t, through.Commit(t.Context(), next(get(t, direct, key), i%2)))
			p.Down()
			p.Up()
		}
		rows, err := direct.History(t.Context(), key, 0, 100)
		require.NoError(t, err)
		require.Len(t, rows, 10)
	})
}
