//go:build race

package tabletest

const raceDetector = true
