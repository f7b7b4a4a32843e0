package sqltest

import (
	"testing"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

func TestStore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) { storetest.Run(t, newStores(t, e, sqlstore.Config{}).harness()) })
}

func TestStoreWithoutHistory(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		storetest.Run(t, newStores(t, e, sqlstore.Config{NoHistory: true}).harness())
	})
}

// Every engine answers as the store in memory does, call by call.
func TestAsInMemory(t *testing.T) {
	memory := storetest.Harness{
		New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() }, Sequences: 20,
	}
	onEach(t, func(t *testing.T, e engine) {
		storetest.Differential(t, memory, newStores(t, e, sqlstore.Config{}).harness())
	})
}
