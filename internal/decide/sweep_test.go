package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

func drawCause(t *rapid.T) decide.Cause {
	return decide.Cause{Overdue: rapid.Bool().Draw(t, "overdue"), OwnerDead: rapid.Bool().Draw(t, "owner dead")}
}

// late is the deadline row, determined the slow way; -1: none.
func (o *oracle) late() int {
	timeout := o.timeout(o.rec.State, o.rec.Origin)
	for i, r := range o.table.Rows {
		one := oracle{table: &fsm.Table{States: o.table.States, Rows: o.table.Rows[i : i+1]}}
		if r.Timeout > 0 && r.Timeout == timeout && one.timeout(o.rec.State, o.rec.Origin) == timeout {
			return i
		}
	}
	return -1
}

// TestSweepOracle: a sweep fires the deadline row of every object that is overdue, and
// of a transitional object whose owner is dead. It reports the transitional objects
// without such a row.
func TestSweepOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		for range 20 {
			rec, s := drawRecord(t, table), drawCause(t)
			q, care := decide.Sweep(table, &rec, s)
			want, late, moving := decide.LeaveAlone, -1, false
			if rec.Exists {
				o := &oracle{table: table, rec: rec}
				late = o.late()
				moving = o.kind(rec.State) == fsm.Transitional
				switch {
				case s.Overdue && late >= 0, s.OwnerDead && moving && late >= 0:
					want = decide.FireEvent
				case moving && (s.Overdue || s.OwnerDead) && table.States[rec.State].Manual != "":
					want = decide.NeedsOperator
				case moving && (s.Overdue || s.OwnerDead):
					want = decide.NoRow
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

// TestSweepLeavesAlone: a sweep does nothing about an object that does not exist, or
// that is neither overdue nor without a living owner.
func TestSweepLeavesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec, s := drawRecord(t, table), drawCause(t)
		if rec.Exists {
			s = decide.Cause{}
		}
		if q, care := decide.Sweep(table, &rec, s); care != decide.LeaveAlone || q != (decide.Request{}) {
			t.Fatalf("%+v of %+v: %v, %+v", s, rec, care, q)
		}
	})
}

// TestRedoes: Redoes is true of a state exactly if some results of the guards make the
// sweep start an operation there. Recorded work is then done again, under a new
// operation id, so that the process that did it before is stale.
func TestRedoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		rec.Exists = true
		q, care := decide.Sweep(table, &rec, decide.Cause{Overdue: true})
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
		if got := redoes(table, rec.State, rec.Origin); got != some {
			t.Fatalf("%+v redoes: %v, and it is %v", rec, got, some)
		}
	})
}

func TestSweep(t *testing.T) {
	overdue, orphan := decide.Cause{Overdue: true}, decide.Cause{OwnerDead: true}
	cases := []struct {
		name          string
		table         *fsm.Table
		state, origin string
		cause         decide.Cause
		want          decide.Care
		event         string
	}{
		{"all is well", disks, "Making", "None", decide.Cause{}, decide.LeaveAlone, ""},
		{"late", disks, "Making", "None", overdue, decide.FireEvent, "late"},
		{"orphan before its deadline", disks, "Making", "None", orphan, decide.FireEvent, "late"},
		{"manual", disks, "Deleting", "Ready", orphan, decide.NeedsOperator, ""},
		{"at rest", disks, "Ready", "Ready", orphan, decide.LeaveAlone, ""},
		{"at rest, before its deadline", rests, "Ready", "Ready", orphan, decide.LeaveAlone, ""},
		{"at rest, after its deadline", rests, "Ready", "Ready", overdue, decide.FireEvent, "sleep"},
		{"gone", disks, "None", "None", overdue, decide.LeaveAlone, ""},
		{"again", polls, "Asking", "Idle", overdue, decide.FireEvent, "late"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, c.table, c.state, c.origin)
			q, care := decide.Sweep(c.table, &rec, c.cause)
			require.Equal(t, c.want, care)
			if c.event != "" {
				require.Equal(t, c.event, c.table.Events[q.Event])
			}
		})
	}
	require.True(t, redoes(polls, stateOf(t, polls, "Asking"), stateOf(t, polls, "Idle")))
	require.True(t, redoes(tries, stateOf(t, tries, "Asking"), stateOf(t, tries, "Idle")),
		"the first row ends it, and its guard may refuse")
	require.False(t, redoes(disks, stateOf(t, disks, "Making"), stateOf(t, disks, "None")))
	require.False(t, redoes(disks, stateOf(t, disks, "Deleting"), stateOf(t, disks, "Ready")))
}

