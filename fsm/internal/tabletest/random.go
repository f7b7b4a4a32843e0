package tabletest

import (
	"pgregory.net/rapid"
)

// Document is a table as encoding/json reads it.
type Document struct {
	Name        string   `json:"name"`
	Confidence  string   `json:"confidence,omitempty"`
	Initial     string   `json:"initial,omitempty"`
	Initials    []string `json:"initials,omitempty"`
	Actors      []string `json:"actors,omitempty"`
	States      []State  `json:"states"`
	Transitions []Edge   `json:"transitions"`
}

// State is a state of a [Document].
type State struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Absent bool   `json:"absent,omitempty"`

	Target string `json:"target,omitempty"`
	Manual string `json:"manual,omitempty"`
}

// Edge is a transition of a [Document].
type Edge struct {
	From      string   `json:"from"`
	Event     string   `json:"event"`
	Actor     string   `json:"actor,omitempty"`
	Actors    []string `json:"actors,omitempty"`
	To        string   `json:"to,omitempty"`
	Guard     string   `json:"guard,omitempty"`
	Ignore    bool     `json:"ignore,omitempty"`
	Return    bool     `json:"return,omitempty"`
	Origin    []string `json:"origin,omitempty"`
	Forced    bool     `json:"forced,omitempty"`
	Supersede bool     `json:"supersede,omitempty"`
	Within    string   `json:"within,omitempty"`

	Row int `json:"row,omitempty"` // the same number for the transitions of one row
}

// Random draws small documents, sound or not.
var Random = rapid.Custom(func(t *rapid.T) *Document {
	n := rapid.IntRange(0, 7).Draw(t, "states")
	d := &Document{Name: "random", Confidence: rapid.SampledFrom([]string{"", "guess"}).Draw(t, "confidence"), States: []State{}, Transitions: []Edge{}}
	kinds := []string{"stable", "transitional", "transitional", "final", "error"}
	var names []string
	for i := range n {
		s := State{Name: string(rune('A' + i)), Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		s.Absent = s.Kind == "stable" && rapid.IntRange(0, 4).Draw(t, "absent") == 0
		d.States = append(d.States, s)
		names = append(names, s.Name)
	}
	if rapid.IntRange(0, 5).Draw(t, "ghost") == 0 {
		names = append(names, "ghost")
	}
	if len(names) == 0 {
		return d
	}
	if n > 0 {
		d.States = rapid.Permutation(d.States).Draw(t, "order") // not that of the names
	}
	state := rapid.SampledFrom(names)
	actor := rapid.SampledFrom([]string{"x", "y", "z"})
	list := func(g *rapid.Generator[string], label string) []string {
		return rapid.SliceOfNDistinct(g, 1, 2, rapid.ID).Draw(t, label)
	}
	if rapid.IntRange(0, 9).Draw(t, "initial") > 0 {
		d.Initial = state.Draw(t, "initial")
	}
	if len(names) > 1 && rapid.IntRange(0, 4).Draw(t, "several") == 0 {
		d.Initials = list(state, "initials")
	}
	if rapid.Bool().Draw(t, "declare") {
		d.Actors = rapid.SampledFrom([][]string{{"x", "y", "z"}, {"z", "y", "x", "w"}, {"y"}}).Draw(t, "actors")
	}
	for range rapid.IntRange(0, 14).Draw(t, "transitions") {
		e := Edge{From: state.Draw(t, "from"), Event: rapid.SampledFrom([]string{"e", "f", "g"}).Draw(t, "event")}
		switch rapid.IntRange(0, 5).Draw(t, "then") {
		case 0:
			e.Ignore = true
		case 1:
			e.Return = true
		default:
			e.To = state.Draw(t, "to")
		}
		switch rapid.IntRange(0, 3).Draw(t, "by") {
		case 0:
		case 1:
			e.Actors = rapid.SliceOfNDistinct(actor, 2, 2, rapid.ID).Draw(t, "actors")
		default:
			e.Actor = actor.Draw(t, "actor")
		}
		if rapid.IntRange(0, 2).Draw(t, "guarded") == 0 {
			e.Guard = rapid.SampledFrom([]string{"p", "q"}).Draw(t, "guard")
		}
		if len(names) > 1 && rapid.IntRange(0, 4).Draw(t, "conditional") == 0 {
			e.Origin = list(state, "origin")
		}
		e.Forced = rapid.IntRange(0, 5).Draw(t, "forced") == 0
		d.Transitions = append(d.Transitions, e)
	}
	return d
})
