package lattice_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle/lattice"
)

func TestAggregate(t *testing.T) {
	for _, c := range []struct {
		services string
		one      []lattice.ServiceState
		want     lattice.State
	}{
		{"none", nil, lattice.Stable},
		{"stable", []lattice.ServiceState{"stable"}, lattice.Stable},
		{"scaling", []lattice.ServiceState{"scaling"}, lattice.Scaling},
		{"updating", []lattice.ServiceState{"updating"}, lattice.Updating},
		{"degraded", []lattice.ServiceState{"degraded"}, lattice.Degraded},
		{"failed counts as degraded", []lattice.ServiceState{"failed"}, lattice.Degraded},
		{"pending counts as updating", []lattice.ServiceState{"pending"}, lattice.Updating},
		{"deleting counts as updating", []lattice.ServiceState{"deleting"}, lattice.Updating},
		{"a state that nobody knows", []lattice.ServiceState{"asleep"}, lattice.Degraded},
		{"scaling over stable", []lattice.ServiceState{"stable", "scaling"}, lattice.Scaling},
		{"updating over scaling", []lattice.ServiceState{"scaling", "updating"}, lattice.Updating},
		{"pending over scaling", []lattice.ServiceState{"scaling", "pending"}, lattice.Updating},
		{"degraded over all", []lattice.ServiceState{"updating", "scaling", "degraded", "stable"}, lattice.Degraded},
		{"failed over updating", []lattice.ServiceState{"updating", "failed"}, lattice.Degraded},
	} {
		t.Run(c.services, func(t *testing.T) {
			require.Equal(t, c.want, lattice.Aggregate(slices.Values(c.one)))
		})
	}
}

// The document decides in pseudocode; this is it, over every list of up to four
// services.
func TestAggregateIsThePseudocode(t *testing.T) {
	counted := map[lattice.ServiceState]lattice.ServiceState{"failed": "degraded", "pending": "updating", "deleting": "updating"}
	pseudocode := func(services []lattice.ServiceState) lattice.State {
		for _, s := range []lattice.ServiceState{"degraded", "updating", "scaling"} {
			if slices.ContainsFunc(services, func(x lattice.ServiceState) bool { return x == s || counted[x] == s }) {
				return lattice.State(s)
			}
		}
		return "stable"
	}
	all := []lattice.ServiceState{"pending", "stable", "updating", "scaling", "degraded", "failed", "deleting"}
	lists := [][]lattice.ServiceState{nil}
	for range 4 {
		var longer [][]lattice.ServiceState
		for _, list := range lists {
			require.Equal(t, pseudocode(list), lattice.Aggregate(slices.Values(list)), "%q", list)
			for _, s := range all {
				longer = append(longer, append(slices.Clone(list), s))
			}
		}
		lists = longer
	}
	for _, list := range lists {
		require.Equal(t, pseudocode(list), lattice.Aggregate(slices.Values(list)), "%q", list)
	}
}
