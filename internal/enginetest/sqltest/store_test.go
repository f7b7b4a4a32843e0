package sqltest

import (
	"testing"

	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

func TestStore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !long() {
			e = unhurried(e)
		}
		s := newStores(t, e, sqlstore.Config{})
		storetest.Run(t, s.new, s.testConfig())
	})
}

// Without a history the statements of a change are others. Those of queries, names and
// messages are the same, and run again with INTERLOCK_LONG only.
func TestStoreWithoutHistory(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !long() {
			e = unhurried(e)
		}
		s := newStores(t, e, sqlstore.Config{NoHistory: true})
		config := s.testConfig()
		if !long() {
			config.Groups = []string{
				"Capabilities", "Get", "Commit", "Metadata", "Numbers", "Token", "Transaction", "Outage", "Concurrent",
			}
		}
		storetest.Run(t, s.new, config)
	})
}
