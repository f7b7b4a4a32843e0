//go:build race

package queue_test

// raceDetector makes heavy tests lighter, and what it would distort is skipped.
const raceDetector = true