// redoes reports whether the sweeper may do recorded work again in a state.
func redoes(t *fsm.Table, state, origin int) bool {
	sweep := decide.Request{Sweep: true}
	return sweep.Redoes(t, &decide.Record{Work: true, State: state, Origin: origin})
}

// TestDeadlineRowIsFirst: the deadline row of a state may be the first one of the table.
func TestDeadlineRowIsFirst(t *testing.T) {
	asks := func(late fsm.Row[string, string]) *fsm.Table {
		return fsm.Must[int](spec{
			Name: "ask", Initial: "Idle", Actors: actors,
			States: []fsm.State[string]{{Name: "Idle"}, {Name: "Asking", Kind: fsm.Transitional}},
			Rows: fsm.Rows(late,
				fsm.Move("Idle", "ask", "Asking").By("user"),
				fsm.Move("Asking", "done", "Idle").By("agent"),
			),
		}).Table()
	}
	again := asks(fsm.Redo[string, string]("Asking", "late", time.Hour))
	require.True(t, redoes(again, stateOf(t, again, "Asking"), stateOf(t, again, "Idle")))
	back := asks(fsm.Return[string, string]("Asking", "late").After(time.Hour))
	rec := record(t, back, "Asking", "Idle")
	q, ok := decide.Request{Actor: "agent", Operation: rec.Operation}.Outcome(back, &rec, false, decide.Events{})
	require.True(t, ok, "no event of the caller: the deadline row")
	require.Equal(t, event(t, back, "late"), q.Event)
}

// TestMayRedo: the operation counts in all states that it may reach, and no other operation.
func TestMayRedo(t *testing.T) {
	drains := fsm.Must[int](spec{
		Name: "drain", Initial: "Idle", Actors: actors,
		States: []fsm.State[string]{
			{Name: "Idle"},
			{Name: "Off"},
			{Name: "Draining", Kind: fsm.Transitional},
			{Name: "Deleting", Kind: fsm.Transitional},
			{Name: "Booting", Kind: fsm.Transitional},
		},
		Rows: fsm.Rows(
			fsm.Move("Idle", "drain", "Draining").AlsoFrom("Off").By("user"),
			fsm.Move("Draining", "drained", "Booting").Of("Idle").By("agent"),
			fsm.Return[string, string]("Draining", "late").After(time.Minute),
			fsm.Move("Booting", "again", "Draining").By("agent"),
			fsm.Move("Booting", "done", "Off").By("agent"),
			fsm.Redo[string, string]("Booting", "late", time.Minute),
			fsm.Move("Off", "delete", "Deleting").By("user"),
			fsm.Move("Off", "wake", "Draining").After(time.Hour), // starts another operation
			fsm.Move("Deleting", "boot", "Booting").By("user").Superseding(),
			fsm.Return[string, string]("Deleting", "late").After(time.Minute),
		),
	}).Table()
	for _, c := range []struct {
		state, origin string
		want          bool
	}{
		{"Booting", "Idle", true},
		{"Draining", "Idle", true},
		{"Draining", "Off", false}, // the row to Booting is of another origin
		{"Deleting", "Off", false}, // the row to Booting starts another operation
	} {
		t.Run(c.state+" of "+c.origin, func(t *testing.T) {
			require.Equal(t, c.want, decide.MayRedo(drains, stateOf(t, drains, c.state), stateOf(t, drains, c.origin)))
		})
	}
}

// TestRequestRedoes: only the sweeper's request about a transitional state does recorded
// work again.
func TestRequestRedoes(t *testing.T) {
	rec := record(t, polls, "Asking", "Idle")
	rec.Work = true
	sweep, _ := decide.Sweep(polls, &rec, decide.Cause{OwnerDead: true})
	require.True(t, sweep.Redoes(polls, &rec))
	fire := sweep
	fire.Sweep = false
	require.False(t, fire.Redoes(polls, &rec), "not by the sweeper")
	rec.Work = false
	require.False(t, sweep.Redoes(polls, &rec), "the record names no work")

	rec = record(t, disks, "Making", "None")
	rec.Work = true
	sweep, _ = decide.Sweep(disks, &rec, decide.Cause{OwnerDead: true})
	require.False(t, sweep.Redoes(disks, &rec), "the deadline row ends the operation")
}

