package main

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

func TestTable(t *testing.T) {
	cases := func(t testing.TB, m *fsm.Machine[string, string, VM]) {
		fsmtest.Run(t, m, []fsmtest.Case[string, string, VM]{
			{From: "absent", Event: "create", Actor: "user", To: "creating"},
			{From: "absent", Event: "create", Actor: "worker", Err: fsm.ErrWrongActor},
			{From: "creating", Event: "created", Actor: "worker", To: "running"},
			{From: "creating", Event: "created", Actor: "user", Err: fsm.ErrWrongActor},
			{From: "creating", Event: "broken", Actor: "worker", To: "failed"},
			{From: "creating", Event: "broken", Actor: "user", Err: fsm.ErrWrongActor},
			{From: "creating", Event: "late", Actor: "sweeper", To: "failed"},
			{From: "creating", Event: "late", Actor: "user", Err: fsm.ErrWrongActor},
			{From: "creating", Event: "delete", Actor: "user", Err: fsm.ErrNotAllowed},
			{From: "running", Event: "delete", Actor: "user", To: "absent"},
			{From: "running", Event: "delete", Actor: "worker", Err: fsm.ErrWrongActor},
			{From: "failed", Event: "delete", Actor: "user", To: "absent"},
		})
	}
	cases(t, table)
	// Mutate changes the table in one place at a time, and fails if the cases still pass.
	fsmtest.Mutate(t, table, cases, nil)
	// Tour fires every row, and every event that the table has to refuse.
	fsmtest.Tour(t, table.Table(), fsmtest.Drive(table, nil), nil)
}
