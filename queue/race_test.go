//go:build race

package queue_test

// raceDetector reports whether the race detector is on, which allocates memory.
const raceDetector = true
