package check_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// Random machines and changes of them. A guard's result is a bit of the payload.

type (
	valuation map[string]bool
	plan      = fsm.Spec[string, string]
	planRow   = fsm.Row[string, string]
	machine   = fsm.Machine[string, string, valuation]
)

var errDeclined = errors.New("declined")

func guardNamed(name string) fsm.Guard[valuation] {
	return fsm.When(name, func(_ context.Context, v *valuation) error {
		if (*v)[name] {
			return nil
		}
		return errDeclined
	})
}

var (
	planActors = []fsm.Actor{"user", "agent"}
	planEvents = []string{"go", "stop", "done", "fail"}
	planGuards = []string{"p", "q"}
	planKinds  = []fsm.Kind{fsm.Stable, fsm.Stable, fsm.Transitional, fsm.Transitional, fsm.Failed, fsm.Final, fsm.Absent}
)

// plans draws a sound specification: a tree that reaches every state, a way out of
// each, and then whatever goes with it.
var plans = rapid.Custom(func(t *rapid.T) plan {
	spec := plan{Name: "drawn", Actors: planActors}
	n := rapid.IntRange(2, 5).Draw(t, "states")
	for i := range n {
		s := fsm.State[string]{Name: string(rune('A' + i)), Kind: rapid.SampledFrom(planKinds).Draw(t, "kind")}
		if s.Kind == fsm.Transitional {
			s.Manual = "somebody"
		}
		spec.States = append(spec.States, s)
	}
	spec.Initial = "A"
	add := func(from, to int, event string) {
		r := fsm.Move(spec.States[from].Name, event, spec.States[to].Name)
		r.Forced = spec.States[from].Kind == fsm.Final
		spec.Rows = append(spec.Rows, r)
	}
	for i := 1; i < n; i++ {
		add(rapid.IntRange(0, i-1).Draw(t, "parent"), i, fmt.Sprintf("make%d", i))
	}
	for i := range n {
		add(i, (i+rapid.IntRange(1, n-1).Draw(t, "exit"))%n, fmt.Sprintf("leave%d", i))
	}
	for range rapid.IntRange(0, 8).Draw(t, "more") {
		spec = accepted(spec, mutate(t, spec, "row"))
	}
	return spec
})

// accepted is the changed specification if a machine can be made of it.
func accepted(spec, changed plan) plan {
	if _, err := fsm.New[valuation](changed); err != nil {
		return spec
	}
	return changed
}

// mutations are the kinds of changes, some of them several times, to be drawn
// more often.
var mutations = []string{
	"row", "row", "row", "drop", "drop", "retarget", "guard", "actors", "forced", "within", "supersede", "origin",
	"kind", "state", "unstate", "rename", "event", "initial", "swap",
}

// changes draws a few changes of a specification. The names that it gives to
// states are in renamed, new names by old ones.
func changes(t *rapid.T, spec plan) (changed plan, renamed map[string]string) {
	renamed = map[string]string{}
	changed = spec
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		what := rapid.SampledFrom(mutations).Draw(t, "change")
		if what != "rename" {
			changed = accepted(changed, mutate(t, changed, what))
			continue
		}
		i := rapid.IntRange(0, len(changed.States)-1).Draw(t, "renamed")
		from, to := changed.States[i].Name, changed.States[i].Name+"2"
		if len(from) == 1 && slices.ContainsFunc(spec.States, func(s fsm.State[string]) bool { return s.Name == from }) {
			renamed[from] = to
		}
		changed = rename(changed, from, to)
	}
	for from, to := range renamed {
		if !slices.ContainsFunc(changed.States, func(s fsm.State[string]) bool { return s.Name == to }) {
			delete(renamed, from) // removed since
		}
	}
	return changed, renamed
}

func clonePlan(spec plan) plan {
	spec.States, spec.Rows = slices.Clone(spec.States), slices.Clone(spec.Rows)
	return spec
}

func rename(spec plan, from, to string) plan {
	spec = clonePlan(spec)
	name := func(s string) string {
		if s == from {
			return to
		}
		return s
	}
	names := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, name(s))
		}
		return out
	}
	spec.Initial = name(spec.Initial)
	for i := range spec.States {
		spec.States[i].Name = name(spec.States[i].Name)
	}
	for i := range spec.Rows {
		r := &spec.Rows[i]
		r.From, r.Except, r.Origin, r.To = names(r.From), names(r.Except), names(r.Origin), name(r.To)
	}
	return spec
}

