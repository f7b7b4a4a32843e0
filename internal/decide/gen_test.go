package decide_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

type spec = fsm.Spec[string, string]

var actors = []fsm.Actor{"user", "agent"}

// guard never runs: the results of guards are input of a decision.
func guard(name string) fsm.AnyGuard {
	return fsm.When(name, func(context.Context, *int, *int) error { panic("a decision ran a guard") })
}

// drawTable draws a table that fsm.New accepts: a skeleton that is sound by its
// construction, and further rows of every form as far as they keep it sound.
func drawTable(t *rapid.T) *fsm.Table {
	kinds := rapid.SliceOfN(rapid.SampledFrom([]fsm.Kind{
		fsm.Stable, fsm.Stable, fsm.Transitional, fsm.Transitional, fsm.Transitional, fsm.Failed, fsm.Final, fsm.Absent,
	}), 2, 6).Draw(t, "kinds")
	sp := skeleton(t, kinds)
	machine, err := fsm.New[int](sp)
	if err != nil {
		t.Fatalf("the skeleton is not sound: %v", err)
	}
	for range rapid.IntRange(0, 12).Draw(t, "further rows") {
		more := sp
		place := rapid.IntRange(0, len(sp.Rows)).Draw(t, "place")
		more.Rows = slices.Insert(slices.Clone(sp.Rows), place, drawRow(t, sp))
		if m, err := fsm.New[int](more); err == nil {
			sp, machine = more, m
		}
	}
	return machine.Table()
}

// skeleton lets every state be reached from the first one and left again, and
// gives every transitional one a deadline.
func skeleton(t *rapid.T, kinds []fsm.Kind) spec {
	sp := spec{Name: "drawn", Initial: "s0", Actors: actors}
	for i, kind := range kinds {
		sp.States = append(sp.States, fsm.State[string]{Name: stateName(i), Kind: kind})
		if i > 0 {
			parent := rapid.IntRange(0, i-1).Draw(t, "parent")
			row := fsm.Move(stateName(parent), "e"+fmt.Sprint(i%3), stateName(i)).By(actors[i%2])
			row.Forced = kinds[parent] == fsm.Final
			if clash(sp.Rows, row) {
				row.Event = "to-" + stateName(i)
			}
			sp.Rows = append(sp.Rows, row)
		}
	}
	for i, kind := range kinds {
		if kind == fsm.Final || kind == fsm.Absent {
			continue
		}
		out := fsm.Move(stateName(i), "out", stateName((i+1)%len(kinds)))
		if kind == fsm.Transitional {
			out = out.By("user").After(time.Duration(rapid.IntRange(1, 9).Draw(t, "timeout")) * time.Minute)
			out.Supersede = kinds[(i+1)%len(kinds)] == fsm.Transitional && rapid.Bool().Draw(t, "anew")
		}
		sp.Rows = append(sp.Rows, out)
	}
	return sp
}

// clash reports whether a row of the same cell is there already.
func clash(rows []fsm.Row[string, string], row fsm.Row[string, string]) bool {
	return slices.ContainsFunc(rows, func(r fsm.Row[string, string]) bool {
		return r.From[0] == row.From[0] && r.Event == row.Event
	})
}

func drawRow(t *rapid.T, sp spec) fsm.Row[string, string] {
	state := rapid.Custom(func(t *rapid.T) string {
		return stateName(rapid.IntRange(0, len(sp.States)-1).Draw(t, "state"))
	})
	event := rapid.SampledFrom([]string{"e0", "e1", "e2", "out"}).Draw(t, "event")
	var row fsm.Row[string, string]
	switch rapid.IntRange(0, 5).Draw(t, "form") {
	case 0:
		row = fsm.Return(state.Draw(t, "from"), event)
	case 1:
		row = fsm.Ignore(state.Draw(t, "from"), event)
	case 2:
		row = fsm.FromAny(event, state.Draw(t, "to"))
	default:
		row = fsm.Move(state.Draw(t, "from"), event, state.Draw(t, "to"))
	}
	if rapid.Bool().Draw(t, "with actor") {
		row = row.By(rapid.SampledFrom(actors).Draw(t, "actor"))
	}
	if rapid.IntRange(0, 2).Draw(t, "guarded") == 0 {
		row = row.If(guard(rapid.SampledFrom([]string{"g0", "g1"}).Draw(t, "guard")))
	}
	if rapid.IntRange(0, 2).Draw(t, "conditional") == 0 {
		row = row.Of(rapid.SliceOfNDistinct(state, 1, 2, rapid.ID).Draw(t, "origins")...)
	}
	row.Forced = rapid.IntRange(0, 3).Draw(t, "forced") == 0
	row.Supersede = rapid.IntRange(0, 2).Draw(t, "supersede") == 0
	if rapid.IntRange(0, 4).Draw(t, "late") == 0 {
		row = row.After(time.Duration(rapid.IntRange(1, 9).Draw(t, "timeout")) * time.Minute)
	}
	return row
}

