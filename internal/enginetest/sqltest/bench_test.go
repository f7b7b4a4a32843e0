package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// bare is the compare-and-set that a program without the library would make, in
// the same tables, with statements prepared where the driver gains by it.
type bare struct {
	db             *sql.DB
	update, insert *sql.Stmt
	rev            []int64 // by object
}

func newBare(b *testing.B, e engine, db *sql.DB, objects int) *bare {
	places := func(text string) string {
		if e.name != "postgres" {
			return text
		}
		for n := 1; ; n++ {
			before, after, found := cut(text)
			if !found {
				return text
			}
			text = fmt.Sprintf("%s$%d%s", before, n, after)
		}
	}
	x := &bare{db: db, rev: make([]int64, objects)}
	var err error
	x.update, err = db.PrepareContext(b.Context(), places("UPDATE interlock_objects SET state = ?, revision = revision + 1, sequence = sequence + 1, changed_at = ?, actor = ?, event = ?, token = ? WHERE machine = 'bare' AND id = ? AND revision = ? AND state = ?"))
	require.NoError(b, err)
	x.insert, err = db.PrepareContext(b.Context(), places("INSERT INTO interlock_history VALUES ('bare', ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, '', ?)"))
	require.NoError(b, err)
	for i := range objects {
		exec(b, db, fmt.Sprintf("INSERT INTO interlock_objects (machine, id, state, origin, target, revision, sequence, operation, owner, epoch, work, changed_at, actor, event, reason, token) VALUES ('bare', 'o%d', 'open', 'open', '', 0, 0, 0, '', 0, '', 0, '', '', '', 'sixteen bytes ok')", i))
	}
	return x
}

func cut(text string) (before, after string, found bool) {
	for i := range text {
		if text[i] == '?' {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

var token16 = make([]byte, 16)

func (x *bare) tx(object int) {
	tx, err := x.db.BeginTx(context.Background(), nil)
	must(err)
	rev := x.rev[object]
	id := fmt.Sprint("o", object)
	now := time.Now().UnixMicro()
	_, err = tx.Stmt(x.update).Exec("open", now, "customer", "note", token16, id, rev, "open")
	must(err)
	_, err = tx.Stmt(x.insert).Exec(id, rev+1, rev+1, token16, "open", "open", "open", "open", "note", "customer", now)
	must(err)
	must(tx.Commit())
	x.rev[object]++
}

func (x *bare) one(object int) {
	_, err := x.update.Exec("open", time.Now().UnixMicro(), "customer", "note", token16, fmt.Sprint("o", object), x.rev[object], "open")
	must(err)
	x.rev[object]++
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// BenchmarkRatios compares one change with the bare statements, by the same
// driver. A Fire reads before it writes, which the bare statement has no need to.
func BenchmarkRatios(b *testing.B) {
	const objects, workers = 64, 16
	var pairs []ratio.Pair
	durable := engines()[0]
	durable.open = func(t testing.TB) way { return way{"sqlite", servers.SQLite(t)} }
	for i, e := range append([]engine{durable}, engines()...) {
		setting := e.name // with the settings of the server
		switch i {
		case 0:
			setting = "sqlite-synchronous-full"
		case 1:
			setting = "sqlite-synchronous-normal"
		}
		if e.networked() && os.Getenv(map[string]string{"postgres": "INTERLOCK_POSTGRES_DSN", "mysql": "INTERLOCK_MYSQL_DSN"}[e.name]) == "" {
			continue
		}
		db := pool(b, e.open(b))
		require.NoError(b, sqlstore.Migrate(b.Context(), db, e.dialect, nil))
		x := newBare(b, e, db, objects)
		store, err := sqlstore.Open(b.Context(), db, e.dialect, nil)
		require.NoError(b, err)
		single, err := sqlstore.Open(b.Context(), db, e.dialect, &sqlstore.Config{NoHistory: true})
		require.NoError(b, err)
		m := manage(store)
		records := make([]lifecycle.StoredRecord, objects)
		for i := range objects {
			id := fmt.Sprint("m", i)
			_, err := m.Create(b.Context(), id, place, customer, "one")
			require.NoError(b, err)
			records[i] = get(b, store, lifecycle.Key{Machine: "order", ID: id})
		}
		ctx := context.Background()
		fire := func(i int) {
			_, err := m.Fire(ctx, fmt.Sprint("m", i), note, customer, nil)
			must(err)
		}
		plain := get(b, single, lifecycle.Key{Machine: "single", ID: "a"})
		commit := func(s *sqlstore.Store, r *lifecycle.StoredRecord) {
			c := next(*r, 0)
			must(s.Commit(ctx, c))
			*r = c.Changes[0].To
		}
		side := func(run func(i int)) func(int) { // 16 workers with objects of their own
			return func(n int) {
				var group sync.WaitGroup
				for w := range workers {
					group.Go(func() {
						for i := range n {
							run(w + i%(objects/workers)*workers)
						}
					})
				}
				group.Wait()
			}
		}
		times := func(run func()) func(int) {
			return func(n int) {
				for range n {
					run()
				}
			}
		}
		lone := lifecycle.StoredRecord(get(b, store, lifecycle.Key{Machine: "lone", ID: "a"}))
		pairs = append(pairs,
			ratio.Pair{Name: "sqlstore/" + setting + "/fire", Goal: 1.3, Base: times(func() { x.tx(0) }), Subject: times(func() { fire(0) })},
			ratio.Pair{Name: "sqlstore/" + setting + "/commit", Goal: 1.3, Base: times(func() { x.tx(0) }), Subject: times(func() { commit(store, &lone) })},
			ratio.Pair{Name: "sqlstore/" + setting + "/commit-without-history", Goal: 1.2, Base: times(func() { x.one(0) }), Subject: times(func() { commit(single, &plain) })},
			ratio.Pair{Name: "sqlstore/" + setting + "/fire-by-16-on-many", Goal: 1.3, Base: side(x.tx), Subject: side(fire)},
		)
		b.Cleanup(func() {
			require.NoError(b, x.update.Close())
			require.NoError(b, x.insert.Close())
			require.NoError(b, store.Close())
			require.NoError(b, single.Close())
		})
	}
	_ = ratio.Print(os.Stdout, ratio.Measure(pairs, &ratio.Config{Rounds: 101, Slice: 2 * time.Millisecond}))
	ratio.PrintMachine(os.Stdout)
}
