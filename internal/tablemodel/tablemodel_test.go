package tablemodel_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/internal/tablemodel"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func explored(t *testing.T, table *fsm.Table, o tablemodel.Options) *explore.Verdict {
	t.Helper()
	sys, err := tablemodel.System(table, o)
	require.NoError(t, err)
	v, err := sys.Explore(t.Context(), nil)
	require.NoError(t, err)
	t.Logf("%s: %v: %d states, %d steps, depth %d", v.System, v.Outcome, v.States, v.Steps, v.Depth)
	return v
}

// TestShippedTables: with one each of loss, duplicate and death of the owner, an
// object of every shipped table can come to rest from wherever it gets to, and is
// moved by no report about another operation.
func TestShippedTables(t *testing.T) {
	for _, table := range []*fsm.Table{
		edgecloud.ClusterInst.Table(), edgecloud.CloudletCreate.Table(), edgecloud.CloudletUpgrade.Table(),
		ovc.Account.Table(), ovc.Cloudspace.Table(), ovc.Disk.Table(), ovc.Image.Table(), ovc.Node.Table(), ovc.VM.Table(),
		blazar.Lease.Table(), blazar.Reservation.Table(), blazar.Event.Table(),
		lattice.Deploy.Table(), lattice.Teardown.Table(), lattice.Service.Table(), lattice.System.Table(),
		tumblebug.MCI.Table(), tumblebug.VM.Table(),
	} {
		t.Run(table.Name, func(t *testing.T) { require.NoError(t, explored(t, table, tablemodel.Usual()).Err()) })
	}
}

// TestUnfenced: without the comparison of operations, a late report moves the next
// operation, wherever two of them follow each other.
func TestUnfenced(t *testing.T) {
	unfenced := tablemodel.Shipped()
	unfenced.Candidates = func(q *decide.Request, t *fsm.Table, rec *decide.Record, rows []int) ([]int, decide.Decision, bool) {
		present := *q
		present.Operation = rec.Operation
		return present.Candidates(t, rec, rows)
	}
	o := tablemodel.Usual()
	o.Decisions = unfenced
	v := explored(t, edgecloud.ClusterInst.Table(), o)
	require.Equal(t, explore.Violated, v.Outcome, v)
	require.ErrorContains(t, v.Problem, "was moved by a report about another one")
}

type (
	state string
	event string
)

// made returns the table of a machine with a resting and two transitional states.
func made(t *testing.T, rows ...fsm.Row[state, event]) *fsm.Table {
	t.Helper()
	m, err := fsm.New[struct{}](fsm.Spec[state, event]{
		Name: "made", Initial: "idle", Actors: []fsm.Actor{"user", "worker"},
		States: []fsm.State[state]{
			{Name: "idle"},
			{Name: "first", Kind: fsm.Transitional},
			{Name: "second", Kind: fsm.Transitional, Manual: "an operator checks it"},
		},
		Rows: fsm.Rows(append(rows, fsm.Move[state, event]("idle", "go", "first").By("user"))...),
	})
	require.NoError(t, err)
	return m.Table()
}

// TestEveryEntry: a table in which objects enter in several states is explored from
// each of them.
func TestEveryEntry(t *testing.T) {
	const document = `{"name":"two","initial":"A","initials":["A","C"],"actors":["user","agent"],
		"states":[{"name":"A","kind":"stable"},{"name":"B","kind":"stable"},{"name":"C","kind":"stable"},{"name":"T","kind":"transitional"}],
		"transitions":[{"from":"A","event":"go","actor":"user","to":"B"},{"from":"B","event":"back","actor":"user","to":"A"},
			{"from":"C","event":"work","actor":"user","to":"T"},{"from":"T","event":"done","actor":"agent","to":"C"}]}`
	table, err := fsm.ParseTable([]byte(document))
	require.NoError(t, err)
	v := explored(t, table, tablemodel.Usual())
	require.Equal(t, explore.Stuck, v.Outcome, "the table has no way out of T after a lost report")
	require.Contains(t, v.Trace.Actors[0].Start, "C, ")
}

// TestTablesWithoutActors: an anonymous actor takes the rows of a table that names no actor
// but the sweeper. The model is that of the table in which the actor has a name.
func TestTablesWithoutActors(t *testing.T) {
	const document = `{"name":"door","initial":"shut",%s
		"states":[{"name":"shut","kind":"stable"},{"name":"opening","kind":"transitional"},{"name":"open","kind":"stable"}],
		"transitions":[%s{"from":"shut","event":"go","to":"opening"},{"from":"opening","event":"done","to":"open"},{"from":"open","event":"back","to":"shut"}]}`
	for _, late := range []string{"", `{"from":"opening","event":"late","to":"shut","within":"1m"},`} {
		named, err := fsm.ParseTable(fmt.Appendf(nil, document, `"actors":["any actor"],`, late))
		require.NoError(t, err)
		unnamed, err := fsm.ParseTable(fmt.Appendf(nil, document, "", late))
		require.NoError(t, err)
		var before, after bytes.Buffer
		require.NoError(t, fsm.WriteTable(&before, unnamed))
		want, got := explored(t, named, tablemodel.Usual()), explored(t, unnamed, tablemodel.Usual())
		require.Equal(t, want.String(), got.String())
		require.Equal(t, late != "", got.Outcome == explore.Holds)
		require.Greater(t, got.States, 5)
		require.NoError(t, fsm.WriteTable(&after, unnamed))
		require.Equal(t, before.String(), after.String(), "the table of the caller does not change")
	}
}

