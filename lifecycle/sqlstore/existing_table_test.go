package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The smallest table keeps neither deadlines nor payloads, and its states are those of an enum.
func TestSmallestExistingTable(t *testing.T) {
	vms := ExistingTable{
		Machine: "vm", Table: "vms", Columns: ColumnMap{ID: "id", State: "status", Revision: "revision", Sequence: "sequence"},
		Types: map[string]Type{"status": Enum("vm_status", "on", "off")},
	}
	text, err := vms.Schema(Postgres)
	require.NoError(t, err)
	require.Equal(t, `CREATE TABLE "vms" (
	"id" text NOT NULL,
	"status" vm_status NOT NULL,
	"revision" bigint NOT NULL DEFAULT 0,
	"sequence" bigint NOT NULL DEFAULT 0,
	PRIMARY KEY ("id")
);
`, text)

	own := postgres.own(defaultPrefix, Version)
	l, err := vms.layout(postgres, own)
	require.NoError(t, err)
	s := &Store{shared: &shared{e: postgres, own: own, layouts: []*layout{own, l}}}
	states := []fsm.State[string]{{Name: "off"}, {Name: "on"}}
	rows := fsm.Rows(fsm.Move("off", "start", "on").By("user"), fsm.Move("on", "stop", "off").By("user"))
	spec := fsm.Spec[string, string]{Name: "vm", Initial: "off", Actors: []fsm.Actor{"user"}, States: states, Rows: rows}
	_, err = lifecycle.New(fsm.Must[struct{}](spec), s, nil)
	require.NoError(t, err)
	_, err = lifecycle.New(fsm.Must[struct{ CPUs int }](spec), s, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "Payload")
	spec.States = append(states, fsm.State[string]{Name: "paused"})
	spec.Rows = append(rows, fsm.Move("on", "pause", "paused").By("user"), fsm.Move("paused", "start", "on").By("user"))
	_, err = lifecycle.New(fsm.Must[struct{}](spec), s, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, `"paused" is not a value of vm_status`)
}

// The machines of the library need all columns of the store's own tables.
func TestExistingTableOfTheLibrary(t *testing.T) {
	for _, machine := range []string{lifecycle.OwnerRef{}.Key().Machine, "interlock.turns"} {
		t.Run(machine, func(t *testing.T) {
			_, err := ExistingTable{
				Machine: machine, Table: "rows", Columns: ColumnMap{ID: "id", State: "state", Revision: "revision", Sequence: "sequence"},
			}.Schema(SQLite)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		})
	}
}
