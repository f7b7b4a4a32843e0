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

// Without a history changes are other statements; queries, names and messages
// are the same, and run again where there is time.
func TestStoreWithoutHistory(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !long() {
			e = unhurried(e)
		}
		h := newStores(t, e, sqlstore.Config{NoHistory: true}).harness()
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