// TestRedoesByOrigin: the first row that fits the origin and has no guard always fires, so
// the row after it starts nothing.
func TestRedoesByOrigin(t *testing.T) {
	table := fsm.Must[int](spec{
		Name: "ask", Initial: "Idle", Actors: actors,
		States: []fsm.State[string]{{Name: "Idle"}, {Name: "Off"}, {Name: "Asking", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move("Idle", "ask", "Asking").AlsoFrom("Off").By("user"),
			fsm.Move("Idle", "switch", "Off").By("user"),
			fsm.Move("Asking", "done", "Idle").By("agent"),
			fsm.Return[string, string]("Asking", "late").Of("Idle").After(time.Minute),
			fsm.Redo[string, string]("Asking", "late", time.Minute),
		),
	}).Table()
	asking := stateOf(t, table, "Asking")
	require.False(t, redoes(table, asking, stateOf(t, table, "Idle")))
	require.True(t, redoes(table, asking, stateOf(t, table, "Off")))
}

// TestWorkOfAChange: which process does the work after a change of an object at work.
func TestWorkOfAChange(t *testing.T) {
	table := fsm.Must[int](spec{
		Name: "ask", Initial: "Idle", Actors: actors,
		States: []fsm.State[string]{
			{Name: "Idle"}, {Name: "Asking", Kind: fsm.Transitional}, {Name: "Checking", Kind: fsm.Transitional},
		},
		Rows: fsm.Rows(
			fsm.Move("Idle", "ask", "Asking").By("user"),
			fsm.Move("Asking", "anew", "Asking").By("user").Superseding(),
			fsm.Move("Asking", "check", "Checking").By("agent"),
			fsm.Move("Checking", "done", "Idle").By("agent"),
			fsm.Redo[string, string]("Asking", "late", time.Minute),
			fsm.Move("Checking", "late", "Asking").After(time.Minute),
		),
	}).Table()
	for _, c := range []struct {
		name, state, event string
		actor              fsm.Actor
		recorded           bool // the record names work
		with               decide.Request
		want               decide.Work
	}{
		{"the sweeper starts it again", "Asking", "late", fsm.Sweeper, true, decide.Request{Sweep: true}, decide.Redo},
		{"the sweeper starts again what no process does", "Asking", "late", fsm.Sweeper, false, decide.Request{Sweep: true}, decide.NoWork},
		{"the sweeper continues it", "Checking", "late", fsm.Sweeper, true, decide.Request{Sweep: true}, decide.SameWork},
		{"a user starts it again", "Asking", "anew", "user", true, decide.Request{}, decide.NoWork},
		{"a user starts it again with new work", "Asking", "anew", "user", true, decide.Request{Work: true}, decide.NewWork},
		{"a peer continues it", "Asking", "check", "agent", true, decide.Request{}, decide.SameWork},
		{"a peer ends it", "Checking", "done", "agent", true, decide.Request{}, decide.NoWork},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, table, c.state, "Idle")
			rec.Work = c.recorded
			q := c.with
			q.Verb, q.Event, q.Actor = decide.Fire, event(t, table, c.event), c.actor
			d := decision(table, rec, q, nil)
			require.NoError(t, d.Err)
			require.Equal(t, c.want, d.Work)
		})
	}
}

func TestOwnerDead(t *testing.T) {
	require.False(t, decide.OwnerDead(3, 3))
	require.True(t, decide.OwnerDead(3, 0), "no owner of that name is alive")
	require.True(t, decide.OwnerDead(3, 4), "it came back with a later epoch")
}

// tries are polls written the other way round.
var tries = fsm.Must[int](spec{
	Name: "try", Initial: "Idle", Actors: actors,
	States: []fsm.State[string]{{Name: "Idle"}, {Name: "Asking", Kind: fsm.Transitional}},
	Rows: fsm.Rows(
		fsm.Move("Idle", "ask", "Asking").By("user"),
		fsm.Return("Asking", "late").If(guard("often enough")).After(time.Minute),
		fsm.Redo("Asking", "late", time.Minute),
	),
}).Table()
