package sqltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// onNetworks runs a test on every engine with a network, with a store that goes
// through a proxy and one that does not.
func onNetworks(t *testing.T, config *sqlstore.Config, run func(t *testing.T, e engine, p *proxy, through, direct *sqlstore.Store)) {
	onEach(t, func(t *testing.T, e engine) {
		if e.address == nil {
			t.Skip("skipped: the engine is in this process")
		}
		p := newProxy(t, e.address(t))
		way := e.open(t)
		db := pool(t, way)
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		open := func(address string) *sqlstore.Store {
			store, err := sqlstore.Open(t.Context(), dial(t, way.driver, way.dsn(address)), e.dialect, config)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			return store
		}
		run(t, e, p, open(p.address()), open(""))
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
	onNetworks(t, nil, func(t *testing.T, e engine, p *proxy, through, direct *sqlstore.Store) {
		const writers, each = 8, 60
		key := lifecycle.Key{Machine: "order", ID: "a"}
		type sent struct {
			c   *lifecycle.Commit
			err error
		}
		var mu sync.Mutex
		var all []sent
		p.cut.Store(60)
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
		p.cut.Store(0)

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
		require.Positive(t, p.cuts.Load())
		t.Logf("%d cuts, %d commits: %v", p.cuts.Load(), len(all), count)
	})
}

// An answer that never comes is not waited for longer than the context lasts,
// and nobody claims to know what became of the commit.
func TestStalledAnswer(t *testing.T) {
	for _, messages := range []int{0, 1} {
		t.Run(fmt.Sprint("messages=", messages), func(t *testing.T) {
			onNetworks(t, &sqlstore.Config{SettleFor: 200 * time.Millisecond}, func(t *testing.T, e engine, p *proxy, through, direct *sqlstore.Store) {
				key := lifecycle.Key{Machine: "order", ID: "a"}
				require.NoError(t, through.Commit(t.Context(), next(get(t, through, key), messages)))
				c := next(get(t, through, key), messages)
				trap := []byte("COMMIT")
				switch {
				case e.name == "postgres" && messages == 0:
					trap = []byte{} // the statement commits itself
				case e.name == "postgres":
					trap = []byte("COMMIT\x00") // and not READ COMMITTED
				}
				p.stall.Store(&trap)
				ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer stop()
				err := through.Commit(ctx, c)
				require.Positive(t, p.stalls.Load())
				if err != nil {
					var unknown *lifecycle.UnknownOutcomeError
					require.ErrorAs(t, err, &unknown)
					require.Equal(t, c.Token, unknown.Token)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				p.stall.Store(nil)
				p.endAll()
				require.NoError(t, through.Commit(t.Context(), c), "sent again")
				rows, err := direct.History(t.Context(), key, 0, 10)
				require.NoError(t, err)
				require.Len(t, rows, 2)
				require.Equal(t, c.Token, rows[1].Token)
				list, err := direct.Messages(t.Context(), 10)
				require.NoError(t, err)
				require.Len(t, list, 2*messages)
			})
		})
	}
}

// Connections that have ended in the pool are nothing that a commit tells of.
func TestEndedConnections(t *testing.T) {
	onNetworks(t, nil, func(t *testing.T, e engine, p *proxy, through, direct *sqlstore.Store) {
		key := lifecycle.Key{Machine: "order", ID: "a"}
		for i := range 10 {
			require.NoError(t, through.Commit(t.Context(), next(get(t, direct, key), i%2)))
			p.endAll()
		}
		rows, err := direct.History(t.Context(), key, 0, 100)
		require.NoError(t, err)
		require.Len(t, rows, 10)
	})
}
