package sqltest

import (
	"testing"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

func TestStore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !scale.Full {
			e = unhurried(e)
		}
		s := newStores(t, e, sqlstore.Config{})
		storetest.Run(t, s.new, s.testConfig())
	})
}

// TestStoreOfBothTables: the objects of one machine of the suite are in a user's table, and
// those of all others in the library's own. INTERLOCK_LONG runs all demands.
func TestStoreOfBothTables(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !scale.Full {
			e = unhurried(e)
		}
		s := usersStores{stores: *newStores(t, e, sqlstore.Config{}), mixed: true, bare: true}
		config := s.testConfig()
		if !scale.Full {
			config.Groups = []string{"Commit", "Concurrent", "Model"}
		}
		storetest.Run(t, s.new, config)
	})
}

// TestExistingTableWithOwnHistory: the history of a user's table is in the library's own
// tables. INTERLOCK_LONG runs all demands.
func TestExistingTableWithOwnHistory(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !scale.Full {
			e = unhurried(e)
		}
		s := usersStores{stores: *newStores(t, e, sqlstore.Config{}), bare: true}
		config := s.testConfig()
		if !scale.Full {
			config.Groups = []string{"Capabilities", "Commit", "Numbers", "Concurrent", "Model"}
		}
		storetest.Run(t, s.new, config)
	})
}
