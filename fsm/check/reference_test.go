package check_test

import (
	"encoding/json"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// pair is an object's state and origin, or an edge.
type pair struct{ a, b string }

// facts computes the report naively, from the document and without the package:
// reachability by the closure of Warshall, components by mutual reachability,
// distances by relaxation until nothing changes.
func facts(d *tabletest.Document) map[string]any {
	var (
		names    []string
		kind     = map[string]string{}
		absent   = map[string]bool{}
		declared = func(s string) bool { return kind[s] != "" }
		rests    = func(s string) bool { return kind[s] != "transitional" }
		ends     = func(s string) bool { return kind[s] == "final" || absent[s] }
	)
	for _, s := range d.States {
		names = append(names, s.Name)
		kind[s.Name], absent[s.Name] = s.Kind, s.Absent
	}
	entries := d.Initials
	if len(entries) == 0 && d.Initial != "" {
		entries = []string{d.Initial}
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(s string) bool { return !declared(s) })

	edges := map[pair]bool{}
	var perTransition [][]string // targets of each transition
	came := origins(d, entries, declared, rests)
	for _, e := range d.Transitions {
		var to []string
		switch {
		case e.Ignore || !declared(e.From):
		case e.Return:
			for _, o := range names {
				if came[pair{e.From, o}] && rests(o) && (e.Origin == nil || slices.Contains(e.Origin, o)) {
					to = append(to, o)
				}
			}
		case declared(e.To) && (e.Origin == nil || slices.ContainsFunc(e.Origin, declared)):
			to = []string{e.To}
		}
		for _, t := range to {
			edges[pair{e.From, t}] = true
		}
		perTransition = append(perTransition, to)
	}

	reach := map[pair]bool{} // in one step or more
	for e := range edges {
		reach[e] = true
	}
	for _, via := range names {
		for _, from := range names {
			for _, to := range names {
				if reach[pair{from, via}] && reach[pair{via, to}] {
					reach[pair{from, to}] = true
				}
			}
		}
	}
	reaches := func(from, to string) bool { return from == to || reach[pair{from, to}] }
	pick := func(pass func(s string) bool) []string {
		list := []string{}
		for _, s := range names {
			if pass(s) {
				list = append(list, s)
			}
		}
		return list
	}
	cannot := func(goal func(string) bool) []string {
		return pick(func(s string) bool {
			return !slices.ContainsFunc(names, func(g string) bool { return goal(g) && reaches(s, g) })
		})
	}
	unreached := func(from []string) []string {
		return pick(func(s string) bool {
			return !slices.ContainsFunc(from, func(f string) bool { return reaches(f, s) })
		})
	}

	distance := map[string]int{}
	initial, first := "", []string{}
	if declared(d.Initial) {
		initial, first = d.Initial, []string{d.Initial}
		distance[initial] = 0
	}
	for changed := true; changed; {
		changed = false
		for e := range edges {
			from, ok := distance[e.a]
			to, known := distance[e.b]
			if ok && (!known || from+1 < to) {
				distance[e.b] = from + 1
				changed = true
			}
		}
	}
	eccentricity := 0
	for _, n := range distance {
		eccentricity = max(eccentricity, n)
	}

	components, largest := 0, 0
	for i, s := range names {
		size, leader := 0, true
		for j, o := range names {
			if reaches(s, o) && reaches(o, s) {
				size++
				leader = leader && j >= i
			}
		}
		largest = max(largest, size)
		if leader {
			components++
		}
	}

	exit := func(s string) bool {
		return slices.ContainsFunc(names, func(o string) bool { return o != s && edges[pair{s, o}] })
	}
	actors := d.Actors
	if actors == nil {
		for _, e := range d.Transitions {
			actors = append(actors, e.Actors...)
			if e.Actor != "" {
				actors = append(actors, e.Actor)
			}
		}
	}
	actors = slices.Clone(actors)
	sort.Strings(actors)
	actors = slices.Compact(actors)
	if actors == nil {
		actors = []string{}
	}
	leavers := func(s string) map[string]bool {
		by := map[string]bool{}
		for i, e := range d.Transitions {
			if e.From != s || !slices.ContainsFunc(perTransition[i], func(to string) bool { return to != s }) {
				continue
			}
			for _, a := range actors {
				if e.Actor == a || slices.Contains(e.Actors, a) || e.Actor == "" && e.Actors == nil {
					by[a] = true
				}
			}
		}
		return by
	}

	kinds, events, cells := map[string]int{}, map[string]bool{}, map[pair]bool{}
	for _, k := range kind {
		kinds[k]++
	}
	var ignored, guarded, loops int
	for _, e := range d.Transitions {
		events[e.Event] = true
		if declared(e.From) {
			cells[pair{e.From, e.Event}] = true
		}
		if e.Ignore {
			ignored++
		} else if e.From == e.To {
			loops++
		}
		if e.Guard != "" {
			guarded++
		}
	}
	choices, done := []any{}, map[pair]bool{}
	for _, e := range d.Transitions {
		cell := pair{e.From, e.Event}
		if done[cell] || e.Ignore {
			continue
		}
		done[cell] = true
		var rows, unguarded int
		var to []string
		for i, f := range d.Transitions {
			if f.From == e.From && f.Event == e.Event && !f.Ignore {
				rows++
				to = append(to, perTransition[i]...)
				if f.Guard == "" && f.Origin == nil {
					unguarded++
				}
			}
		}
		sort.Strings(to)
		if to = slices.Compact(to); rows > 1 && len(to) > 1 {
			choices = append(choices, map[string]any{
				"from": e.From, "event": e.Event, "to": to, "unguarded": unguarded, "all_guarded": unguarded == 0,
			})
		}
	}
	failures := slices.ContainsFunc(names, func(s string) bool { return kind[s] == "error" })
	cannotEnd := []string{}
	if slices.ContainsFunc(names, ends) {
		cannotEnd = cannot(ends)
	}
	if entries == nil {
		entries = []string{}
	}
	return map[string]any{
		"confidence": d.Confidence, "states": len(names), "events": len(events), "actors": actors,
		"transitions": len(d.Transitions), "ignored": ignored, "guarded": guarded, "self_loops": loops,
		"kinds": kinds, "cells_defined": len(cells), "cells_total": len(names) * len(events),
		"initial": initial, "initials": entries,
		"distance_from_initial": distance, "eccentricity": eccentricity,
		"unreachable_from_initial": unreached(first), "unreachable_from_initials": unreached(entries),
		"sccs": components, "largest_scc": largest,
		"traps":               pick(func(s string) bool { return !exit(s) && !ends(s) }),
		"error_without_exit":  pick(func(s string) bool { return !exit(s) && kind[s] == "error" }),
		"final_with_outgoing": pick(func(s string) bool { return exit(s) && kind[s] == "final" }),
		"cannot_reach_rest":   cannot(rests), "cannot_reach_final": cannotEnd,
		"transitional_only_one_actor_can_leave": pick(func(s string) bool {
			return kind[s] == "transitional" && len(leavers(s)) == 1
		}),
		"transitional_without_error_exit": pick(func(s string) bool {
			return kind[s] == "transitional" && failures &&
				!slices.ContainsFunc(names, func(o string) bool { return kind[o] == "error" && edges[pair{s, o}] })
		}),
		"nondeterministic": choices,
	}
}

// origins plays every object through the table: the pairs of state and origin
// that it can be in.
func origins(d *tabletest.Document, entries []string, declared, rests func(string) bool) map[pair]bool {
	came := map[pair]bool{}
	for _, s := range entries {
		came[pair{s, s}] = true
	}
	for n := -1; n != len(came); {
		n = len(came)
		for at := range came {
			for _, e := range d.Transitions {
				if e.From != at.a || e.Ignore || e.Origin != nil && !slices.Contains(e.Origin, at.b) {
					continue
				}
				switch {
				case e.Return && rests(at.b):
					came[pair{at.b, at.b}] = true
				case e.Return || !declared(e.To):
				case rests(e.To):
					came[pair{e.To, e.To}] = true
				default: // from a resting state it is the origin, from another one it stays
					came[pair{e.To, at.b}] = true
				}
			}
		}
	}
	return came
}

func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := tabletest.Random.Draw(t, "doc")
		data, err := json.Marshal(d)
		require.NoError(t, err)
		table, err := fsm.ParseTable(data)
		require.NoError(t, err)
		got, err := json.Marshal(check.Analyze(table))
		require.NoError(t, err)
		want, err := json.Marshal(facts(d))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(decoded(t, want), decoded(t, got)), "%s", data)
	})
}

func decoded(t require.TestingT, data []byte) (m map[string]any) {
	require.NoError(t, json.Unmarshal(data, &m))
	return m
}
