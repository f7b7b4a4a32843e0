package sqltest

import (
	"testing"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

func TestStore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !long() {
			e = unhurried(e)
		}
		storetest.Run(t, newStores(t, e, sqlstore.Config{}).harness())
	})
}

// TestStoreWithoutHistory runs the demands on commits over existing tables without a
// history: the token in the record shows whether a commit was written.
func TestStoreWithoutHistory(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !long() {
			e = unhurried(e)
		}
		s := usersStores{stores: *newStores(t, e, sqlstore.Config{}), removed: "gone for good", bare: true}
		h := s.harness()
		if !long() {
			h.Groups = []string{"Capabilities", "Get", "Commit", "Metadata", "Numbers", "Token", "Batch", "Network", "Concurrent"}
		}
		storetest.Run(t, h)
	})
}

// Every engine answers as the store in memory does, call by call.
func TestAsInMemory(t *testing.T) {
	memory := storetest.Harness{
		New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() }, Sequences: 20,
	}
	if long() {
		memory.Sequences = 200
	}
	onEach(t, func(t *testing.T, e engine) {
		storetest.Differential(t, memory, newStores(t, e, sqlstore.Config{}).harness())
	})
}
