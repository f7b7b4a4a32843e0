package tour_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
	"github.com/interlock-go/interlock/fsm/tour"
)

// pair is an object's state and origin, or an edge.
type pair struct{ a, b string }

// naive plays a document as its rows stand there, one request after another.
type naive struct {
	*tabletest.Document
	actors []string
	kind   map[string]string
}

func newNaive(d *tabletest.Document) *naive {
	n := &naive{Document: d, actors: d.Actors, kind: map[string]string{}}
	for _, s := range d.States {
		n.kind[s.Name] = s.Kind
	}
	if n.actors == nil {
		for _, e := range d.Transitions {
			for _, a := range append(slices.Clone(e.Actors), e.Actor) {
				if a != "" && !slices.Contains(n.actors, a) {
					n.actors = append(n.actors, a)
				}
			}
		}
	}
	if len(n.actors) == 0 {
		n.actors = []string{""}
	}
	return n
}

func (n *naive) entries() []pair {
	list := n.Initials
	if len(list) == 0 {
		list = []string{n.Initial}
	}
	var at []pair
	for _, s := range list {
		if n.kind[s] != "" {
			at = append(at, pair{s, s})
		}
	}
	return at
}

// fire returns the transition that a request takes, -1 and the refusal if none,
// where only these guards agree.
func (n *naive) fire(at pair, event, actor string, force bool, agree []string) (row int, to pair, refusal error) {
	refusal = fsm.ErrNotAllowed
	var cell, mine, byForce, guarded bool
	for i, e := range n.Transitions {
		if e.From != at.a || e.Event != event || !e.Ignore && !e.Return && n.kind[e.To] == "" {
			continue
		}
		if e.Origin != nil && !slices.ContainsFunc(e.Origin, func(o string) bool { return n.kind[o] != "" }) {
			continue // no object has such an origin
		}
		cell = true
		declared := n.actors[0] == "" || slices.Contains(n.actors, actor) // without actors every row is for every actor
		if e.Actor != "" && e.Actor != actor || e.Actors != nil && !slices.Contains(e.Actors, actor) || !declared {
			continue
		}
		mine = true
		if e.Origin != nil && !slices.Contains(e.Origin, at.b) || e.Return && n.kind[at.b] == "transitional" {
			continue
		}
		if e.Forced && !force {
			byForce = true
			continue
		}
		if e.Guard != "" && !slices.Contains(agree, e.Guard) {
			guarded = true
			continue
		}
		switch {
		case e.Ignore:
			return i, at, nil
		case e.Return:
			return i, pair{at.b, at.b}, nil
		case n.kind[e.To] != "transitional":
			return i, pair{e.To, e.To}, nil
		case n.kind[at.a] != "transitional":
			return i, pair{e.To, at.a}, nil
		}
		return i, pair{e.To, at.b}, nil
	}
	switch {
	case guarded:
		refusal = fsm.ErrGuard
	case byForce:
		refusal = fsm.ErrForcedOnly
	case cell && !mine:
		refusal = fsm.ErrWrongActor
	}
	return -1, at, refusal
}

// asked is one request in one status.
type asked struct {
	at           pair
	event, actor string
	force        bool
}

// transition is a row in a status.
type transition struct {
	at  pair
	row int
}

// play tries everything in every status that is reached. It returns what fires,
// by transition where it leads, and what is refused if every guard refuses.
func (n *naive) play() (fires map[transition]pair, refused map[asked]error) {
	fires, refused = map[transition]pair{}, map[asked]error{}
	events := map[string]bool{}
	for _, e := range n.Transitions {
		events[e.Event] = true
	}
	seen := map[pair]bool{}
	for queue := n.entries(); len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		for event := range events {
			for _, actor := range n.actors {
				for _, force := range []bool{false, true} {
					for _, agree := range [][]string{nil, {"p"}, {"q"}, {"p", "q"}} {
						row, to, refusal := n.fire(at, event, actor, force, agree)
						switch {
						case refusal == nil:
							fires[transition{at, row}] = to
							queue = append(queue, to)
						case agree == nil:
							refused[asked{at: at, event: event, actor: actor, force: force}] = refusal
						}
					}
				}
			}
		}
	}
	return fires, refused
}

func tourOf(t require.TestingT, d *tabletest.Document) (*fsm.Table, *tour.Tour) {
	data, err := json.Marshal(d)
	require.NoError(t, err)
	table, err := fsm.ParseTable(data)
	require.NoError(t, err)
	plan, err := tour.New(table, nil)
	require.NoError(t, err)
	return table, plan
}

// Everything about a tour and the refusals, on random tables, sound or not.
func TestTourAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := tabletest.Random.Draw(t, "doc")
		n := newNaive(d)
		fires, refused := n.play()
		table, plan := tourOf(t, d)
		require.Len(t, table.Rows, len(d.Transitions))

		covered := map[transition]bool{}
		steps := 0
		for _, sequence := range plan.Sequences {
			require.NotEmpty(t, sequence)
			require.Contains(t, n.entries(), pair{sequence[0].From, sequence[0].Origin})
			for i, s := range sequence {
				at, to := pair{s.From, s.Origin}, pair{s.To, s.ToOrigin}
				if i > 0 {
					require.Equal(t, pair{sequence[i-1].To, sequence[i-1].ToOrigin}, at)
				}
				for _, g := range s.Refuse {
					require.NotContains(t, s.Agree, g)
				}
				row, leads, refusal := n.fire(at, s.Event, string(s.Actor), s.Force, s.Agree)
				require.NoError(t, refusal, s)
				require.Equal(t, s.Row, row)
				require.Equal(t, leads, to)
				require.Equal(t, d.Transitions[row].Ignore, s.Ignored)
				covered[transition{at, row}] = true
				steps++
			}
		}
		for f := range fires {
			require.Contains(t, covered, f)
		}
		require.Len(t, covered, len(fires))
		require.Equal(t, len(fires), plan.Transitions)
		require.Equal(t, steps, plan.Steps)

		var missed, wanted []int
		for _, m := range plan.Missed {
			require.Equal(t, d.Transitions[m.Row].From, m.From)
			missed = append(missed, m.Row)
		}
		for i := range d.Transitions {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(fires)), func(f transition) bool { return f.row == i }) {
				wanted = append(wanted, i)
			}
		}
		require.Equal(t, wanted, missed)

		all, err := tour.Negatives(table)
		require.NoError(t, err)
		byForce := slices.ContainsFunc(d.Transitions, func(e tabletest.Edge) bool { return e.Forced })
		maps.DeleteFunc(refused, func(a asked, _ error) bool { return a.force && !byForce })
		found := map[asked]error{}
		for x := range all {
			at := asked{at: pair{x.State, x.Origin}, event: x.Event, actor: string(x.Actor), force: x.Force}
			require.NotContains(t, found, at, "twice")
			found[at] = x.Err
			for _, g := range x.Refuse {
				require.Contains(t, []string{"p", "q"}, g)
			}
			require.Equal(t, errors.Is(x.Err, fsm.ErrGuard), len(x.Refuse) > 0)
		}
		require.Equal(t, refused, found)
	})
}
