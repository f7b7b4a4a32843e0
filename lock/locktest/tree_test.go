package locktest_test

import (
	"testing"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/locktest"
)

// The engine in process passes as it is run by whoever writes another.
func TestTree(t *testing.T) {
	locktest.Run(t, locktest.Harness{
		New:        func(_ testing.TB, c lock.Config) lock.Locker { return lock.NewTree(&c) },
		FirstToken: true, MaxWaiters: true, MaxHolders: true, Synctest: true,
	})
}
