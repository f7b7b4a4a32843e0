package blazar_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// situation is a lease with two reservations and its events.
type situation struct {
	lease      fsm.Status[blazar.LeaseState]
	a, b       blazar.ReservationState
	start, end blazar.EventState
}

func (s situation) String() string {
	return fmt.Sprintf("%s, %s and %s, start %s, end %s", s.lease.State, s.a, s.b, s.start, s.end)
}

// step is what can happen, and by which call of the lease.
type leaseStep struct {
	call blazar.Call
	to   situation
}

// next returns everything that can happen: methods that begin and end, with their
// events along, as far as the table of relationships lets them; and reservations
// that change under a method.
func (s situation) next() (list []leaseStep) {
	for call := range blazar.Lease.Events() {
		for _, actor := range []fsm.Actor{blazar.User, blazar.Manager, fsm.Sweeper} {
			step, err := blazar.Lease.Next(context.Background(), s.lease, call, actor, nil)
			if err != nil {
				continue
			}
			to := s
			to.lease = step.Status
			for _, e := range []struct {
				status      *blazar.EventState
				during, end blazar.LeaseState
			}{{&to.start, blazar.LeaseStarting, blazar.LeaseActive}, {&to.end, blazar.LeaseTerminating, blazar.LeaseTerminated}} {
				switch {
				case step.State == e.during && *e.status == blazar.EventUndone:
					*e.status = blazar.EventInProgress
				case s.lease.State == e.during && step.State == e.end:
					*e.status = blazar.EventDone
				case step.State == blazar.LeaseError && *e.status == blazar.EventInProgress:
					*e.status = blazar.EventError
				}
			}
			if step.State == blazar.LeaseError || allows(step.State, to) {
				list = append(list, leaseStep{call, to})
			}
		}
	}
	for _, r := range []func(*situation) *blazar.ReservationState{
		func(s *situation) *blazar.ReservationState { return &s.a },
		func(s *situation) *blazar.ReservationState { return &s.b },
	} {
		for _, status := range (*r(&s)).Next() {
			to := s
			*r(&to) = status
			if s.lease.State.IsTransitional() && allows(s.lease.State, to) {
				list = append(list, leaseStep{"", to})
			}
		}
	}
	return list
}

func allows(lease blazar.LeaseState, s situation) bool {
	return slices.ContainsFunc(blazar.Combinations(), func(c blazar.Combination) bool {
		return c.Lease == lease && c.Allows([]blazar.ReservationState{s.a, s.b}, s.start, s.end)
	})
}

// Everything that can become of a lease is tried to the end. What Never says will
// not happen does not; of a lease that rests, everything else does. Both are
// written down.
func TestNever(t *testing.T) {
	first := situation{
		blazar.Lease.At(blazar.LeasePending), blazar.ReservationPending, blazar.ReservationPending,
		blazar.EventUndone, blazar.EventUndone,
	}
	next := map[situation][]leaseStep{}
	order := []situation{first}
	for i := 0; i < len(order); i++ {
		if _, seen := next[order[i]]; seen || order[i].lease.State == blazar.LeaseAbsent {
			continue
		}
		next[order[i]] = order[i].next()
		for _, step := range next[order[i]] {
			order = append(order, step.to)
		}
	}
	var lines []string
	for s := range next {
		possible := map[blazar.Call]bool{}
		seen := map[situation]bool{}
		var visit func(situation)
		visit = func(s situation) {
			if seen[s] {
				return
			}
			seen[s] = true
			for _, step := range next[s] {
				possible[step.call] = true
				if step.call != blazar.Delete {
					visit(step.to)
				}
			}
		}
		visit(s)
		never := blazar.Never(s.lease.State, []blazar.ReservationState{s.a, s.b}, s.start, s.end)
		for _, call := range never {
			require.False(t, possible[call], "%v: %s", s, call)
		}
		if s.lease.State.IsStable() {
			for _, call := range []blazar.Call{blazar.Start, blazar.Terminate, blazar.Update, blazar.Delete} {
				require.Equal(t, possible[call], !slices.Contains(never, call), "%v: %s", s, call)
			}
			lines = append(lines, fmt.Sprintf("%v: never %v", s, never))
		}
	}
	slices.Sort(lines)
	text := strings.Join(lines, "\n") + "\n"
	const file = "testdata/never.txt"
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}
