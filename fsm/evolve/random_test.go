package evolve_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// The functions of this file draw machines and changes of them. A guard reads one bit
// of the payload.

type (
	valuation map[string]bool
	plan      = fsm.Spec[string, string]
	planRow   = fsm.Row[string, string]
	machine   = fsm.Machine[string, string, valuation]
)

var errDeclined = errors.New("declined")

func guardNamed(name string) fsm.Guard[valuation] { return guardReading(name, name) }

func guardReading(name, key string) fsm.Guard[valuation] {
	return fsm.When(name, func(_ context.Context, _, v *valuation) error {
		if (*v)[key] {
			return nil
		}
		return errDeclined
	})
}

var (
	planActors = []fsm.Actor{"user", "agent", "admin"}
	planEvents = []string{"go", "stop", "done", "fail"}
	planGuards = []string{"p", "q"}
	planKinds  = []fsm.Kind{
		fsm.Stable, fsm.Stable, fsm.Transitional, fsm.Transitional, fsm.Transitional, fsm.Failed, fsm.Final, fsm.Absent, fsm.Absent,
	}
)

// plans draws a sound specification: a tree that reaches every state, a row out of each
// state, and further rows.
var plans = rapid.Custom(func(t *rapid.T) plan {
	spec := plan{Name: "drawn", Actors: planActors[:rapid.IntRange(1, len(planActors)).Draw(t, "actors")]}
	n := rapid.IntRange(2, 5).Draw(t, "states")
	for i := range n {
		s := fsm.State[string]{Name: string(rune('A' + i)), Kind: rapid.SampledFrom(planKinds).Draw(t, "kind")}
		if s.Kind == fsm.Transitional {
			s.Manual = "an operator"
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

// accepted returns the changed specification if it is valid, else the original.
func accepted(spec, changed plan) plan {
	if _, err := fsm.New[valuation](changed); err != nil {
		return spec
	}
	return changed
}

// mutations are the kinds of changes. Those that appear several times are drawn more
// often.
var mutations = []string{
	"row", "row", "row", "drop", "drop", "retarget", "guard", "actors", "forced", "within", "supersede", "origin",
	"kind", "kind", "state", "unstate", "unstate", "within", "rename", "call", "event", "initial", "swap", "declare",
}

// renames are the new names by the old ones, as in [evolve.Config].
type renames struct{ states, events, actors, guards map[string]string }

func (r *renames) all() []map[string]string {
	return []map[string]string{r.states, r.events, r.actors, r.guards}
}

// namesOf returns the names of each kind in a specification.
func namesOf(spec plan) (names [4][]string) {
	for _, s := range spec.States {
		names[0] = append(names[0], s.Name)
	}
	for _, a := range spec.Actors {
		names[2] = append(names[2], string(a))
	}
	for _, r := range spec.Rows {
		names[1] = append(names[1], r.Event)
		if r.Guard != nil {
			names[3] = append(names[3], r.Guard.Name())
		}
	}
	return names
}

// changes draws a few changes of a specification, and returns the renamed names.
func changes(t *rapid.T, spec plan) (plan, renames) {
	renamed := renames{map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}}
	before := namesOf(spec)
	changed := spec
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		what := rapid.SampledFrom(mutations).Draw(t, "change")
		kind := 0
		switch what {
		case "call":
			kind = rapid.IntRange(1, 3).Draw(t, "kind")
			fallthrough
		case "rename":
			names := namesOf(changed)[kind]
			if len(names) == 0 {
				continue
			}
			from := rapid.SampledFrom(names).Draw(t, "renamed")
			if to := from + "2"; from != string(fsm.Sweeper) && !slices.Contains(names, to) {
				changed = renamedTo(changed, kind, from, to)
				if slices.Contains(before[kind], from) && !slices.Contains(before[kind], to) {
					renamed.all()[kind][from] = to
				}
			}
		default:
			changed = accepted(changed, mutate(t, changed, what))
		}
	}
	for kind, names := range namesOf(changed) {
		maps.DeleteFunc(renamed.all()[kind], func(from, to string) bool {
			// Removed since; and the name of a guard in a witness is to mean one.
			return !slices.Contains(names, to) || kind == 3 && slices.Contains(names, from)
		})
	}
	return changed, renamed
}

// renamedTo returns a specification with another name for a state, an event, an actor
// or a guard.
func renamedTo(spec plan, kind int, from, to string) plan {
	spec = clonePlan(spec)
	switch kind {
	case 0:
		return rename(spec, from, to)
	case 2:
		for i, a := range spec.Actors {
			if string(a) == from {
				spec.Actors[i] = fsm.Actor(to)
			}
		}
	}
	for i := range spec.Rows {
		r := &spec.Rows[i]
		switch {
		case kind == 1 && r.Event == from:
			r.Event = to
		case kind == 3 && r.Guard != nil && r.Guard.Name() == from:
			r.Guard = guardNamed(to)
		case kind == 2:
			r.Actors = slices.Clone(r.Actors)
			for k, a := range r.Actors {
				if string(a) == from {
					r.Actors[k] = fsm.Actor(to)
				}
			}
		}
	}
	return spec
}

func clonePlan(spec plan) plan {
	spec.States, spec.Rows, spec.Actors = slices.Clone(spec.States), slices.Clone(spec.Rows), slices.Clone(spec.Actors)
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
	some := func(label string) []string {
		list := []string{state(label)}
		for range max(0, rapid.IntRange(-4, 2).Draw(t, "more of them")) {
			if s := state(label); !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
		return list
	}
	actorsOf := func() (actors []fsm.Actor) {
		for _, a := range spec.Actors {
			if rapid.Bool().Draw(t, string(a)) {
				actors = append(actors, a)
			}
		}
		return actors
	}
	switch what {
	case "row":
		r := planRow{
			From: some("from"), Event: rapid.SampledFrom(planEvents).Draw(t, "event"), To: state("to"),
			Then: rapid.SampledFrom([]fsm.Then{fsm.ThenMove, fsm.ThenMove, fsm.ThenMove, fsm.ThenReturn, fsm.ThenIgnore}).Draw(t, "then"),
		}
		if rapid.Bool().Draw(t, "actor") {
			r.Actors = actorsOf()
		}
		if rapid.IntRange(0, 2).Draw(t, "guarded") == 0 {
			r.Guard = guardNamed(rapid.SampledFrom(planGuards).Draw(t, "guard"))
		}
		if rapid.IntRange(0, 5).Draw(t, "conditional") == 0 {
			r.Origin = some("origin")
		}
		if rapid.IntRange(0, 9).Draw(t, "wildcard") == 0 {
			r.Any, r.Except, r.From = true, some("except"), nil
		}
		if rapid.IntRange(0, 5).Draw(t, "late") == 0 {
			r.Timeout = time.Duration(rapid.IntRange(1, 2).Draw(t, "minutes")) * time.Minute
		}
		r.Forced = rapid.IntRange(0, 6).Draw(t, "forced") == 0
		spec.Rows = slices.Insert(spec.Rows, rapid.IntRange(0, len(spec.Rows)).Draw(t, "place"), r)
		setManual(&spec)
	case "drop":
		i := rapid.IntRange(0, len(spec.Rows)-1).Draw(t, "dropped")
		spec.Rows = slices.Delete(spec.Rows, i, i+1)
	case "retarget":
		row().To = state("to")
	case "guard":
		row().Guard = rapid.SampledFrom([]fsm.AnyGuard{nil, guardNamed("p"), guardNamed("q"), guardNamed("r")}).Draw(t, "guard")
	case "actors":
		r := row()
		if r.Actors = actorsOf(); rapid.IntRange(0, 4).Draw(t, "sweeper") == 0 && slices.Contains(spec.Actors, fsm.Sweeper) {
			r.Actors = append(r.Actors, fsm.Sweeper)
		}
	case "declare":
		a := rapid.SampledFrom(append([]fsm.Actor{fsm.Sweeper}, planActors...)).Draw(t, "actor")
		if i := slices.Index(spec.Actors, a); i < 0 {
			spec.Actors = append(spec.Actors, a)
			break
		}
		is := func(b fsm.Actor) bool { return a == b }
		spec.Actors = slices.DeleteFunc(spec.Actors, is)
		for i := range spec.Rows {
			r := &spec.Rows[i]
			r.Actors = slices.DeleteFunc(slices.Clone(r.Actors), is)
		}
	case "forced":
		r := row()
		r.Forced = !r.Forced
	case "within":
		r := row()
		r.Timeout = rapid.SampledFrom([]time.Duration{0, time.Minute, 2 * time.Minute}).Draw(t, "within")
		setManual(&spec)
	case "supersede":
		r := row()
		r.Supersede = !r.Supersede
	case "origin":
		row().Origin = rapid.SampledFrom([][]string{nil, some("origin")}).Draw(t, "origins")
	case "kind":
		s := &spec.States[rapid.IntRange(0, len(spec.States)-1).Draw(t, "state")]
		s.Kind = rapid.SampledFrom(planKinds).Draw(t, "kind")
		if s.Manual = ""; s.Kind == fsm.Transitional {
			s.Manual = "an operator"
		}
	case "state":
		s := fsm.State[string]{Name: "X", Kind: rapid.SampledFrom(planKinds).Draw(t, "kind")}
		if s.Kind == fsm.Transitional {
			s.Manual = "an operator"
		}
		from, to := state("from"), state("to")
		spec.States = append(spec.States, s)
		out := fsm.Move("X", "leaveX", to)
		out.Forced = s.Kind == fsm.Final
		spec.Rows = append(spec.Rows, fsm.Move(from, rapid.SampledFrom([]string{"go", "makeX"}).Draw(t, "event"), "X"), out)
	case "unstate":
		gone := state("gone")
		spec.States = slices.DeleteFunc(spec.States, func(s fsm.State[string]) bool { return s.Name == gone })
		for i := range spec.Rows {
			r := &spec.Rows[i]
			is := func(s string) bool { return s == gone }
			r.From, r.Except = slices.DeleteFunc(slices.Clone(r.From), is), slices.DeleteFunc(slices.Clone(r.Except), is)
		}
		spec.Rows = slices.DeleteFunc(spec.Rows, func(r planRow) bool {
			return len(r.From) == 0 && !r.Any || r.Then == fsm.ThenMove && r.To == gone || slices.Contains(r.Origin, gone)
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

// setManual sets Manual in the transitional states without a deadline.
func setManual(spec *plan) {
	for i := range spec.States {
		s := &spec.States[i]
		late := slices.ContainsFunc(spec.Rows, func(r planRow) bool {
			return r.Timeout > 0 && (slices.Contains(r.From, s.Name) ||
				r.Any && !slices.Contains(r.Except, s.Name) && !(r.Then == fsm.ThenMove && r.To == s.Name))
		})
		if s.Manual = ""; s.Kind == fsm.Transitional && !late {
			s.Manual = "an operator"
		}
	}
}
