package locktest_test

import (
	"testing"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/locktest"
)

// A test of an engine: here of the one in process, which obeys every field of
// the configuration and needs no clock but that of a bubble. An engine with a
// server leaves Synctest out, and asks for less where its calls are slow.
func ExampleRun() {
	TestLocker := func(t *testing.T) {
		locktest.Run(t, locktest.Harness{
			New:        func(_ testing.TB, c lock.Config) lock.Locker { return lock.NewTree(&c) },
			FirstToken: true, MaxWaiters: true, MaxHolders: true,
			Synctest: true,
			Steps:    1_000, Histories: 50, Attempts: 20,
		})
	}
	_ = TestLocker
}