func mutate(t *rapid.T, spec plan, what string) plan {
	spec = clonePlan(spec)
	state := func(label string) string {
		return spec.States[rapid.IntRange(0, len(spec.States)-1).Draw(t, label)].Name
	}
	row := func() *planRow { return &spec.Rows[rapid.IntRange(0, len(spec.Rows)-1).Draw(t, "row")] }
	if len(spec.Rows) == 0 {
		what = "row"
	}
	switch what {
	case "row":
		r := planRow{
			From: []string{state("from")}, Event: rapid.SampledFrom(planEvents).Draw(t, "event"), To: state("to"),
			Then: rapid.SampledFrom([]fsm.Then{fsm.ThenMove, fsm.ThenMove, fsm.ThenMove, fsm.ThenReturn, fsm.ThenIgnore}).Draw(t, "then"),
		}
		if rapid.Bool().Draw(t, "actor") {
			r.Actors = []fsm.Actor{rapid.SampledFrom(planActors).Draw(t, "who")}
		}
		if rapid.IntRange(0, 2).Draw(t, "guarded") == 0 {
			r.Guard = guardNamed(rapid.SampledFrom(planGuards).Draw(t, "guard"))
		}
		if rapid.IntRange(0, 5).Draw(t, "conditional") == 0 {
			r.Origin = []string{state("origin")}
		}
		if rapid.IntRange(0, 5).Draw(t, "late") == 0 {
			r.Within = time.Duration(rapid.IntRange(1, 2).Draw(t, "minutes")) * time.Minute
		}
		r.Forced = rapid.IntRange(0, 6).Draw(t, "forced") == 0
		spec.Rows = slices.Insert(spec.Rows, rapid.IntRange(0, len(spec.Rows)).Draw(t, "place"), r)
		for i := range spec.States { // who has a deadline needs nobody
			if spec.States[i].Name == r.From[0] && r.Within > 0 {
				spec.States[i].Manual = ""
			}
		}
	case "drop":
		i := rapid.IntRange(0, len(spec.Rows)-1).Draw(t, "dropped")
		spec.Rows = slices.Delete(spec.Rows, i, i+1)
	case "retarget":
		row().To = state("to")
	case "guard":
		row().Guard = rapid.SampledFrom([]fsm.AnyGuard{nil, guardNamed("p"), guardNamed("q"), guardNamed("r")}).Draw(t, "guard")
	case "actors":
		row().Actors = rapid.SampledFrom([][]fsm.Actor{nil, {"user"}, {"agent"}, {"user", "agent"}}).Draw(t, "actors")
	case "forced":
		r := row()
		r.Forced = !r.Forced
	case "within":
		r := row()
		r.Within = rapid.SampledFrom([]time.Duration{0, time.Minute, 2 * time.Minute}).Draw(t, "within")
		late := slices.ContainsFunc(spec.Rows, func(o planRow) bool { return o.Within > 0 && o.From[0] == r.From[0] })
		for i := range spec.States {
			if s := &spec.States[i]; s.Name == r.From[0] && s.Kind == fsm.Transitional {
				if s.Manual = "somebody"; late {
					s.Manual = ""
				}
			}
		}
	case "supersede":
		r := row()
		r.Supersede = !r.Supersede
	case "origin":
		row().Origin = rapid.SampledFrom([][]string{nil, {state("origin")}}).Draw(t, "origins")
	case "kind":
		s := &spec.States[rapid.IntRange(0, len(spec.States)-1).Draw(t, "state")]
		s.Kind = rapid.SampledFrom(planKinds).Draw(t, "kind")
		if s.Manual = ""; s.Kind == fsm.Transitional {
			s.Manual = "somebody"
		}
	case "state":
		s := fsm.State[string]{Name: "X", Kind: rapid.SampledFrom(planKinds).Draw(t, "kind")}
		if s.Kind == fsm.Transitional {
			s.Manual = "somebody"
		}
		from, to := state("from"), state("to")
		spec.States = append(spec.States, s)
		out := fsm.Move("X", "leaveX", to)
		out.Forced = s.Kind == fsm.Final
		spec.Rows = append(spec.Rows, fsm.Move(from, rapid.SampledFrom([]string{"go", "makeX"}).Draw(t, "event"), "X"), out)
	case "unstate":
		gone := state("gone")
		spec.States = slices.DeleteFunc(spec.States, func(s fsm.State[string]) bool { return s.Name == gone })
		spec.Rows = slices.DeleteFunc(spec.Rows, func(r planRow) bool {
			return r.From[0] == gone || r.Then == fsm.ThenMove && r.To == gone || slices.Contains(r.Origin, gone)
		})
	case "event":
		row().Event = rapid.SampledFrom(append([]string{"new"}, planEvents...)).Draw(t, "event")
	case "initial":
		spec.Initial = state("initial")
	case "swap":
		i, k := rapid.IntRange(0, len(spec.Rows)-1).Draw(t, "one"), rapid.IntRange(0, len(spec.Rows)-1).Draw(t, "other")
		spec.Rows[i], spec.Rows[k] = spec.Rows[k], spec.Rows[i]
	}
	return spec
}
