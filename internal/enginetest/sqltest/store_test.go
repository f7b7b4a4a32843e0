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

// TestStoreWithoutHistory runs the demands on commits over existing tables without a
// history: the token in the record shows whether a commit was written. INTERLOCK_LONG
// runs all demands.
func TestStoreWithoutHistory(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !long() {
			e = unhurried(e)
		}
		s := usersStores{stores: *newStores(t, e, sqlstore.Config{}), removed: "gone for good", bare: true}
		config := s.testConfig()
		if !long() {
			config.Groups = []string{
				"Capabilities", "Get", "Commit", "Metadata", "Numbers", "Token", "Transaction", "Outage", "Concurrent",
			}
		}
		storetest.Run(t, s.new, config)
	})
}
