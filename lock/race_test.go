//go:build race

package lock

// The race detector makes long walks slow.
const raceEnabled = true
