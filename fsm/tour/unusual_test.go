package tour_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// A caller may stop before the last negative.
func TestNegativesEndEarly(t *testing.T) {
	all, err := tour.Negatives(large(3, fsm.Stable, move(0, 0, 1), move(1, 1, 2)))
	require.NoError(t, err)
	n := 0
	for range all {
		if n++; n == 2 {
			break
		}
	}
	require.Equal(t, 2, n)
}

// A row for an event that the table does not declare is missed.
func TestRowWithoutEvent(t *testing.T) {
	table := large(2, fsm.Stable, move(0, 0, 1), move(1, 0, 0))
	for _, event := range []int{-1, len(table.Events)} {
		table.Rows[1].Event = event
		plan, err := tour.New(table, nil)
		require.NoError(t, err)
		require.Contains(t, plan.String(), "missed: row 1 from s1: its event is not declared")
	}
}

// The actor that no row names is another one than those of the table, whatever their names.
func TestActorNamedStranger(t *testing.T) {
	equivalents := func(actor fsm.Actor) (list []bool) {
		table := large(2, fsm.Stable, move(0, 0, 1), move(1, 0, 0))
		table.Actors = []fsm.Actor{actor}
		table.Rows[0].Actors = []int{0}
		all, err := tour.Mutants(table)
		require.NoError(t, err)
		for m := range all {
			list = append(list, m.Equivalent)
		}
		return list
	}
	require.Equal(t, equivalents("user"), equivalents("stranger"))
}
