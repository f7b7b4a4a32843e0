package blazar_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// satisfies reads one cell of the document's table: what it says about a status.
func satisfies(cell, status string) bool {
	_, after, found := strings.Cut(cell, ": ")
	if found {
		cell = after
	}
	if unwanted, ok := strings.CutPrefix(cell, "other than "); ok {
		return status != unwanted
	}
	return cell == "Any status" || slices.Contains(strings.Split(cell, " or "), status)
}

// Every combination of a lease with up to two reservations is allowed where the
// document's table says so.
func TestCombinations(t *testing.T) {
	document := make(map[string][]string)
	for line := range strings.Lines(strings.TrimSpace(relationships)) {
		var cells []string
		for cell := range strings.SplitSeq(line, "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		document[cells[0]] = cells[1:]
	}
	reservations := slices.Collect(blazar.Reservation.States())
	lists := [][]blazar.ReservationState{{}}
	for _, a := range reservations {
		lists = append(lists, []blazar.ReservationState{a})
		for _, b := range reservations {
			lists = append(lists, []blazar.ReservationState{a, b})
		}
	}
	allowed := 0
	for _, c := range blazar.Combinations() {
		cells := document[string(c.Lease)]
		require.NotNil(t, cells, c.Lease)
		delete(document, string(c.Lease))
		for _, list := range lists {
			for start := range blazar.Event.States() {
				for end := range blazar.Event.States() {
					want := satisfies(cells[1], string(start)) && satisfies(cells[2], string(end))
					for _, r := range list {
						want = want && satisfies(cells[0], string(r))
					}
					require.Equal(t, want, c.Allows(list, start, end), "%s, %s, %s, %s", c.Lease, list, start, end)
					require.Equal(t, want, c.Lease.IsValidCombination(list, start, end))
					if want {
						allowed++
					}
				}
			}
		}
	}
	require.Empty(t, document, "lines of the document that the package lacks")
	for _, s := range []blazar.LeaseState{blazar.LeaseAbsent, "", "pending"} {
		require.False(t, s.IsValidCombination(nil, blazar.EventUndone, blazar.EventUndone), "%q is no status", s)
	}
	require.Positive(t, allowed)
}

func TestCombinationsCoverEveryStatus(t *testing.T) {
	lines := make(map[blazar.LeaseState]int)
	for _, c := range blazar.Combinations() {
		lines[c.Lease]++
	}
	for s := range blazar.Lease.States() {
		want := 1
		if s == blazar.LeaseAbsent {
			want = 0
		}
		require.Equal(t, want, lines[s], s)
	}
}
