package sqltest

import (
	"testing"

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
