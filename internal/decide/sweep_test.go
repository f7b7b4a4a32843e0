package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

func drawSight(t *rapid.T) decide.Sight {
	return decide.Sight{Overdue: rapid.Bool().Draw(t, "overdue"), OwnerDead: rapid.Bool().Draw(t, "owner dead")}
}

// late is the row of the deadline, the slow way; -1 for none.
func (o *oracle) late() int {
	within := o.within(o.rec.State, o.rec.Origin)
	for i, r := range o.table.Rows {
		one := oracle{table: &fsm.Table{States: o.table.States, Rows: o.table.Rows[i : i+1]}}
		if r.Within > 0 && r.Within == within && one.within(o.rec.State, o.rec.Origin) == within {
			return i
		}
	}
	return -1
}

// TestSweepOracle says what a sweep does in other words: the deadline's row is
// the answer to a deadline everywhere, and to a dead owner while it had work; a
// dead owner's chain goes on; for the rest somebody is told.
func TestSweepOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		for range 20 {
			rec, s := drawRecord(t, table), drawSight(t)
			q, care := decide.Sweep(table, &rec, s)
			want, late, moving := decide.LeaveAlone, -1, false
			if rec.Exists {
				o := &oracle{table: table, rec: rec}
				late = o.late()
				moving = o.kind(rec.State) == fsm.Transitional
				switch {
				case s.Overdue && late >= 0, s.OwnerDead && moving && late >= 0:
					want = decide.FireEvent
				case !moving && s.OwnerDead && rec.Steps:
					want = decide.NextStep
				case moving && (s.Overdue || s.OwnerDead) && table.States[rec.State].Manual != "":
					want = decide.AskSomebody
				case moving && (s.Overdue || s.OwnerDead):
					want = decide.CannotHelp
				}
			}
			if care != want {
				t.Fatalf("%+v of %+v: %v, not %v", s, rec, care, want)
			}
			if care != decide.FireEvent {
				continue
			}
			if q.Event != table.Rows[late].Event || q.Actor != fsm.Sweeper || q.Verb != decide.Fire || q.Sweep != moving || q.Work {
				t.Fatalf("%+v of %+v: %+v is not the deadline of row %d", s, rec, q, late)
			}
			if d := decision(table, rec, q, func(int) error { return nil }); d.Err != nil {
				t.Fatalf("%+v of %+v: %+v is refused: %v", s, rec, q, d.Err)
			}
		}
	})
}

// TestSweepLeavesAlone: nothing is done about what is neither overdue nor
// orphaned, nor about what is not there.
func TestSweepLeavesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec, s := drawRecord(t, table), drawSight(t)
		if rec.Exists {
			s = decide.Sight{}
		}
		if q, care := decide.Sweep(table, &rec, s); care != decide.LeaveAlone || q != (decide.Request{}) {
			t.Fatalf("%+v of %+v: %v, %+v", s, rec, care, q)
		}
	})
}

// TestRedoes: it is said of a state exactly if there are guards that make the
// sweep begin an operation there. Where it does, recorded work is done again, and
// whoever did it before is stale.
func TestRedoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		rec.Exists = true
		q, care := decide.Sweep(table, &rec, decide.Sight{Overdue: true})
		some := false
		if care == decide.FireEvent {
			// Every guard that there is decides alone, so all sets of refusals
			// need not be tried: the rows before one refuse, and it agrees.
			for last := range table.Rows {
				d := decision(table, rec, q, func(row int) error {
					if row < last {
						return errReason
					}
					return nil
				})
				some = some || d.Begins
				again := table.States[rec.State].Kind == fsm.Transitional // else the work is done
				if d.Begins && rec.Work && again != (d.Work == decide.Redo) {
					t.Fatalf("%+v begins anew, and its work: %+v", rec, d)
				}
				if d.Begins && d.Operation <= rec.Operation {
					t.Fatalf("%+v begins anew under its old number: %+v", rec, d)
				}
			}
		}
		if got := decide.Redoes(table, rec.State, rec.Origin); got != some {
			t.Fatalf("%+v redoes: %v, and it is %v", rec, got, some)
		}
		if some && table.States[rec.State].Kind == fsm.Transitional && !decide.MayRedo(table) {
			t.Fatalf("%+v redoes, and nothing in the table may", rec)
		}
	})
}

func TestSweep(t *testing.T) {
	overdue, orphan := decide.Sight{Overdue: true}, decide.Sight{OwnerDead: true}
	cases := []struct {
		name          string
		table         *fsm.Table
		state, origin string
		steps         bool
		sight         decide.Sight
		want          decide.Care
		event         string
	}{
		{"all is well", disks, "Making", "None", false, decide.Sight{}, decide.LeaveAlone, ""},
		{"late", disks, "Making", "None", false, overdue, decide.FireEvent, "late"},
		{"orphan before its deadline", disks, "Making", "None", false, orphan, decide.FireEvent, "late"},
		{"manual", disks, "Deleting", "Ready", false, orphan, decide.AskSomebody, ""},
		{"at rest", disks, "Ready", "Ready", false, orphan, decide.LeaveAlone, ""},
		{"between steps", disks, "Ready", "Ready", true, orphan, decide.NextStep, ""},
		{"between steps, owner alive", disks, "Ready", "Ready", true, overdue, decide.LeaveAlone, ""},
		{"gone", disks, "None", "None", false, overdue, decide.LeaveAlone, ""},
		{"again", polls, "Asking", "Idle", false, overdue, decide.FireEvent, "late"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, c.table, c.state, c.origin)
			rec.Steps = c.steps
			q, care := decide.Sweep(c.table, &rec, c.sight)
			require.Equal(t, c.want, care)
			if c.event != "" {
				require.Equal(t, c.event, c.table.Events[q.Event])
			}
		})
	}
	require.True(t, decide.Redoes(polls, stateOf(t, polls, "Asking"), stateOf(t, polls, "Idle")))
	require.True(t, decide.Redoes(tries, stateOf(t, tries, "Asking"), stateOf(t, tries, "Idle")),
		"the first row ends it, and its guard may refuse")
	require.False(t, decide.Redoes(disks, stateOf(t, disks, "Making"), stateOf(t, disks, "None")))
	require.False(t, decide.Redoes(disks, stateOf(t, disks, "Deleting"), stateOf(t, disks, "Ready")))
}

// tries are polls written the other way round.
var tries = fsm.Must[int](spec{
	Name: "try", Initial: "Idle", Actors: actors,
	States: []fsm.State[string]{{Name: "Idle"}, {Name: "Asking", Kind: fsm.Transitional}},
	Rows: fsm.Rows(
		fsm.Move("Idle", "ask", "Asking").By("user"),
		fsm.Return("Asking", "late").If(guard("often enough")).After(time.Minute),
		fsm.Move("Asking", "late", "Asking").After(time.Minute).Superseding(),
	),
}).Table()
