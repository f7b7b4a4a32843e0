package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

// TestTable states what the table does. Mutate changes the table in one place at a time, and
// fails if the cases still pass.
func TestTable(t *testing.T) {
	small, big := &VM{CPUs: maxCPUs}, &VM{CPUs: maxCPUs + 1}
	cases := func(t testing.TB, m *fsm.Machine[State, Event, VM]) {
		fsmtest.Run(t, m, []fsmtest.Case[State, Event, VM]{
			{From: Absent, Event: Create, Actor: User, Payload: small, To: Creating},
			{From: Absent, Event: Create, Actor: User, Payload: big, Err: fsm.ErrGuard},
			{From: Absent, Event: Create, Actor: Worker, Payload: small, Err: fsm.ErrWrongActor},
			{From: Stopped, Event: Resize, Actor: User, Payload: small, To: Stopped, Row: new(3)},
			{From: Stopped, Event: Resize, Actor: User, Payload: big, Err: fsm.ErrGuard},
			{From: Stopped, Event: Resize, Actor: Worker, Payload: small, Err: fsm.ErrWrongActor},
			{From: Running, Event: Resize, Actor: User, Payload: small, Err: fsm.ErrNotAllowed},
			{From: Running, Event: Stop, Actor: User, To: Stopping},
			{From: Running, Event: Stop, Actor: Worker, Err: fsm.ErrWrongActor},
			{From: Stopped, Event: Start, Actor: User, To: Starting},
			{From: Stopped, Event: Start, Actor: Worker, Err: fsm.ErrWrongActor},
			{From: Running, Event: Delete, Actor: User, To: Deleting},
			{From: Stopped, Event: Delete, Actor: User, To: Deleting},
			{From: Failed, Event: Delete, Actor: User, To: Deleting},
			{From: Running, Event: Delete, Actor: Worker, Err: fsm.ErrWrongActor},
			{From: Creating, Event: Delete, Actor: User, Err: fsm.ErrNotAllowed},

			{From: Creating, Event: Done, Actor: Worker, To: Running},
			{From: Starting, Event: Done, Actor: Worker, To: Running},
			{From: Creating, Event: Done, Actor: User, Err: fsm.ErrWrongActor},
			{From: Stopping, Event: Done, Actor: Worker, To: Stopped},
			{From: Stopping, Event: Done, Actor: User, Err: fsm.ErrWrongActor},
			{From: Deleting, Event: Done, Actor: Worker, To: Absent},
			{From: Deleting, Event: Done, Actor: User, Err: fsm.ErrWrongActor},
			{From: Creating, Event: Fail, Actor: Worker, To: Failed},
			{From: Starting, Event: Fail, Actor: Worker, To: Failed},
			{From: Stopping, Event: Fail, Actor: Worker, To: Failed},
			{From: Deleting, Event: Fail, Actor: Worker, To: Failed},
			{From: Creating, Event: Fail, Actor: User, Err: fsm.ErrWrongActor},

			{From: Creating, Event: Again, Actor: fsm.Sweeper, To: Creating, Row: new(9)},
			{From: Creating, Event: Again, Actor: User, Err: fsm.ErrWrongActor},
			{From: Creating, Event: Again, Actor: Worker, Err: fsm.ErrWrongActor},
			{From: Starting, Event: Again, Actor: fsm.Sweeper, To: Starting, Row: new(10)},
			{From: Starting, Event: Again, Actor: User, Err: fsm.ErrWrongActor},
			{From: Starting, Event: Again, Actor: Worker, Err: fsm.ErrWrongActor},
			{From: Stopping, Event: Again, Actor: fsm.Sweeper, To: Stopping, Row: new(11)},
			{From: Stopping, Event: Again, Actor: User, Err: fsm.ErrWrongActor},
			{From: Stopping, Event: Again, Actor: Worker, Err: fsm.ErrWrongActor},
			{From: Deleting, Event: Again, Actor: fsm.Sweeper, To: Deleting, Row: new(12)},
			{From: Deleting, Event: Again, Actor: User, Err: fsm.ErrWrongActor},
			{From: Deleting, Event: Again, Actor: Worker, Err: fsm.ErrWrongActor},
		})
	}
	cases(t, vmTable)
	fsmtest.Mutate(t, vmTable, cases, nil)
}

// TestLint: nothing in the table is odd.
func TestLint(t *testing.T) {
	require.Empty(t, check.Lint(vmTable.Table(), nil).AtLeast(check.Warning))
	require.Empty(t, check.Lint(vmTable2.Table(), nil).AtLeast(check.Warning))
}

// TestVersions: replicas with versions 1 and 2 may run side by side once version1 translates
// the names.
func TestVersions(t *testing.T) {
	report, err := evolve.Diff(vmTable.Table(), vmTable2.Table(), &evolve.Config{States: version1.States})
	require.NoError(t, err)
	require.Equal(t, evolve.NeedsMapping, report.Level, "%v", report.Hazards)
}
