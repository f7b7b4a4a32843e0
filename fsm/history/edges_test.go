package history_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
)

// checked returns the summary of rows of a machine with two absent states.
func checked(t *testing.T, config *history.Config, rows ...history.Row) *history.Summary {
	t.Helper()
	m := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "x", Initial: "None", Actors: []fsm.Actor{"u"},
		States: []fsm.State[string]{{Name: "None", Kind: fsm.Absent}, {Name: "A"}, {Name: "Gone", Kind: fsm.Absent}},
		Rows:   fsm.Rows(fsm.Move("None", "create", "A"), fsm.Move("A", "delete", "Gone"), fsm.Move("A", "stay", "A")),
	})
	all := func(yield func(history.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
	s, err := history.Check(all, []history.TableVersion{{Table: m.Table()}}, config)
	require.NoError(t, err)
	return s
}

// An object that ended in one absent state begins again in another one.
func TestTwoAbsentStates(t *testing.T) {
	s := checked(t, nil,
		history.Row{ID: "1", Sequence: 1, From: "None", To: "A", Event: "create", Actor: "u"},
		history.Row{ID: "1", Sequence: 2, From: "A", To: "Gone", Event: "delete", Actor: "u"},
		history.Row{ID: "1", Sequence: 3, From: "None", To: "A", Event: "create", Actor: "u"})
	require.True(t, s.OK(), "%v", s)
}

// The count of missing rows ends at the greatest int of 32 bits.
func TestMostMissingRows(t *testing.T) {
	s := checked(t, &history.Config{Gaps: true},
		history.Row{ID: "1", Sequence: 1, From: "None", To: "A", Event: "create", Actor: "u"},
		history.Row{ID: "1", Sequence: 1 << 40, From: "A", To: "A", Event: "stay", Actor: "u"},
		history.Row{ID: "1", Sequence: 1 << 50, From: "A", To: "A", Event: "stay", Actor: "u"})
	require.Equal(t, math.MaxInt32, s.Missing)
}
