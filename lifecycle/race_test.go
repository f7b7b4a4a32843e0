//go:build race

package lifecycle_test

// The race detector allocates on its own account.
const raceEnabled = true
