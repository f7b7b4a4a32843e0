package fsm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

var plainTable = cmpopts.IgnoreUnexported(fsm.Table{})

func TestTableIsTheSpecByIndex(t *testing.T) {
	s := diskSpec()
	s.Title = "Disks of a cloud"
	s.States[1].Target = new("CREATED")
	s.States[1].Doc = "the storage works"
	s.Rows[4] = s.Rows[4].Superseding().Note("may be undone")
	m, err := fsm.New[disk](s)
	require.NoError(t, err)
	want := &fsm.Table{
		Name: "disk", Title: "Disks of a cloud", Initial: 0,
		Actors: []fsm.Actor{user, worker, guest, fsm.Sweeper},
		Events: []string{"create", "done", "failed", "resize", "delete", "restore", "lost", "repair"},
		States: []fsm.TableState{
			{Name: "ABSENT", Kind: fsm.Absent, Target: -1},
			{Name: "CREATING", Kind: fsm.Transitional, Target: 2, Doc: "the storage works"},
			{Name: "CREATED", Target: -1},
			{Name: "TOBEDELETED", Target: -1},
			{Name: "DELETING", Kind: fsm.Transitional, Manual: "operator", Target: -1},
			{Name: "DELETED", Kind: fsm.Final, Target: -1},
			{Name: "BROKEN", Kind: fsm.Failed, Target: -1},
		},
		Rows: []fsm.TableRow{
			{From: []int{0}, Event: 0, Actors: []int{0}, To: 1},
			{From: []int{1}, Event: 1, Actors: []int{1}, To: 2},
			{From: []int{1}, Event: 2, Actors: []int{1, 3}, To: -1, Then: fsm.ThenReturn, Timeout: time.Minute},
			{From: []int{2}, Event: 3, Actors: []int{0}, Guard: "room", To: 2},
			{From: []int{2, 3}, Event: 4, Actors: []int{0}, To: 4, Supersede: true, Doc: "may be undone"},
			{From: []int{4}, Origin: []int{2}, Event: 1, Actors: []int{1}, To: 3},
			{From: []int{4}, Origin: []int{3}, Event: 1, Actors: []int{1}, To: 5},
			{From: []int{4}, Event: 2, Actors: []int{1}, To: -1, Then: fsm.ThenReturn},
			{From: []int{4}, Event: 4, Actors: []int{0}, To: -1, Then: fsm.ThenIgnore},
			{From: []int{5}, Event: 5, Actors: []int{0}, To: 2, Forced: true},
			{From: []int{1, 2, 3, 4}, Any: true, Event: 6, To: 6},
			{From: []int{6}, Event: 7, Actors: []int{0}, Guard: "room", To: 2},
		},
	}
	require.Empty(t, cmp.Diff(want, m.Table(), plainTable, cmpopts.EquateEmpty()))
}

func TestRowsHaveTheFieldsOfTheSpec(t *testing.T) {
	table := mustNew(t, with(sound(),
		fsm.FromAny("x", "closed").Excluding("closing").By(user),
		fsm.Move("gone", "x", "open").By(user).OnlyForced().Note("by a technician"),
		fsm.Redo("closing", "x", time.Second))).Table()
	state := func(name string) int { s, _ := table.StateIndex(name); return s }
	by := func(actor fsm.Actor) []int { a, _ := table.ActorIndex(actor); return []int{a} }
	x, _ := table.EventIndex("x")
	require.Equal(t, []fsm.TableRow{
		{From: []int{state("open")}, Any: true, Except: []int{state("closing")}, Event: x, Actors: by(user), To: state("closed")},
		{From: []int{state("gone")}, Event: x, Actors: by(user), To: state("open"), Forced: true, Doc: "by a technician"},
		{From: []int{state("closing")}, Event: x, Actors: by(fsm.Sweeper), To: state("closing"), Timeout: time.Second, Supersede: true},
	}, table.Rows[4:])
}

// The same answers with and without a machine behind the table.
func TestTableFindsNames(t *testing.T) {
	compiled := newDisks(t).Table()
	plain := &fsm.Table{Name: compiled.Name, Initial: compiled.Initial, States: compiled.States, Events: compiled.Events, Actors: compiled.Actors, Rows: compiled.Rows}
	for _, table := range []*fsm.Table{compiled, plain} {
		for i, s := range table.States {
			got, ok := table.StateIndex(s.Name)
			require.True(t, ok)
			require.Equal(t, i, got)
		}
		for i, e := range table.Events {
			got, ok := table.EventIndex(e)
			require.True(t, ok)
			require.Equal(t, i, got)
		}
		for i, a := range table.Actors {
			got, ok := table.ActorIndex(a)
			require.True(t, ok)
			require.Equal(t, i, got)
		}
		for _, name := range []string{"", "created", "nothing"} {
			got, ok := table.StateIndex(name)
			require.False(t, ok)
			require.Equal(t, -1, got)
			got, ok = table.EventIndex(name)
			require.False(t, ok)
			require.Equal(t, -1, got)
			_, ok = table.ActorIndex(fsm.Actor(name))
			require.False(t, ok)
		}
		s, o, err := table.ParseStatus("DELETING", "CREATED")
		require.NoError(t, err)
		require.Equal(t, [2]int{4, 2}, [2]int{s, o})
		_, _, err = table.ParseStatus("DELETING", "nothing")
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		require.Empty(t, table.Problems())
		require.Equal(t, compiled.Origins(), table.Origins())
	}
}

func TestKindsAndThensHaveNames(t *testing.T) {
	for kind, name := range map[fsm.Kind]string{
		fsm.Stable: "stable", fsm.Transitional: "transitional", fsm.Failed: "failed",
		fsm.Final: "final", fsm.Absent: "absent", 5: "kind?",
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, name, kind.String())
			require.Equal(t, kind != fsm.Transitional, kind.Resting())
		})
	}
	for then, name := range map[fsm.Then]string{
		fsm.ThenMove: "move", fsm.ThenReturn: "return", fsm.ThenIgnore: "ignore", 3: "then?",
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, name, then.String()) })
	}
}

func TestSweeperIsAddedOnce(t *testing.T) {
	table := mustNew(t, with(sound(), fsm.Move("open", "x", "closed").By(fsm.Sweeper, user).After(time.Minute))).Table()
	require.Equal(t, []fsm.Actor{user, worker, fsm.Sweeper}, table.Actors)
	require.Equal(t, []int{2, 0}, table.Rows[4].Actors)
}

// A table has no row for the -1 of Table.Timeout and TransitionError.Row.
func TestDescribeWithoutRow(t *testing.T) {
	table := fsm.Must[struct{}](sound()).Table()
	require.Equal(t, "?", table.Describe(-1))
	require.Equal(t, "?", table.Describe(len(table.Rows)))
}
