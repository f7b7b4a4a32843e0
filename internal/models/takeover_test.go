package models

import "testing"

// TestVerifyTakeover: only the work of the present operation moves the object, whatever
// dies, is slow, comes late or is lost, and the object always comes to rest.
func TestVerifyTakeover(t *testing.T) {
	for _, l := range []TakeoverLimits{
		{Operations: 2, Deaths: 1, Slow: 1, Reports: 1},
		{Operations: 2, Deaths: 1, Slow: 1, Lost: 1},
	} {
		requireHolds(t, Takeover{Limits: l}.Model(), 100)
	}
}
