package models

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/internal/tablemodel"
)

// changedRequest decides about a request that the function has changed.
func changedRequest(change func(*decide.Request, *decide.Record)) func(*Decisions) {
	return func(d *Decisions) {
		candidates, decides := d.Candidates, d.Decide
		d.Candidates = func(q *decide.Request, t *fsm.Table, rec *decide.Record, rows []int) ([]int, decide.Decision, bool) {
			changed := *q
			change(&changed, rec)
			return candidates(&changed, t, rec, rows)
		}
		d.Decide = func(q *decide.Request, t *fsm.Table, rec *decide.Record, rows []int, guards []error) decide.Decision {
			changed := *q
			change(&changed, rec)
			return decides(&changed, t, rec, rows, guards)
		}
	}
}

// changedRow changes the decision about a row that fires.
func changedRow(change func(*decide.Record, *decide.Decision)) func(*Decisions) {
	return func(d *Decisions) {
		decides := d.Decide
		d.Decide = func(q *decide.Request, t *fsm.Table, rec *decide.Record, rows []int, guards []error) decide.Decision {
			decision := decides(q, t, rec, rows, guards)
			if decision.Write {
				change(rec, &decision)
			}
			return decision
		}
	}
}

var olderReportsCount = changedRequest(func(q *decide.Request, rec *decide.Record) {
	if q.Operation != 0 && q.Operation < rec.Operation {
		q.Operation = rec.Operation
	}
})

// plantedDecisions are decisions of internal/decide that are changed on purpose.
var plantedDecisions = []struct {
	name   string
	change func(*Decisions)
}{
	{"a report about an older operation counts", olderReportsCount},
	{"a report about a later operation counts", changedRequest(func(q *decide.Request, rec *decide.Record) {
		if q.Operation > rec.Operation {
			q.Operation = rec.Operation
		}
	})},
	{"a report that names no operation counts", changedRequest(func(q *decide.Request, rec *decide.Record) {
		if q.Operation == 0 {
			q.Operation = rec.Operation
		}
	})},
	{"the owner and its epoch are not compared", changedRequest(func(q *decide.Request, _ *decide.Record) { q.Owned = false })},
	{"the owner is not compared", changedRequest(func(q *decide.Request, rec *decide.Record) { q.Owner = rec.Owner })},
	{"the epoch is not compared", changedRequest(func(q *decide.Request, rec *decide.Record) { q.Epoch = rec.Epoch })},
	{"a report starts an operation", func(d *Decisions) {
		decides := d.Decide
		d.Decide = func(q *decide.Request, t *fsm.Table, rec *decide.Record, rows []int, guards []error) decide.Decision {
			decision := decides(q, t, rec, rows, guards)
			if decision.Err == decide.ErrBegins {
				fire := *q
				fire.Verb = decide.Fire
				return decides(&fire, t, rec, rows, guards)
			}
			return decision
		}
	}},
	{"an operation has the id of the one before", changedRow(func(rec *decide.Record, d *decide.Decision) {
		if rec.Exists {
			d.Operation = rec.Operation
		}
	})},
	{"a new object has the operation ids of a removed one", changedRow(func(rec *decide.Record, d *decide.Decision) {
		if !rec.Exists {
			d.Operation = 1
		}
	})},
	{"a removal keeps the record", changedRow(func(_ *decide.Record, d *decide.Decision) { d.Removes = false })},
	{"the record does not name the work", changedRow(func(_ *decide.Record, d *decide.Decision) {
		if d.Work == decide.NewWork {
			d.Work = decide.NoWork
		}
	})},
	{"the record keeps the owner at rest", changedRow(func(_ *decide.Record, d *decide.Decision) {
		if d.Work == decide.NoWork {
			d.Work = decide.SameWork
		}
	})},
	{"an edit does not save the payload", changedRow(func(_ *decide.Record, d *decide.Decision) {
		if d.Saves {
			d.Saves, d.Saved = false, false
		}
	})},
	{"an undo does not restore the payload", func(d *Decisions) {
		d.Restores = func(*decide.Request, *decide.Record) bool { return false }
	}},
	{"a return does not lead to the origin", changedRow(func(_ *decide.Record, d *decide.Decision) { d.Origin = d.State })},
	{"the outcome of work is not reported", func(d *Decisions) {
		d.Outcome = func(q decide.Request, _ *fsm.Table, _ *decide.Record, _ bool, _ decide.Events) (decide.Request, bool) {
			q.Verb, q.Event = decide.Report, -1
			return q, false
		}
	}},
	{"an owner that came back counts as the earlier one", func(d *Decisions) {
		d.OwnerDead = func(_, living uint64) bool { return living == 0 }
	}},
	{"no owner is dead", func(d *Decisions) { d.OwnerDead = func(_, _ uint64) bool { return false } }},
	{"the sweeper does nothing", func(d *Decisions) {
		d.Sweep = func(*fsm.Table, *decide.Record, decide.Cause) (decide.Request, decide.Care) {
			return decide.Request{}, decide.LeaveAlone
		}
	}},
	{"the sweeper never starts work again", changedRow(func(_ *decide.Record, d *decide.Decision) {
		if d.Work == decide.Redo {
			d.Work = decide.NoWork
		}
	})},
	{"the sweeper starts the operation and not its work", func(d *Decisions) {
		d.Redoes = func(*decide.Request, *fsm.Table, *decide.Record) bool { return false }
	}},
}

