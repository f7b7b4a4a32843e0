//go:build !race

package tabletest

const raceDetector = false
