package sqltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// Durable servers of the test's own are killed by SIGKILL and started again, under a store
// that stays open. SQLite runs in this process: its connections are closed instead, and
// the last one moves the log into the file. Package crash kills processes.
func TestRestart(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		e, server := durable(t, e)
		s := newStores(t, e, sqlstore.Config{})
		restart := func(t testing.TB, store lifecycle.Store) {
			if server != nil {
				require.NoError(t, server.Kill())
				require.NoError(t, server.Start())
				return
			}
			db := s.made[store].db
			db.SetMaxIdleConns(-1)
			db.SetMaxIdleConns(connections)
		}
		storetest.Run(t, s.new, &storetest.Config{Second: s.second, Restart: restart, Groups: []string{"Outage"}})
		store := s.new(t)
		exactCommits(t, store, store, func() {
			for range 3 {
				time.Sleep(100 * time.Millisecond)
				restart(t, store)
			}
		})
		if server != nil {
			store := s.new(t).(*sqlstore.Store)
			keepsOutcomes(t, store, store, time.Second, func() {
				require.NoError(t, server.Kill())
				time.Sleep(time.Second)
				require.NoError(t, server.Start())
			})
		}
	})
}
