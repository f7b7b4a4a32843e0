package models

import "testing"

// TestVerifyTakeover: only the work of the present operation moves the object, whatever
// dies, is slow, comes late or is lost, and the object always comes to rest.
func TestVerifyTakeover(t *testing.T) {
	t.Parallel()
	requireHolds(t, Takeover{Operations: 2, Deaths: 2, Reports: 1}.Model(nil), 4_000)
	requireHolds(t, Takeover{Operations: 2, Deaths: 2, Lost: 1}.Model(nil), 6_000)
	requireHolds(t, Takeover{Operations: 2, Deaths: 2, Reports: 1, Checked: true}.Model(nil), 3_000)
	requireHolds(t, Takeover{Operations: 2, Deaths: 2, Lost: 1, Checked: true}.Model(nil), 3_000)
	if long {
		requireHolds(t, Takeover{Operations: 4, Deaths: 2, Reports: 2}.Model(nil), 60_000)
		requireHolds(t, Takeover{Operations: 3, Deaths: 2, Lost: 2}.Model(nil), 50_000)
	}
}
