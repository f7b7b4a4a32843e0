package interlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

// TestVM is the README's test of its table.
func TestVM(t *testing.T) {
	rules := func(t testing.TB, vms *fsm.Machine[string, string, struct{}]) {
		fsmtest.Run(t, vms, []fsmtest.Case[string, string, struct{}]{
			{From: "none", Event: "create", Actor: "user", To: "creating"},
			{From: "none", Event: "create", Actor: "agent", Err: fsm.ErrWrongActor},
			{From: "creating", Event: "done", Actor: "agent", To: "ready"},
			{From: "creating", Event: "done", Actor: "user", Err: fsm.ErrWrongActor},
			{From: "creating", Event: "late", Actor: "sweeper", To: "failed"},
			{From: "creating", Event: "late", Actor: "user", Err: fsm.ErrWrongActor},
			{From: "creating", Event: "delete", Actor: "user", Err: fsm.ErrNotAllowed},
			{From: "ready", Event: "delete", Actor: "user", To: "none"},
			{From: "ready", Event: "delete", Actor: "agent", Err: fsm.ErrWrongActor},
			{From: "failed", Event: "delete", Actor: "user", To: "none"},
		})
	}
	rules(t, vms)
	fsmtest.Mutate(t, vms, rules, nil)                         // fails if a fault in the table were not noticed
	fsmtest.Tour(t, vms.Table(), fsmtest.Drive(vms, nil), nil) // every row, and all that has to be refused
}
