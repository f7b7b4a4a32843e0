package decide_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// after is the record once a decision was performed.
func after(rec decide.Record, d decide.Decision) decide.Record {
	if !d.Write {
		return rec
	}
	return decide.Record{
		Exists: !d.Removes, State: d.State, Origin: d.Origin, Sequence: d.Sequence, Operation: d.Operation, Saved: d.Saved,
	}
}

// TestLife lets random objects of random tables live and checks every decision
// on the way.
func TestLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		refuse := drawGuards(t, table)
		var rec decide.Record
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			q := drawRequest(t, table, rec)
			d := decision(table, rec, q, refuse)
			checkDecision(t, table, rec, q, d)
			rec = after(rec, d)
		}
	})
}

func checkDecision(t *rapid.T, table *fsm.Table, rec decide.Record, q decide.Request, d decide.Decision) {
	fail := func(what string) { t.Fatalf("%s: %+v of %+v gives %+v", what, q, rec, d) }
	if !d.Write {
		if d.Begins || d.Removes || d.Sequence != 0 || d.Operation != 0 || d.Within != 0 || d.Payload != decide.Keep || d.Saved {
			fail("a decision that writes nothing says what to write")
		}
		if q.Verb == decide.Report && d.Verdict == decide.Applied {
			fail("a report was applied without a write")
		}
		if q.Verb != decide.Report && d.Err == nil && (d.Row < 0 || table.Rows[d.Row].Then != fsm.ThenIgnore) {
			fail("nothing is written, nothing is wrong, and no row says to ignore it")
		}
		return
	}
	if d.Err != nil {
		fail("a decision both writes and errs")
	}
	if d.Sequence != rec.Sequence+1 {
		fail("a write that is not the next of the sequence")
	}
	kind, from := table.States[d.State].Kind, fsm.Absent
	if rec.Exists {
		from = table.States[rec.State].Kind
	}
	entered := q.Verb == decide.Add
	if entered && d.Payload != decide.Drop {
		fail("an added object has a payload from before")
	}
	supersedes := !entered && table.Rows[d.Row].Supersede
	begins := kind == fsm.Transitional && (from.Resting() || supersedes || entered)
	if d.Begins != begins {
		fail("an operation begins where a transitional state is entered from a resting one, superseded, or added")
	}
	grown := d.Operation - rec.Operation
	if d.Begins && grown != 1 || !d.Begins && grown != 0 {
		fail("the operation id grows by one with every operation, and only then")
	}
	if d.Removes != (kind == fsm.Absent) {
		fail("a record is removed by entering an absent state, and only so")
	}
	if kind.Resting() && d.Origin != d.State {
		fail("a resting state is its own origin")
	}
	if q.Verb != decide.Report {
		return
	}
	if d.Begins {
		fail("a report begins an operation")
	}
	if d.Verdict != decide.Applied || q.Operation != rec.Operation || !rec.Exists {
		fail("a report that writes is applied, and about the present operation")
	}
}

// TestReportOfAnotherOperation: whatever the table, the state and the guards, a
// report that does not name the present operation writes nothing, and one that
// names an older one is stale.
func TestReportOfAnotherOperation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		rec.Operation += 5
		q := drawRequest(t, table, rec)
		q.Verb = decide.Report
		q.Operation = rapid.Uint64Range(0, 10).
			Filter(func(op uint64) bool { return op != rec.Operation }).Draw(t, "operation")
		d := decision(table, rec, q, func(int) error { return nil })
		want := decide.Refused
		if q.Operation < rec.Operation {
			want = decide.Stale
		}
		if d.Write || d.Verdict != want || !errors.Is(d.Err, decide.ErrStale) {
			t.Fatalf("%+v of %+v gives %+v", q, rec, d)
		}
	})
}