// smallModels are small versions of the models whose verdicts depend on decisions. The
// other models, LockTree and Queue, run the packages.
func smallModels(t *testing.T, d *Decisions) []smallModel {
	edge := EdgeCloud{Parts: Complete, Decisions: d, Operations: 2, Capacity: 1, Duplicate: 1, Disconnect: 1, Failures: 1}
	again := EdgeCloud{Parts: Complete, Decisions: d, Operations: 3, Duplicate: 1, Absent: true}
	options := tablemodel.Usual()
	options.Decisions = *d
	table, err := tablemodel.System(clusters, options)
	require.NoError(t, err)
	return []smallModel{
		{"EdgeCloud", []model{edge.System(), again.System()}},
		{"Upgrade", []model{Upgrade{Decisions: d, Upgrades: 1, Capacity: 1}.System()}},
		{"Blazar", []model{Blazar{Decisions: d, Leases: 1, Reservations: 1, Updates: 1, Deletes: 1, Failures: 1, Deaths: 1}.Model()}},
		{"Takeover", []model{
			Takeover{Operations: 1, Deaths: 1}.Model(d),
			Takeover{Operations: 2, Deaths: 1, Reports: 1}.Model(d),
			Takeover{Operations: 2, Deaths: 1, Lost: 1}.Model(d),
		}},
		{"fsm verify of clusterinst", []model{table}},
	}
}

type smallModel struct {
	name     string
	versions []model
}

// TestVerifyDecisions changes one decision at a time, and lists the models that notice it,
// with the last step of the counterexample. The verdict of a model depends on the decisions
// under which the model is listed.
//
// A model that does not notice is explored to its end. That takes most of the time: without
// INTERLOCK_LONG, only the models that are listed are explored.
func TestVerifyDecisions(t *testing.T) {
	t.Parallel()
	for _, m := range smallModels(t, &shipped) {
		for _, version := range m.versions {
			require.NoError(t, explored(t, version).Err())
		}
	}
	listed := listedModels(t)
	all := long || os.Getenv("UPDATE_DOCS") != ""
	var text strings.Builder
	for _, p := range plantedDecisions {
		d := shipped
		p.change(&d)
		fmt.Fprintf(&text, "%s\n", p.name)
		noticed := false
		for _, m := range smallModels(t, &d) {
			if !all && !listed[p.name][m.name] {
				continue
			}
			for _, version := range m.versions {
				v, err := version.Explore(t.Context(), nil)
				require.NoError(t, err, "%s: %s", p.name, m.name)
				if v.Outcome != explore.Holds {
					noticed = true
					fmt.Fprintf(&text, "  %s: %s\n    %s\n", m.name, problemOf(v), lastStep(v.Trace))
					break
				}
			}
		}
		if !noticed {
			text.WriteString("  no model\n")
		}
	}
	t.Log("\n" + text.String())
	requireGolden(t, "decisions.txt", text.String())
}

// listedModels returns the models that the list has, by the name of the changed decision.
func listedModels(t *testing.T) map[string]map[string]bool {
	list, err := os.ReadFile(filepath.Join("testdata", "decisions.txt"))
	require.NoError(t, err)
	models := make(map[string]map[string]bool)
	name := ""
	for line := range strings.Lines(string(list)) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case !strings.HasPrefix(line, " "):
			name = line
			models[name] = make(map[string]bool)
		case !strings.HasPrefix(line, "    "):
			model, _, _ := strings.Cut(strings.TrimSpace(line), ": ")
			models[name][model] = true
		}
	}
	return models
}

// problemOf returns what does not hold.
func problemOf(v *explore.Verdict) string {
	if v.Problem != nil {
		return v.Problem.Error()
	}
	return string(v.Outcome)
}

// lastStep returns the last step of a counterexample, with the actors that it touches.
func lastStep(trace *explore.Trace) string {
	s := trace.Steps[len(trace.Steps)-1]
	text := cmp.Or(s.Message, s.Label)
	for _, l := range s.Locals {
		text += "; " + l.Actor + ": " + l.After
	}
	return text
}
