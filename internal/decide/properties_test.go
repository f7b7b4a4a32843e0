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

// later is after, with who works.
func later(rec decide.Record, q decide.Request, d decide.Decision) decide.Record {
	next := after(rec, d)
	switch {
	case !d.Write:
		return rec
	case d.Work == decide.SameWork:
		next.Owner, next.Epoch, next.Work, next.Steps = rec.Owner, rec.Epoch, rec.Work, rec.Steps
	case d.Work == decide.NewWork:
		next.Owner, next.Epoch, next.Work, next.Steps = q.Owner, q.Epoch, true, q.Steps
	case d.Work == decide.Redo:
		next.Owner, next.Epoch, next.Work, next.Steps = q.Owner, q.Epoch, true, rec.Steps
	}
	return next
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
			rec = later(rec, q, d)
		}
	})
}

func checkDecision(t *rapid.T, table *fsm.Table, rec decide.Record, q decide.Request, d decide.Decision) {
	fail := func(what string) { t.Fatalf("%s: %+v of %+v gives %+v", what, q, rec, d) }
	if !d.Write {
		if d.Begins || d.Work != decide.NoWork || d.Removes || d.Sequence != 0 || d.Operation != 0 || d.Within != 0 || d.Payload != decide.Keep || d.Saved {
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
	overrides := q.Verb == decide.Override
	supersedes := d.Row >= 0 && table.Rows[d.Row].Supersede
	begins := overrides || kind == fsm.Transitional && (from.Resting() || supersedes || entered)
	if d.Begins != begins {
		fail("an operation begins where a transitional state is entered from a resting one, superseded, added, or overridden")
	}
	if overrides && (d.Row >= 0 || d.Work != decide.NoWork || d.State != q.To) {
		fail("an override takes a row, leaves work behind, or leads elsewhere")
	}
	if d.Work != decide.NoWork && d.Removes {
		fail("work is left where there is no object")
	}
	if d.Work == decide.SameWork && kind.Resting() && !(q.Owned && q.Steps) {
		fail("an object rests, nothing follows, and somebody works")
	}
	if (d.Work == decide.NewWork || d.Work == decide.Redo) && !d.Begins {
		fail("work begins without an operation")
	}
	grown := d.Operation - rec.Operation
	anew := !rec.Exists && rec.Operation > 0 // a life after another one
	if (d.Begins || anew) && grown != 1 || !d.Begins && !anew && grown != 0 {
		fail("the operation id grows by one with every operation and every further life, and only then")
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

// TestOutcomeOfNoOwner: whatever the table says, an outcome by a process that does
// not own the operation writes nothing and is stale.
func TestOutcomeOfNoOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		rec.Operation++
		q := drawRequest(t, table, rec)
		q.Verb, q.Operation, q.Owned = decide.Report, rec.Operation, true
		q.Owner, q.Epoch = drawOwner(t)
		if q.Owner == rec.Owner && q.Epoch == rec.Epoch {
			q.Epoch++
		}
		d := decision(table, rec, q, func(int) error { return nil })
		if d.Write || d.Verdict != decide.Stale || !errors.Is(d.Err, decide.ErrStale) {
			t.Fatalf("%+v of %+v gives %+v", q, rec, d)
		}
	})
}

// TestOverrideMakesStale: whatever was said about the object before an override
// is stale afterwards, by its owner too, whatever happens in between.
func TestOverrideMakesStale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		rec.Exists = true
		q := drawRequest(t, table, rec)
		q.Verb, q.To = decide.Override, rapid.IntRange(0, len(table.States)-1).Draw(t, "to")
		now := later(rec, q, decision(table, rec, q, nil))
		for range rapid.IntRange(0, 3).Draw(t, "calls in between") {
			q := drawRequest(t, table, now)
			now = later(now, q, decision(table, now, q, func(int) error { return nil }))
		}
		late := drawRequest(t, table, rec)
		late.Verb, late.Operation = decide.Report, rapid.Uint64Range(1, rec.Operation+1).Draw(t, "late")-1
		late.Owner, late.Epoch = rec.Owner, rec.Epoch
		d := decision(table, now, late, func(int) error { return nil })
		if d.Write || d.Verdict != decide.Stale {
			t.Fatalf("%+v of %+v, after an override of %+v, gives %+v", late, now, rec, d)
		}
	})
}
