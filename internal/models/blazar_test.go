package models

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// TestVerifyBlazar: statuses of a lease, its reservations and its events go
// together at any time, of two leases on the same resources one has given them
// back before the other gets them, and nothing hangs.
func TestVerifyBlazar(t *testing.T) {
	t.Parallel()
	requireHolds(t, Blazar{Leases: 1, Reservations: 2, Updates: 1, Deletes: 1, Refusals: 1, Failures: 1}.Model(), 1_000)
	requireHolds(t, Blazar{Leases: 1, Reservations: 2, Deletes: 1, Deaths: 1, Hangs: 1}.Model(), 1_000)
	requireHolds(t, Blazar{Leases: 2, Reservations: 1, Deletes: 1}.Model(), 1_000)
	if long {
		requireHolds(t, Blazar{
			Leases: 1, Reservations: 2, Updates: 2, Deletes: 2, Refusals: 1, Failures: 1, Deaths: 1, Hangs: 1,
		}.Model(), 200_000)
		requireHolds(t, Blazar{
			Leases: 2, Reservations: 1, Updates: 1, Deletes: 1, Refusals: 1, Failures: 1, Deaths: 1, Hangs: 1,
		}.Model(), 700_000)
	}
}

// TestSweeperKeepsSweeping: a lease whose method died stays between two states for ever, if
// the sweeper need not sweep.
func TestSweeperKeepsSweeping(t *testing.T) {
	model := Blazar{Leases: 1, Reservations: 1, Deaths: 1}.Model()
	fair := model.Fair
	model.Fair = func(label string) bool { return fair(label) && !strings.HasSuffix(label, string(blazar.TimedOut)) }
	v := explored(t, model)
	require.Equal(t, explore.Unreached, v.Outcome, v)
	require.Equal(t, "every operation ends", v.Property)
	requireTrace(t, "blazar-lazy-sweeper", v)
}

// TestBlazarFaults plants faults and finds them.
func TestBlazarFaults(t *testing.T) {
	blind := shipped
	blind.Sweep = func(*fsm.Table, *decide.Record, decide.Cause) (decide.Request, decide.Care) {
		return decide.Request{}, decide.LeaveAlone
	}
	for _, c := range []struct {
		name    string
		model   Blazar
		outcome explore.Outcome
	}{
		{"blazar-impolite", Blazar{Leases: 2, Reservations: 1, Impolite: true}, explore.Violated},
		{"blazar-no-sweeper", Blazar{Leases: 1, Reservations: 1, Deaths: 1, Decisions: &blind}, explore.Stuck},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := explored(t, c.model.Model())
			require.Equal(t, c.outcome, v.Outcome, v)
			requireTrace(t, c.name, v)
		})
	}
}
