package tour_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
	"github.com/interlock-go/interlock/fsm/tour"
)

// large is a table of n states made of these rows.
func large(n int, kind fsm.Kind, rows ...fsm.TableRow) *fsm.Table {
	t := &fsm.Table{Name: "large", Actors: []fsm.Actor{"a"}, Rows: rows}
	for i := range n {
		t.States = append(t.States, fsm.TableState{Name: fmt.Sprint("s", i), Kind: kind, Target: -1})
	}
	events := 0
	for _, r := range rows {
		events = max(events, r.Event+1)
	}
	for i := range events {
		t.Events = append(t.Events, fmt.Sprint("e", i))
	}
	return t
}

func move(from, event, to int) fsm.TableRow {
	return fsm.TableRow{From: []int{from}, Event: event, To: to}
}

// Tables at the limits of package fsm, made so that something could be done for
// every pair of rows or states. Each has a tour or is too large.
func TestToursOfHostileTables(t *testing.T) {
	n, most := tabletest.Sized(fsm.MaxStates), tabletest.Sized(fsm.MaxRows)
	side := tabletest.Sized(250)
	chain := make([]fsm.TableRow, 0, 3*n)
	for i := range n {
		chain = append(chain, move(i, 0, (i+1)%n))
	}
	for name, test := range map[string]struct {
		table     func() *fsm.Table
		sequences int // 0: too large
	}{
		"a ring": {func() *fsm.Table { return large(n, fsm.Stable, chain...) }, 1},
		// From each state back to the first, and nothing is near.
		"a ring with ways back": {func() *fsm.Table {
			rows := chain
			for i := range n / 10 {
				rows = append(rows, move(i*10, 1, 0))
			}
			return large(n, fsm.Stable, rows...)
		}, 1},
		"a star of ends": {func() *fsm.Table {
			var rows []fsm.TableRow
			for i := 1; i < n; i++ {
				rows = append(rows, move(0, i-1, i))
			}
			return large(n, fsm.Final, rows...)
		}, n - 1},
		"a dense table": {func() *fsm.Table {
			var rows []fsm.TableRow
			for i := range side {
				for k := range side {
					rows = append(rows, move(i, k, (i*i+k*7)%side))
				}
			}
			return large(side, fsm.Stable, rows...)
		}, 1},
		"equal rows": {func() *fsm.Table {
			rows := make([]fsm.TableRow, 0, most)
			for range cap(rows) {
				rows = append(rows, move(0, 0, 1))
			}
			return large(2, fsm.Stable, rows...)
		}, 1},
		// The request that takes a row names the guards of all rows before it.
		"guards of one event": {func() *fsm.Table {
			rows := make([]fsm.TableRow, 12_000)
			for i := range rows {
				rows[i] = move(0, 0, 1)
				rows[i].Guard = fmt.Sprint("g", i)
			}
			return large(2, fsm.Stable, rows...)
		}, 0},
		"every origin everywhere": {func() *fsm.Table {
			var rows []fsm.TableRow
			for i := range 300 {
				rows = append(rows, move(i, 0, (i+1)%300), move(i, 1, 300), move(300+i, 0, 300+(i+1)%300))
			}
			table := large(600, fsm.Stable, rows...)
			for i := 300; i < 600; i++ {
				table.States[i].Kind = fsm.Transitional
			}
			return table
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			table := test.table()
			plan, err := tour.New(table, nil)
			if test.sequences == 0 {
				require.ErrorIs(t, err, tour.ErrTooLarge)
				_, err = tour.Negatives(table)
				require.ErrorIs(t, err, tour.ErrTooLarge)
				return
			}
			require.NoError(t, err)
			require.Len(t, plan.Sequences, test.sequences)
			require.GreaterOrEqual(t, plan.Steps, plan.Transitions)
			require.Len(t, plan.Missed, len(table.Rows)-plan.Transitions)
		})
	}
}
