package models

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// TestVerifyUpgrade: whatever is lost, comes twice or crashes in an upgrade, there
// are never two CRMs in charge, and it comes to an end.
func TestVerifyUpgrade(t *testing.T) {
	t.Parallel()
	const restartOld, restartNew = `actor "crm-v1" in action 1`, `actor "crm-v2" in action 1`
	requireHolds(t, Upgrade{Upgrades: 1, Capacity: 1}.System(), 40_000, restartOld, restartNew)
	if long {
		requireHolds(t, Upgrade{Upgrades: 1, Loss: 1, Duplicate: 1}.System(), 100_000, restartOld, restartNew)
		requireHolds(t, Upgrade{Upgrades: 1, Capacity: 1, CrashNew: 1}.System(), 400_000, restartOld)
		requireHolds(t, Upgrade{Upgrades: 1, Capacity: 1, CrashOld: 1}.System(), 6_000_000, restartNew)
	}
}

// TestUpgradeFaults plants faults and finds them.
func TestUpgradeFaults(t *testing.T) {
	for _, c := range []struct {
		name     string
		model    Upgrade
		property string
	}{
		{"upgrade-hasty", Upgrade{Upgrades: 1, Hasty: true}, "never two in charge"},
		{"upgrade-trusting", Upgrade{Upgrades: 1, Capacity: 1, CrashOld: 1, Trusting: true}, "what the controller counts on is in charge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := explored(t, c.model.System())
			require.Equal(t, explore.Violated, v.Outcome, v)
			require.Equal(t, c.property, v.Property)
			requireTrace(t, c.name, v)
		})
	}
}
