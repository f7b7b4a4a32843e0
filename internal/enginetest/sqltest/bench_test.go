package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

const (
	benchObjects = 64
	benchWorkers = 16
)

// BenchmarkRatios compares one change with the bare statements, by the same
// driver and in the same tables: by one caller, by 16 on objects of their own, and
// by 16 on one object, where both sides read and try again until they have won.
// Without Recall a Fire reads before it writes, which the bare statement has no
// need to but on one object. In turn, two stores move one object, which is the
// worst that remembering can do: the base is two that remember nothing.
func BenchmarkRatios(b *testing.B) {
	each := engines()
	sqlite, postgres, mysql := each[0], each[1], each[2]
	on := func(e engine, open func(testing.TB) way) engine { return engine{e.name, e.dialect, open} }
	for _, s := range []struct {
		name string
		e    engine
	}{
		{"sqlite-full", on(sqlite, func(t testing.TB) way { return way{"sqlite", servers.SQLite(t)} })},
		{"sqlite-normal", on(sqlite, func(t testing.TB) way {
			return way{"sqlite", servers.SQLite(t)}.with(t, "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
		})},
		{"postgres-durable", postgres},
		{"postgres-asynchronous", unhurried(postgres)},
		{"mariadb-durable", mysql},
		{"mariadb-flush-every-second", on(mysql, func(t testing.TB) way {
			return way{"mysql", servers.PrivateMariaDB(t, &private.Config{Fast: true}).DSN()}
		})},
	} {
		b.Run(s.name, func(b *testing.B) { compare(b, s.e, "sqlstore/"+s.name+"/") })
	}
	ratio.PrintMachine(os.Stdout)
}

func compare(b *testing.B, e engine, name string) {
	db := pool(b, e.open(b))
	require.NoError(b, sqlstore.Migrate(b.Context(), db, e.dialect, nil))
	x := newBare(b, e, db)
	open := func(config *sqlstore.Config) *sqlstore.Store {
		store, err := sqlstore.Open(b.Context(), db, e.dialect, config)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, store.Close()) })
		return store
	}
	store, single := open(nil), open(&sqlstore.Config{NoHistory: true})
	m, reading := manage(store), manage(open(&sqlstore.Config{Recall: -1}))
	for i := range benchObjects {
		_, err := m.Create(b.Context(), fmt.Sprint("m", i), place, customer, "one")
		require.NoError(b, err)
	}
	ctx := context.Background()
	try := func(m *orders, i int) error {
		_, err := m.Fire(ctx, fmt.Sprint("m", i), note, customer, nil)
		return err
	}
	fire := func(m *orders) func(int) { return func(i int) { must(try(m, i)) } }
	win := func(m *orders) func(int) {
		return func(int) {
			err := try(m, 0)
			for errors.Is(err, lifecycle.ErrConflict) {
				err = try(m, 0)
			}
			must(err)
		}
	}
	commit := func(s *sqlstore.Store, machine string) func(int) {
		r := get(b, s, lifecycle.Key{Machine: machine, ID: "a"})
		return func(int) {
			c := next(r, 0)
			must(s.Commit(ctx, c))
			r = c.Changes[0].To
		}
	}
	alone := func(run func(int)) func(int) {
		return func(n int) {
			for range n {
				run(0)
			}
		}
	}
	together := func(run func(object int)) func(int) {
		return func(n int) {
			var group sync.WaitGroup
			for w := range benchWorkers {
				group.Go(func() {
					for i := range n {
						run(w + i%(benchObjects/benchWorkers)*benchWorkers)
					}
				})
			}
			group.Wait()
		}
	}
	inTurn := func(two ...*orders) func(int) {
		turn := 0
		return func(n int) {
			for range n {
				must(try(two[turn%2], 1))
				turn++
			}
		}
	}
	pairs := []ratio.Pair{
		{Name: name + "fire", Goal: 1.3, Base: alone(x.tx), Subject: alone(fire(m))},
		{Name: name + "commit", Goal: 1.3, Base: alone(x.tx), Subject: alone(commit(store, "lone"))},
		{Name: name + "commit-without-history", Goal: 1.2, Base: alone(x.one), Subject: alone(commit(single, "single"))},
		{Name: name + "fire-by-16-on-many", Goal: 1.3, Base: together(x.tx), Subject: together(fire(m))},
		{Name: name + "fire-by-16-on-one", Goal: 1.3, Base: together(x.win), Subject: together(win(m))},
		{Name: name + "fire-without-recall", Goal: 1.3, Base: alone(x.tx), Subject: alone(fire(reading))},
		{Name: name + "fire-without-recall-by-16-on-many", Goal: 1.3, Base: together(x.tx), Subject: together(fire(reading))},
		{Name: name + "fire-without-recall-by-16-on-one", Goal: 1.3, Base: together(x.win), Subject: together(win(reading))},
		{
			Name: name + "fire-by-2-stores-in-turn", Goal: 1.2,
			Base:    inTurn(reading, manage(open(&sqlstore.Config{Recall: -1}))),
			Subject: inTurn(m, manage(open(nil))),
		},
	}
	rounds := 101
	if long() {
		rounds = 501
	}
	_ = ratio.Print(os.Stdout, ratio.Measure(pairs, &ratio.Config{Rounds: rounds, Slice: 4 * time.Millisecond}))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
