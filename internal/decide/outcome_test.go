package decide_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// TestOutcomeOracle: the request that reports how work ended is the first one that is
// not refused if all guards pass. Without such a request it is that of the deadline row
// for work that did not succeed, else the first of all.
func TestOutcomeOracle(t *testing.T) {
	agree := func(int) error { return nil }
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		for range 20 {
			rec := drawRecord(t, table)
			q := drawRequest(t, table, rec)
			q.Verb, q.Repeats, q.Force = decide.Report, false, false
			q.Operation = rec.Operation - min(rapid.Uint64Range(0, 1).Draw(t, "behind"), rec.Operation)
			events := rapid.SliceOfN(rapid.IntRange(0, len(table.Events)-1), 0, 3).Draw(t, "events")
			succeeded := rapid.Bool().Draw(t, "succeeded")
			reports := decide.Events{Failed: events}
			if succeeded {
				reports = decide.Events{Done: events}
			}
			got, ok := q.Outcome(table, &rec, succeeded, reports)
			accepted := func(q decide.Request) bool {
				d := (&oracle{table: table, rec: rec, q: q, refuse: agree}).decide()
				return d.Verdict != decide.Refused || d.Err == decide.ErrBegins
			}
			want, wantOK := q, len(events) > 0
			if wantOK {
				want.Event = events[0]
			}
			i := slices.IndexFunc(events, func(e int) bool { q.Event = e; return accepted(q) })
			switch {
			case i >= 0:
				want.Event = events[i]
			case !succeeded && rec.Exists && table.States[rec.State].Kind == fsm.Transitional:
				// The table's answer to work that is not completed.
				_, row := table.Timeout(rec.State, rec.Origin)
				if row < 0 || redoes(table, rec.State, rec.Origin) {
					break
				}
				late := want
				late.Event, late.Actor = table.Rows[row].Event, fsm.Sweeper
				if accepted(late) {
					want, wantOK = late, true
				}
			}
			if ok != wantOK || ok && got != want {
				t.Fatalf("%v by %v of %+v: %+v, %v, not %+v, %v", succeeded, events, rec, got, ok, want, wantOK)
			}
		}
	})
}

// TestOutcome states the rule on the disks: the worker is the agent.
func TestOutcome(t *testing.T) {
	cases := []struct {
		name, state string
		origin      string
		operation   uint64
		events      []string
		want        string
		verdict     decide.Verdict
		err         error
	}{
		{"the first", "Making", "None", 3, []string{"done", "refused"}, "done", decide.Applied, nil},
		{"the first is for other states", "Deleting", "Bad", 3, []string{"progress", "refused", "gone"}, "refused", decide.Applied, nil},
		{"by origin", "Deleting", "Ready", 3, []string{"gone", "done"}, "done", decide.Applied, nil},
		{"none", "Making", "None", 3, []string{"gone", "refused"}, "gone", decide.Refused, fsm.ErrNotAllowed},
		{"wrong actor", "Making", "None", 3, []string{"delete"}, "delete", decide.Refused, fsm.ErrWrongActor},
		{"stale", "Making", "None", 2, []string{"gone", "done"}, "gone", decide.Stale, decide.ErrStale},
		{"ignored at rest", "Ready", "Ready", 3, []string{"gone", "done"}, "done", decide.Repeated, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var events []int
			for _, e := range c.events {
				events = append(events, event(t, disks, e))
			}
			rec := record(t, disks, c.state, c.origin)
			q, ok := decide.Request{Actor: "agent", Operation: c.operation}.Outcome(disks, &rec, true, decide.Events{Done: events})
			require.True(t, ok)
			require.Equal(t, c.want, disks.Events[q.Event])
			d := decision(disks, rec, q, nil)
			require.Equal(t, c.verdict, d.Verdict)
			require.ErrorIs(t, d.Err, c.err)
		})
	}
}

// rests are objects with a deadline in a state at rest.
var rests = fsm.Must[int](spec{
	Name: "rest", Initial: "Working", Actors: actors,
	States: []fsm.State[string]{{Name: "Working", Kind: fsm.Transitional, Manual: "tests"}, {Name: "Ready"}, {Name: "Asleep"}},
	Rows: fsm.Rows(
		fsm.Move("Working", "done", "Ready").By("agent"),
		fsm.Move("Working", "failed", "Ready").By("agent"),
		fsm.Move("Ready", "sleep", "Asleep").After(time.Hour),
		fsm.Move("Asleep", "wake", "Working").By("user"),
	),
}).Table()

// TestOutcomeAtRest: the operation of an object at rest is over, so its outcome is not the
// deadline row of that state.
func TestOutcomeAtRest(t *testing.T) {
	rec := record(t, rests, "Ready", "Ready")
	q, ok := decide.Request{Actor: "agent", Operation: rec.Operation}.Outcome(rests, &rec, false, decide.Events{Failed: []int{event(t, rests, "failed")}})
	require.True(t, ok)
	require.Equal(t, "failed", rests.Events[q.Event])
	d := decision(rests, rec, q, nil)
	require.Equal(t, decide.Refused, d.Verdict)
	require.ErrorIs(t, d.Err, fsm.ErrNotAllowed)
}
