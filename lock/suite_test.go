package lock_test

import (
	"testing"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/locktest"
)

// The Tree passes the conformance suite, run as the author of a driver runs it. The suite
// compares a locker with a Tree; its own tests compare the Tree with a simple locker.
func TestTreeConforms(t *testing.T) {
	open := func(_ testing.TB, c lock.Config) lock.Locker { return lock.Must(&c) }
	locktest.Run(t, open, &locktest.Config{FirstToken: true})
}
