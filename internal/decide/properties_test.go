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

// later is after, with owner and work.
func later(rec decide.Record, q decide.Request, d decide.Decision) decide.Record {
	next := after(rec, d)
	switch {
	case !d.Write:
		return rec
	case d.Work == decide.SameWork:
		next.Owner, next.Epoch, next.Work = rec.Owner, rec.Epoch, rec.Work
	case d.Work == decide.NewWork, d.Work == decide.Redo:
		next.Owner, next.Epoch, next.Work = q.Owner, q.Epoch, true
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
		if d != (decide.Decision{Row: d.Row, Verdict: d.Verdict, Err: d.Err}) {
			fail("a decision that writes nothing has something to write")
		}
		if q.Verb == decide.Report && d.Verdict == decide.Applied {
			fail("a report was applied without a write")
		}
		if !namesOperation(q.Verb) && d.Err == nil && (d.Row < 0 || table.Rows[d.Row].Then != fsm.ThenIgnore) {
			fail("nothing is written and nothing refused, and no row ignores the event")
		}
		return
	}
	if d.Err != nil {
		fail("a decision both writes and errs")
	}
	if d.MetadataOnly != (q.Verb == decide.Heartbeat) {
		fail("a heartbeat changes more than metadata, or another request changes less")
	}
	if d.MetadataOnly {
		if later(rec, q, d) != rec || table.States[d.State].Kind != fsm.Transitional || q.Operation != rec.Operation {
			fail("a heartbeat changes the record, or extends the deadline of no operation")
		}
		return
	}
	if d.Sequence != rec.Sequence+1 {
		fail("a write that is not the next of the sequence")
	}
	kind, from := table.States[d.State].Kind, fsm.Absent
	if rec.Exists {
		from = table.States[rec.State].Kind
	}
	entered := q.Verb == decide.Add
	if entered && (d.Saves || d.Saved) {
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
	if d.Work != decide.NoWork && kind.Resting() {
		fail("work is left where the object rests")
	}
	if q.Verb == decide.Migrate {
		same := rec
		same.Sequence++
		if later(rec, q, d) != same || d.Row >= 0 || d.Saves || d.Saved != rec.Saved {
			fail("a migration changes the object")
		}
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

// TestReportOfAnotherOperation: a report or heartbeat that does not name the present
// operation writes nothing, and one that names an earlier operation is stale, for all
// tables, states and guards.
func TestReportOfAnotherOperation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		rec.Operation += 5
		q := drawRequest(t, table, rec)
		q.Verb = drawNaming(t)
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

// drawNaming draws a verb whose requests name an operation.
func drawNaming(t *rapid.T) decide.Verb {
	return rapid.SampledFrom([]decide.Verb{decide.Report, decide.Heartbeat}).Draw(t, "naming verb")
}

// TestOutcomeOfNoOwner: an outcome or heartbeat of a process that does not own the
// operation writes nothing and is stale, for all tables.
func TestOutcomeOfNoOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		rec.Operation++
		q := drawRequest(t, table, rec)
		q.Verb, q.Operation, q.Owned = drawNaming(t), rec.Operation, true
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

// TestOverrideMakesStale: after an override, all reports and heartbeats about earlier
// operations are stale, those of the owner too, whatever happens in between.
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
		late.Verb, late.Operation = drawNaming(t), rapid.Uint64Range(1, rec.Operation+1).Draw(t, "late")-1
		late.Owner, late.Epoch = rec.Owner, rec.Epoch
		d := decision(table, now, late, func(int) error { return nil })
		if d.Write || d.Verdict != decide.Stale {
			t.Fatalf("%+v of %+v, after an override of %+v, gives %+v", late, now, rec, d)
		}
	})
}
