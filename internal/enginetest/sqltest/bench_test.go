package sqltest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// BenchmarkRatios compares one Fire with the same read and the same transaction by
// hand, over the same driver and in the same tables.
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
		b.Run(s.name, func(b *testing.B) { compare(b, s.e, "sqlstore/"+s.name+"/fire") })
	}
	ratio.PrintMachine(os.Stdout)
}

func compare(b *testing.B, e engine, name string) {
	db := pool(b, e.open(b))
	require.NoError(b, sqlstore.Migrate(b.Context(), db, e.dialect, nil))
	x := newBare(b, e, db)
	store, err := sqlstore.Open(b.Context(), db, e.dialect, nil)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	m := manage(store)
	ctx := context.Background()
	_, err = m.Create(ctx, "a", place, customer, "one", nil)
	require.NoError(b, err)
	pair := ratio.Pair{
		Name: name, Goal: 1.3,
		Base: func(n int) {
			for range n {
				x.fire()
			}
		},
		Subject: func(n int) {
			for range n {
				_, err := m.Fire(ctx, "a", note, customer, nil)
				must(err)
			}
		},
	}
	ratio.Print(os.Stdout, ratio.Measure([]ratio.Pair{pair}, &ratio.Config{Rounds: 501, Slice: 4 * time.Millisecond}))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
