package blazar_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

// The statuses that can follow each status, from the document: its text, and its figures
// in prose.
const leaseSteps = `
ABSENT:      CREATING
CREATING:    PENDING DELETING
PENDING:     STARTING UPDATING DELETING
STARTING:    ACTIVE ERROR DELETING
ACTIVE:      UPDATING TERMINATING DELETING
UPDATING:    PENDING ACTIVE TERMINATED ERROR DELETING
TERMINATING: TERMINATED ERROR DELETING
TERMINATED:  UPDATING DELETING
DELETING:    ABSENT ERROR
ERROR:       UPDATING TERMINATING DELETING
`

const reservationSteps = `
pending: active deleted error
active:  deleted error
deleted:
error:   deleted
`

const eventSteps = `
UNDONE:      IN_PROGRESS
IN_PROGRESS: DONE ERROR
DONE:
ERROR:
`

// steps reads such a list.
func steps(text string) map[string][]string {
	list := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		from, to, _ := strings.Cut(line, ":")
		list[from] = strings.Fields(to)
	}
	return list
}

// Every pair of statuses, of leases, reservations and events.
func TestTransitions(t *testing.T) {
	leases, reservations, events := steps(leaseSteps), steps(reservationSteps), steps(eventSteps)
	require.Len(t, leases, 10)
	for from := range blazar.Lease.States() {
		for to := range blazar.Lease.States() {
			require.Equal(t, slices.Contains(leases[string(from)], string(to)), from.IsValidTransition(to), "%s to %s", from, to)
		}
	}
	for from := range blazar.Reservation.States() {
		for to := range blazar.Reservation.States() {
			require.Equal(t, slices.Contains(reservations[string(from)], string(to)), from.IsValidTransition(to), "%s to %s", from, to)
		}
	}
	for from := range blazar.Event.States() {
		for to := range blazar.Event.States() {
			require.Equal(t, slices.Contains(events[string(from)], string(to)), from.IsValidTransition(to), "%s to %s", from, to)
		}
	}
	require.False(t, blazar.LeaseState("nonsense").IsValidTransition(blazar.LeasePending))
	require.False(t, blazar.ReservationState("nonsense").IsValidTransition(blazar.ReservationActive))
}

func TestKindsOfStatuses(t *testing.T) {
	stable := []blazar.LeaseState{blazar.LeasePending, blazar.LeaseActive, blazar.LeaseTerminated, blazar.LeaseError}
	transitional := []blazar.LeaseState{
		blazar.LeaseCreating, blazar.LeaseStarting, blazar.LeaseUpdating, blazar.LeaseTerminating, blazar.LeaseDeleting,
	}
	for s := range blazar.Lease.States() {
		require.Equal(t, slices.Contains(stable, s), s.IsStable(), s)
		require.Equal(t, slices.Contains(transitional, s), s.IsTransitional(), s)
	}
	require.False(t, blazar.LeaseState("nonsense").IsStable())
	require.False(t, blazar.LeaseState("nonsense").IsTransitional())
}

// present returns the states of objects that exist.
func present[S comparable, T any](m *fsm.Machine[S, blazar.Call, T]) []S {
	return slices.DeleteFunc(slices.Collect(m.States()), func(s S) bool { return m.Kind(s) == fsm.Absent })
}

// combinations calls f with every combination of up to two reservations and two
// events.
func combinations(f func(reservations []blazar.ReservationState, start, end blazar.EventState)) {
	lists := [][]blazar.ReservationState{nil}
	for _, a := range present(blazar.Reservation) {
		lists = append(lists, []blazar.ReservationState{a})
		for _, b := range present(blazar.Reservation) {
			lists = append(lists, []blazar.ReservationState{a, b})
		}
	}
	for _, list := range lists {
		for _, start := range present(blazar.Event) {
			for _, end := range present(blazar.Event) {
				f(list, start, end)
			}
		}
	}
}

// The status follows from the events, and is ERROR if the reservations do not match.
func TestDeriveStatus(t *testing.T) {
	all := func(list []blazar.ReservationState, s blazar.ReservationState) bool {
		return !slices.ContainsFunc(list, func(r blazar.ReservationState) bool { return r != s })
	}
	derived := map[blazar.LeaseState]int{}
	combinations(func(list []blazar.ReservationState, start, end blazar.EventState) {
		want := blazar.LeaseError
		switch {
		case start == blazar.EventUndone && end == blazar.EventUndone && all(list, blazar.ReservationPending):
			want = blazar.LeasePending
		case start == blazar.EventDone && end == blazar.EventUndone && all(list, blazar.ReservationActive):
			want = blazar.LeaseActive
		case start == blazar.EventDone && end == blazar.EventDone && all(list, blazar.ReservationDeleted):
			want = blazar.LeaseTerminated
		}
		got := blazar.DeriveStatus(list, start, end)
		require.Equal(t, want, got, "%v %s %s", list, start, end)
		derived[got]++
	})
	require.Equal(t, 3, derived[blazar.LeasePending])
	require.Equal(t, 3, derived[blazar.LeaseActive])
	require.Equal(t, 3, derived[blazar.LeaseTerminated])
}

// Every combination with up to two reservations is allowed by the lines, and by the
// relation that a service checks, where the document's table allows it.
func TestCombinations(t *testing.T) {
	reservation := relation.NewRole("reservation", blazar.Reservation)
	start := relation.NewRole(blazar.StartLease, blazar.Event)
	end := relation.NewRole(blazar.EndLease, blazar.Event)
	lines := map[blazar.LeaseState]bool{}
	for _, line := range blazar.Combinations() {
		require.False(t, lines[line.Lease], line.Lease)
		lines[line.Lease] = true
		t.Run(string(line.Lease), func(t *testing.T) {
			cells := documentLine(string(line.Lease))
			require.NotNil(t, cells)
			combinations(func(list []blazar.ReservationState, s, e blazar.EventState) {
				want := satisfies(cells[1], string(s)) && satisfies(cells[2], string(e))
				related := []relation.Related{start.Saw("s", s), end.Saw("e", e)}
				for i, r := range list {
					want = want && satisfies(cells[0], string(r))
					related = append(related, reservation.Saw(string(rune('a'+i)), r))
				}
				require.Equal(t, want, line.Allows(list, s, e), "%v %s %s", list, s, e)
				require.Equal(t, want, line.Lease.IsValidCombination(list, s, e), "%v %s %s", list, s, e)
				require.Equal(t, want, blazar.Relationships.Check(line.Lease, related...) == nil, "%v %s %s", list, s, e)
			})
		})
	}
	for s := range blazar.Lease.States() {
		require.Equal(t, s != blazar.LeaseAbsent, lines[s], s)
	}
	for _, s := range []blazar.LeaseState{blazar.LeaseAbsent, "", "pending"} {
		require.False(t, s.IsValidCombination(nil, blazar.EventUndone, blazar.EventUndone), "%q is not a status", s)
	}
	require.ErrorIs(t, blazar.Relationships.Check(blazar.LeasePending), lifecycle.ErrPrecondition, "without events")
	require.NoError(t, blazar.Relationships.Check(blazar.LeaseDeleting), "without events")
}
