package sqltest

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// stores opens stores in one database, each in tables with a prefix of its own. One test
// uses it at a time.
type stores struct {
	e      engine
	config sqlstore.Config
	way    way
	made   map[lifecycle.Store]made
}

// made is what a store was opened with.
type made struct {
	way    way
	db     *sql.DB
	prefix string
	table  sqlstore.ExistingTable // of a user
}

func newStores(t testing.TB, e engine, config sqlstore.Config) *stores {
	t.Helper()
	return &stores{e: e, config: config, way: e.open(t), made: map[lifecycle.Store]made{}}
}

var prefixes atomic.Int64

func (s *stores) new(t testing.TB) lifecycle.Store {
	t.Helper()
	return s.by(t, s.way)
}

// by opens a store with these connections.
func (s *stores) by(t testing.TB, w way) lifecycle.Store {
	t.Helper()
	m := made{way: w, db: pool(t, w), prefix: fmt.Sprintf("t%d_", prefixes.Add(1))}
	config := s.config
	config.Prefix = m.prefix
	require.NoError(t, sqlstore.Migrate(t.Context(), m.db, s.e.dialect, &config))
	return s.over(t, m)
}

func (s *stores) over(t testing.TB, m made) lifecycle.Store {
	t.Helper()
	config := s.config
	config.Prefix = m.prefix
	store, err := sqlstore.Open(t.Context(), m.db, s.e.dialect, &config)
	require.NoError(t, err)
	s.made[store] = m
	return store
}

// age moves all stored times into the past.
func (s *stores) age(t testing.TB, store lifecycle.Store, d time.Duration) {
	t.Helper()
	m := s.made[store]
	texts := []string{
		"UPDATE %sobjects SET changed_at = changed_at - %d", "UPDATE %sobjects SET deadline = deadline - %d",
	}
	if store.Capabilities().History {
		texts = append(texts, "UPDATE %[1]shistory SET at = at - %[2]d",
			"UPDATE %[1]sschema SET trimmed_at = trimmed_at - %[2]d, trimmed_to = trimmed_to - %[2]d WHERE trimmed_at > 0")
	}
	for _, text := range texts {
		_, err := m.db.ExecContext(t.Context(), fmt.Sprintf(text, m.prefix, d.Microseconds()))
		require.NoError(t, err)
	}
}

// second opens a store over the same data with other connections.
func (s *stores) second(t testing.TB, store lifecycle.Store) lifecycle.Store {
	t.Helper()
	m := s.made[store]
	m.db = pool(t, m.way)
	return s.over(t, m)
}

// testConfig enables every demand that needs no server of the test's own.
func (s *stores) testConfig() *storetest.Config {
	config := testConfig(s.e, s.age, s.by, s.way)
	config.Second = s.second
	return config
}

// testConfig enables the demands about time, and about the network of an engine that
// has one. open opens a store with these connections.
func testConfig(
	e engine, age func(testing.TB, lifecycle.Store, time.Duration), open func(testing.TB, way) lifecycle.Store, w way,
) *storetest.Config {
	config := &storetest.Config{Age: age, Attempts: 20, WrongClock: e.networked()}
	if e.networked() {
		config.Network = func(t testing.TB) (lifecycle.Store, storetest.Network) {
			through, p := w.through(t)
			return open(t, through), p
		}
	}
	if scale.Full {
		config.Attempts = 100
	}
	return config
}