func stateName(i int) string { return fmt.Sprintf("s%d", i) }

// drawRecord draws a record that an object of the table can have.
func drawRecord(t *rapid.T, table *fsm.Table) decide.Record {
	rec := decide.Record{
		Exists:   rapid.Bool().Draw(t, "exists"),
		Sequence: rapid.Uint64Range(0, 9).Draw(t, "sequence"),
	}
	rec.Operation = rapid.Uint64Range(0, rec.Sequence).Draw(t, "operation")
	if rec.Exists {
		rec.State = rapid.IntRange(0, len(table.States)-1).Draw(t, "state")
		rec.Origin = rapid.SampledFrom(table.Origins()[rec.State]).Draw(t, "origin")
		rec.Saved = rapid.Bool().Draw(t, "saved")
		rec.Work = rapid.Bool().Draw(t, "work")
		rec.Owner, rec.Epoch = drawOwner(t)
	}
	return rec
}

// drawOwner draws no owner or one of few, so that owners of requests and records are
// often equal.
func drawOwner(t *rapid.T) (owner string, epoch uint64) {
	owner = rapid.SampledFrom([]string{"", "p", "p", "q"}).Draw(t, "owner")
	if owner != "" {
		epoch = rapid.Uint64Range(1, 2).Draw(t, "epoch")
	}
	return owner, epoch
}

// drawRequest draws a request. A report or heartbeat is about an operation near the
// present one.
func drawRequest(t *rapid.T, table *fsm.Table, rec decide.Record) decide.Request {
	q := decide.Request{
		Verb: rapid.SampledFrom([]decide.Verb{
			decide.Create, decide.Add, decide.Fire, decide.Fire, decide.Report, decide.Report, decide.Override, decide.Heartbeat, decide.Migrate,
		}).Draw(t, "verb"),
		Event: rapid.IntRange(0, len(table.Events)-1).Draw(t, "event"),
		Actor: rapid.SampledFrom([]fsm.Actor{"user", "agent", fsm.Sweeper, "undeclared"}).Draw(t, "actor"),
	}
	if namesOperation(q.Verb) {
		q.Operation = rec.Operation + rapid.Uint64Range(0, 2).Draw(t, "ahead")
		q.Operation -= min(rapid.Uint64Range(0, 2).Draw(t, "behind"), q.Operation)
	}
	switch q.Verb {
	case decide.Fire, decide.Create:
		q.Work = rapid.Bool().Draw(t, "begins with work")
		q.Sweep = q.Verb == decide.Fire && !q.Work && rapid.Bool().Draw(t, "by a sweep")
	case decide.Report, decide.Heartbeat:
		if q.Owned = rapid.Bool().Draw(t, "owned"); q.Owned {
			q.Owner, q.Epoch = drawOwner(t)
		}
	case decide.Override:
		q.To = rapid.IntRange(0, len(table.States)-1).Draw(t, "to")
		q.Edits = rapid.Bool().Draw(t, "edits")
	case decide.Add:
		q.To = rapid.IntRange(0, len(table.States)-1).Draw(t, "to")
	case decide.Migrate:
	}
	// Only decisions on reports depend on it. A heartbeat never has it.
	q.Repeats = q.Verb != decide.Heartbeat && rapid.Bool().Draw(t, "repeats")
	if q.Verb == decide.Fire {
		q.Force = rapid.Bool().Draw(t, "force")
		q.Edits = rapid.Bool().Draw(t, "edits")
	}
	// Override, Heartbeat and Migrate have no event, so they undo nothing.
	q.Undo = q.Verb != decide.Override && q.Verb != decide.Heartbeat && q.Verb != decide.Migrate && rapid.IntRange(0, 3).Draw(t, "undo") == 0
	return q
}

// namesOperation reports whether requests of a verb are about a named operation.
func namesOperation(verb decide.Verb) bool { return verb == decide.Report || verb == decide.Heartbeat }

// decision runs both steps of a decision as the manager does. The function refuse
// returns the results of the guards.
func decision(table *fsm.Table, rec decide.Record, q decide.Request, refuse func(row int) error) decide.Decision {
	rows, d, ok := q.Candidates(table, &rec, nil)
	if !ok {
		return d
	}
	var results []error
	for _, row := range rows {
		var reason error
		if table.Rows[row].Guard != "" {
			reason = refuse(row)
		}
		results = append(results, reason)
		if reason == nil {
			break
		}
	}
	return q.Decide(table, &rec, rows, results)
}