// TestLivelock: a table that is sound row by row, and whose deadlines never lead to rest.
// Without a dead owner a way to rest remains, and the run may miss it forever.
func TestLivelock(t *testing.T) {
	m, err := fsm.New[struct{}](fsm.Spec[state, event]{
		Name: "round", Initial: "idle", Actors: []fsm.Actor{"user", "worker"},
		States: []fsm.State[state]{{Name: "idle"}, {Name: "first", Kind: fsm.Transitional}, {Name: "second", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("idle", "go", "first").By("user"),
			fsm.Move[state, event]("first", "done", "idle").By("worker"),
			fsm.Move[state, event]("first", "late", "second").After(1),
			fsm.Move[state, event]("second", "later", "first").After(1),
		),
	})
	require.NoError(t, err)
	v := explored(t, m.Table(), tablemodel.Usual())
	require.Equal(t, explore.Livelock, v.Outcome, "a dead owner does not ask the peer: %v", v)
	require.Equal(t, 2, v.Trace.Loop)
	o := tablemodel.Usual()
	o.Crash = 0
	v = explored(t, m.Table(), o)
	require.Equal(t, explore.Unreached, v.Outcome, "every answer may come too late: %v", v)
	require.Equal(t, "every operation ends", v.Property)
	require.Equal(t, 2, v.Trace.Loop)
}

// An event that the table ignores is no answer of the peer.
func TestIgnoredReport(t *testing.T) {
	m, err := fsm.New[struct{}](fsm.Spec[state, event]{
		Name: "ignores", Initial: "idle", Actors: []fsm.Actor{"user", "worker", "monitor"},
		States: []fsm.State[state]{{Name: "idle"}, {Name: "first", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("idle", "go", "first").By("user"),
			fsm.Move[state, event]("first", "done", "idle").By("worker"),
			fsm.Ignore[state, event]("first", "alarm").By("monitor"),
			fsm.Redo[state, event]("first", "again", 1),
		),
	})
	require.NoError(t, err)
	v := explored(t, m.Table(), tablemodel.Usual())
	require.NoError(t, v.Err())
	require.Empty(t, v.Unused)
}

// A state that the table leaves to an operator is at rest. Without an operator the object
// is stuck.
func TestOperatorIsRest(t *testing.T) {
	rows := []fsm.Row[state, event]{
		fsm.Move[state, event]("first", "done", "idle").By("worker"),
		fsm.Move[state, event]("first", "late", "second").After(1),
		fsm.Move[state, event]("second", "done", "idle").By("worker"),
	}
	table := made(t, rows...)
	require.NoError(t, explored(t, table, tablemodel.Usual()).Err())

	var document bytes.Buffer
	require.NoError(t, fsm.WriteTable(&document, table))
	unattended, err := fsm.ParseTable(bytes.ReplaceAll(document.Bytes(), []byte(`"manual":"an operator checks it"`), []byte(`"doc":""`)))
	require.NoError(t, err)
	require.Len(t, unattended.Problems(), 1, "a transitional state needs a deadline or an operator")
	v := explored(t, unattended, tablemodel.Usual())
	require.Equal(t, explore.Stuck, v.Outcome, v)
	o := tablemodel.Usual()
	o.Loss, o.Duplicate, o.Crash = 0, 0, 0
	require.NoError(t, explored(t, unattended, o).Err())
}

// TestPublishedTables: every table that can be one of a machine has a verdict, and
// every other is refused by name.
func TestPublishedTables(t *testing.T) {
	for _, dir := range []string{"seeds", "real"} {
		paths, err := filepath.Glob("../../fsm/testdata/tables/" + dir + "/*.json")
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			table, err := fsm.ParseTable(text)
			require.NoError(t, err)
			o := tablemodel.Usual()
			o.Operations = 1
			sys, err := tablemodel.System(table, o)
			if err != nil {
				require.ErrorIs(t, err, tablemodel.ErrTable)
				t.Log(err)
				continue
			}
			v, err := sys.Explore(t.Context(), nil)
			require.NoError(t, err)
			require.Contains(t, []explore.Outcome{explore.Holds, explore.Stuck, explore.Livelock}, v.Outcome, v)
			t.Logf("%s: %v: %d states", table.Name, v.Outcome, v.States)
		}
	}
}

// TestUndeclaredActors: no actor of the model stands in for one that the table misspells.
func TestUndeclaredActors(t *testing.T) {
	for declared, text := range map[string]string{``: "no actor is declared", `"sweeper"`: `names an actor that is not declared: "usr"`} {
		t.Run(text, func(t *testing.T) {
			table, err := fsm.ParseTable(fmt.Appendf(nil, `{"name": "t", "initial": "A", "actors": [%s],
			"states": [{"name": "A", "kind": "stable"}, {"name": "B", "kind": "stable"}],
			"transitions": [{"from": "A", "event": "go", "to": "B", "actor": "usr"}, {"from": "B", "event": "back", "to": "A", "actor": "usr"}]}`, declared))
			require.NoError(t, err)
			_, err = tablemodel.System(table, tablemodel.Usual())
			require.ErrorIs(t, err, tablemodel.ErrTable)
			require.ErrorContains(t, err, text)
		})
	}
}
