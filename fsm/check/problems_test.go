package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// What package fsm must find in the published tables, from what people found in
// them ("known_anomalies") and in the documents that they come from. No document
// has deadlines, so that every transitional state demands one.
func TestProblemsOfPublishedTables(t *testing.T) {
	type fault struct{ code, state, why string }
	tests := map[string][]fault{
		"real/aws-ec2-instance.json":               nil, // both ways to terminated are sound
		"real/ietf-acme-order-rfc8555.json":        nil,
		"real/ietf-http2-stream-rfc9113.json":      nil,
		"real/ietf-tcp-rfc9293.json":               nil, // CLOSED rests and is left again, which is sound because it is not final
		"real/k8s-job.json":                        nil,
		"real/openstack-ironic-provision.json":     nil,
		"real/openstack-octavia-loadbalancer.json": nil,
		"seeds/seed0-cloudlet-create.json":         nil,
		"seeds/seed0-cloudlet-upgrade.json": {
			{fsm.DeadEnd, "UpdateError", "has a self loop only: an administrator repairs it, without a row"},
		},
		"seeds/seed0-trackedstate.json": {
			{fsm.AmbiguousRow, "", "CreateRequested: the content of the CRM's response decides, not the event"},
			{fsm.AmbiguousRow, "", "UpdateRequested: likewise"},
			{fsm.AmbiguousRow, "", "DeleteRequested: likewise"},
		},
		"seeds/seed1-ovc-account.json": {
			{fsm.DeadEnd, "DELETED", "neither restored nor destroyed"},
		},
		"seeds/seed1-ovc-cloudspace.json": nil, // that PAUSED cannot be deleted is a gap, not a fault of form
		"seeds/seed1-ovc-disk.json": {
			{fsm.DeadEnd, "DELETED", "the recycle bin of detached disks has no exit"},
			{fsm.DeadEnd, "TOBEDELETED", "nor has that of attached ones"},
		},
		"seeds/seed1-ovc-image.json": {
			{fsm.DeadEnd, "DELETED", "as for accounts; the row DISABLED-DISABLING-CREATED is sound in form"},
		},
		"seeds/seed1-ovc-node.json": nil,
		"seeds/seed1-ovc-vm.json": {
			{fsm.DeadEnd, "DELETED", "no row for the end of the retention period"},
		},
		"seeds/seed3-lattice-system.json": nil,
		"seeds/seed4-tumblebug-mci.json": {
			{fsm.FinalExit, "", "Failed is final, and Terminate Force leaves it"},
			{fsm.Unreachable, "Undefined", "declared, without edges"},
			{fsm.DeadEnd, "Undefined", "declared, without edges"},
		},
		"seeds/seed4-tumblebug-vm.json": {
			{fsm.FinalExit, "", "Failed is final, and Terminate (Force) leaves it"},
			{fsm.Unreachable, "Undefined", "declared, without edges"},
			{fsm.DeadEnd, "Undefined", "declared, without edges"},
		},
	}
	files := tabletest.Files(t, "*")
	require.Len(t, files, len(tests), "every table is listed")
	for file, faults := range tests {
		t.Run(file, func(t *testing.T) {
			table := tabletest.Read(t, file)
			r := check.Analyze(table)

			want := []fault{}
			for _, f := range faults {
				want = append(want, fault{code: f.code, state: f.state})
			}
			got := []fault{}
			for _, p := range r.Problems {
				if !p.Demand {
					got = append(got, fault{code: p.Code, state: p.State})
				}
			}
			require.ElementsMatch(t, want, got, "%v", r.Problems)

			var transitional, demanded []string
			for _, s := range table.States {
				if s.Kind == fsm.Transitional {
					transitional = append(transitional, s.Name)
				}
			}
			for _, p := range r.Problems {
				if p.Demand {
					require.Equal(t, fsm.NoDeadline, p.Code)
					demanded = append(demanded, p.State)
				}
			}
			require.Equal(t, transitional, demanded)
		})
	}
}

// The structural facts and the problems of the same name agree on every published
// table.
func TestFactsAgreeWithProblems(t *testing.T) {
	files := tabletest.Files(t, "*")
	for _, file := range files {
		r := check.Analyze(tabletest.Read(t, file))
		byCode := map[string][]string{fsm.Unreachable: {}, fsm.DeadEnd: {}}
		for _, p := range r.Problems {
			byCode[p.Code] = append(byCode[p.Code], p.State)
		}
		require.Equal(t, byCode[fsm.Unreachable], r.UnreachableFromInitials, file)
		require.Equal(t, byCode[fsm.DeadEnd], r.Traps, file)
		require.Equal(t, len(byCode[fsm.FinalExit]) > 0, len(r.FinalWithExit) > 0, file)
	}
}
