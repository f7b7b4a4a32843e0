package lock_test

import (
	"testing"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/locktest"
)

// The Tree passes the conformance suite, run as the author of a driver runs it.
func TestTreeConforms(t *testing.T) {
	h := locktest.Harness{
		New:        func(_ testing.TB, c lock.Config) lock.Locker { return lock.Must(&c) },
		FirstToken: true, MaxWaiters: true, MaxHolders: true, Synctest: true,
	}
	if lock.Long {
		h.Steps = 1_000_000
	}
	locktest.Run(t, h)
}
