package check_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// TestKnownAnomalies compares the anomalies that reviewers found in the published
// tables with the findings. Each has a finding, or a reason why it has none.
func TestKnownAnomalies(t *testing.T) {
	type known struct{ anomaly, id, state, not string }
	const (
		outside   = "about texts, code or pictures outside of the table"
		praise    = "the table is sound there"
		conform   = "about observed states: conformance of histories refuses them"
		meaning   = "about the meaning of states or of a guard's name, which no rule can read"
		evolution = "a difference of two tables"
	)
	tests := map[string][]known{
		"real/aws-ec2-instance.json": {
			{anomaly: "No error state", id: "owner-death", state: "pending"},
			{anomaly: "stopped -> terminated skips", not: meaning},
		},
		"real/ietf-acme-order-rfc8555.json": {{anomaly: "Real implementation drift", not: conform}},
		"real/ietf-http2-stream-rfc9113.json": {
			{anomaly: "Late-event rule", not: meaning + ": no other final state handles them"},
			{anomaly: "idle -> closed is in prose", not: outside},
		},
		"real/ietf-tcp-rfc9293.json": {
			{anomaly: "Figure 5 omits", not: evolution},
			{anomaly: "CLOSED is initial, resting and re-enterable", not: praise},
		},
		"real/k8s-job.json": {{anomaly: "States are conditions", not: meaning}},
		"real/openstack-ironic-provision.json": {
			{anomaly: "30 states / 93 transitions", not: praise},
			{anomaly: "Docs drift", not: outside},
			{anomaly: "Classification gap", id: "owner-death", state: "deploy hold"},
			{anomaly: "UNSTABLE but not auto-failed", not: outside},
			{anomaly: "states.ALL_STATES lists", not: outside},
			{anomaly: "tools/states_to_dot.py", not: outside},
		},
		"real/openstack-octavia-loadbalancer.json": {{anomaly: "PENDING_* are immutable", id: "owner-death", state: "PENDING_UPDATE"}},
		"seeds/seed0-cloudlet-create.json": {
			{anomaly: "notify-id is a fencing epoch", not: praise},
			{anomaly: "No path to Offline from Ready/Init", id: "owner-death", state: "Init"},
		},
		"seeds/seed0-cloudlet-upgrade.json": {
			{anomaly: "UpdateError has only a self-loop", id: "error-no-exit", state: "UpdateError"},
			{anomaly: "At Updating/InitOk two actors", not: meaning},
		},
		"seeds/seed0-trackedstate.json": {
			{anomaly: "Deleted is a target but has no row", not: meaning},
			{anomaly: "Guarded pairs on", id: "ambiguous-row"},
			{anomaly: "CreateError->NotPresent(undo)", not: meaning},
		},
		"seeds/seed1-ovc-account.json":    {{anomaly: "DELETED is a trap", id: "dead-end", state: "DELETED"}},
		"seeds/seed1-ovc-cloudspace.json": {{anomaly: "PAUSED cannot be deleted", not: meaning}},
		"seeds/seed1-ovc-disk.json": {
			{anomaly: "DELETING leads to DELETED or TOBEDELETED", id: "choice", state: "DELETING"},
			{anomaly: "DELETED and TOBEDELETED are traps", id: "dead-end", state: "TOBEDELETED"},
		},
		"seeds/seed1-ovc-image.json": {{anomaly: "Copy/paste bug", id: "choice", state: "DISABLING"}},
		"seeds/seed1-ovc-node.json":  {},
		"seeds/seed1-ovc-vm.json": {
			{anomaly: "HALTED has no start", not: meaning + ": by the table, adding a disk may lead from HALTED to RUNNING"},
			{anomaly: "DELETED (recycle bin)", id: "dead-end", state: "DELETED"},
			{anomaly: "ADDING_DISK/ATTACHING_DISK", id: "choice", state: "ADDING_DISK"},
			{anomaly: "No error state and no failure edge", id: "owner-death", state: "RESETTING"},
			{anomaly: "migrate() is deliberately invisible", not: outside},
		},
		"seeds/seed3-lattice-system.json": {
			{anomaly: "Derived states", not: meaning},
			{anomaly: "Text: \"At any point", not: meaning},
			{anomaly: "IntentionLock text", not: outside},
		},
		"seeds/seed4-tumblebug-mci.json": {
			{anomaly: "Suspending/Resuming/Rebooting/Terminating have no failure", id: "owner-death", state: "Rebooting"},
			{anomaly: "Partial-* is a prefix", not: outside},
		},
		"seeds/seed4-tumblebug-vm.json": {
			{anomaly: "Failed is labelled", id: "final-exit"},
			{anomaly: "Undefined is declared but unreachable", id: "unreachable", state: "Undefined"},
			{anomaly: "Refine (removes", not: outside},
		},
	}
	reported, others := 0, 0
	for _, file := range tabletest.Files(t, "*") {
		list, ok := tests[file]
		require.True(t, ok, file)
		data, err := os.ReadFile(filepath.Join("../testdata/tables", file))
		require.NoError(t, err)
		var document struct {
			Anomalies []string `json:"known_anomalies"`
		}
		require.NoError(t, json.Unmarshal(data, &document))
		require.Len(t, document.Anomalies, len(list), file)
		found := check.Lint(tabletest.Read(t, file), nil)
		for i, s := range list {
			require.True(t, strings.HasPrefix(document.Anomalies[i], s.anomaly), "%s: %s", file, document.Anomalies[i])
			if s.not != "" {
				others++
				continue
			}
			reported++
			require.True(t, hasFinding(found, s.id, s.state), "%s: no finding: %s", file, s.anomaly)
		}
	}
	t.Logf("of %d findings of people, %d are reported; %d are not about the table alone", reported+others, reported, others)
}

func hasFinding(found check.Findings, id, state string) bool {
	for _, f := range found {
		if f.ID != id {
			continue
		}
		if state == "" {
			return true
		}
		for _, s := range f.States {
			if s == state {
				return true
			}
		}
	}
	return false
}
