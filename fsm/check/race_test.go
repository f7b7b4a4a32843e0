//go:build race

package check_test

// raceDetector makes what is as large as a table can be smaller.
const raceDetector = true
