package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// gates is the payload of random machines. Each bit of open is a guard that permits.
type gates struct{ open uint8 }

const gateCount = 4

var (
	gateNames = [gateCount]string{"north", "east", "south", "west"}
	errGate   = [gateCount]error{
		errors.New("north is shut"), errors.New("east is shut"), errors.New("south is shut"), errors.New("west is shut"),
	}
	barrier = [gateCount]fsm.Guard[gates]{barrierOf("north"), barrierOf("east"), barrierOf("south"), barrierOf("west")}
)

func barrierOf(name string) fsm.Guard[gates] {
	return fsm.When(name, func(_ context.Context, _, p *gates) error { return p.check(name) })
}

func (p *gates) check(name string) error {
	i := slices.Index(gateNames[:], name)
	if p == nil || p.open>>i&1 == 0 {
		return errGate[i]
	}
	return nil
}

// offered and taken count the rows that were drawn, and those that New accepted.
var offered, taken atomic.Int64

// specs draws a sound Spec over numbered states and events. It begins with a tree that
// reaches every state, and a row out of each state. It then draws further rows and
// keeps those that New accepts.
func specs() *rapid.Generator[fsm.Spec[int, int]] {
	return rapid.Custom(func(t *rapid.T) fsm.Spec[int, int] {
		spec := skeleton(t)
		for range rapid.IntRange(0, 14).Draw(t, "rows") {
			grown := spec
			at := rapid.IntRange(0, len(spec.Rows)).Draw(t, "place")
			grown.Rows = slices.Insert(slices.Clone(spec.Rows), at, anyRow(t, &spec))
			offered.Add(1)
			if _, err := fsm.New[gates](grown); err == nil {
				taken.Add(1)
				spec = grown
			}
		}
		return spec
	})
}

func skeleton(t *rapid.T) fsm.Spec[int, int] {
	spec := fsm.Spec[int, int]{Name: "drawn"}
	for i := range rapid.IntRange(1, 4).Draw(t, "actors") {
		spec.Actors = append(spec.Actors, fsm.Actor(fmt.Sprintf("actor%d", i)))
	}
	if rapid.IntRange(0, 9).Draw(t, "crowd") == 0 {
		for i := len(spec.Actors); i < fsm.MaxActors-1; i++ {
			spec.Actors = append(spec.Actors, fsm.Actor(fmt.Sprintf("actor%d", i)))
		}
	}
	n := rapid.IntRange(2, 7).Draw(t, "states")
	kinds := rapid.SampledFrom([]fsm.Kind{
		fsm.Stable, fsm.Stable, fsm.Transitional, fsm.Transitional, fsm.Transitional, fsm.Failed, fsm.Final, fsm.Absent,
	})
	for i := range n {
		spec.States = append(spec.States, fsm.State[int]{Name: i, Kind: kinds.Draw(t, "kind")})
	}
	event := 0
	add := func(r fsm.Row[int, int]) {
		r.Event = event // another for each row, so that no row is ambiguous
		event++
		r.Forced = spec.States[r.From[0]].Kind == fsm.Final
		spec.Rows = append(spec.Rows, r)
	}
	for i := 1; i < n; i++ {
		add(fsm.Move(rapid.IntRange(0, i-1).Draw(t, "parent"), 0, i))
	}
	for i, s := range spec.States {
		to := (i + rapid.IntRange(1, n-1).Draw(t, "exit")) % n
		switch {
		case s.Kind == fsm.Transitional && rapid.Bool().Draw(t, "late"):
			add(fsm.Move(i, 0, to).After(time.Minute))
		case s.Kind == fsm.Transitional:
			spec.States[i].Manual = "worker"
			add(fsm.Move(i, 0, to))
		default:
			add(fsm.Move(i, 0, to))
		}
	}
	return spec
}

// anyRow draws a row that New may refuse.
func anyRow(t *rapid.T, spec *fsm.Spec[int, int]) fsm.Row[int, int] {
	state := rapid.IntRange(0, len(spec.States)-1)
	chance := func(percent int, what string) bool { return rapid.IntRange(0, 99).Draw(t, what) < percent }
	some := func(what string) []int { return rapid.SliceOfNDistinct(state, 1, 2, rapid.ID[int]).Draw(t, what) }
	r := fsm.Row[int, int]{
		Event: rapid.IntRange(0, 5).Draw(t, "event"),
		To:    state.Draw(t, "to"),
		Then:  rapid.SampledFrom([]fsm.Then{fsm.ThenMove, fsm.ThenMove, fsm.ThenReturn, fsm.ThenIgnore}).Draw(t, "then"),
	}
	var transitional []int
	for _, s := range spec.States {
		if s.Kind == fsm.Transitional {
			transitional = append(transitional, s.Name)
		}
	}
	switch {
	case chance(10, "any"):
		r.Any = true
		if chance(50, "except") {
			r.Except = some("except")
		}
	case len(transitional) > 0 && (r.Then == fsm.ThenReturn || chance(40, "underway")):
		r.From = []int{rapid.SampledFrom(transitional).Draw(t, "from")}
	default:
		r.From = some("from")
	}
	if chance(35, "conditional") {
		r.Origin = some("origin")
	}
	if chance(60, "actors") {
		r.Actors = rapid.SliceOfNDistinct(rapid.SampledFrom(spec.Actors), 1, 2, rapid.ID[fsm.Actor]).Draw(t, "actors")
	}
	if chance(50, "guarded") {
		r.Guard = barrier[rapid.IntRange(0, gateCount-1).Draw(t, "guard")]
	}
	if chance(50, "beside") { // another row of a cell, which would be rare otherwise
		other := rapid.SampledFrom(spec.Rows).Draw(t, "other")
		if !other.Any {
			r.Any, r.Except, r.From, r.Event = false, nil, other.From[:1], other.Event
			r.Guard = barrier[rapid.IntRange(0, gateCount-1).Draw(t, "guard")]
			if rapid.Bool().Draw(t, "plain") {
				r.Actors, r.Origin = nil, nil
			}
		}
	}
	r.Forced = rapid.IntRange(0, 7).Draw(t, "forced") == 7
	if r.Then != fsm.ThenIgnore && chance(10, "deadline") {
		r.Timeout = time.Hour
	}
	return r
}

// typed converts a Spec over numbers to other types.
func typed[S, E comparable](from fsm.Spec[int, int], state func(int) S, event func(int) E) fsm.Spec[S, E] {
	list := func(in []int) (out []S) {
		for _, s := range in {
			out = append(out, state(s))
		}
		return out
	}
	spec := fsm.Spec[S, E]{Name: from.Name, Initial: state(from.Initial), Actors: from.Actors}
	for _, s := range from.States {
		spec.States = append(spec.States, fsm.State[S]{Name: state(s.Name), Kind: s.Kind, Manual: s.Manual})
	}
	for _, r := range from.Rows {
		spec.Rows = append(spec.Rows, fsm.Row[S, E]{
			From: list(r.From), Any: r.Any, Except: list(r.Except), Origin: list(r.Origin), Event: event(r.Event),
			Actors: r.Actors, Guard: r.Guard, To: state(r.To), Then: r.Then, Forced: r.Forced, Timeout: r.Timeout,
		})
	}
	return spec
}
