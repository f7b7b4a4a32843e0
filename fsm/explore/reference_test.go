package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// reference explores a graph of states the naive way, with a map and a queue.
type reference struct {
	order []string
	far   map[string]int
	edges map[string][]refEdge
	steps int
}

type refEdge struct {
	fault  bool
	to     string
	action string // a fair one, or empty
	full   bool   // the action waits for room: no step
}

func refer(starts []string, next func(string) []refEdge) *reference {
	r := &reference{far: map[string]int{}, edges: map[string][]refEdge{}}
	visit := func(s string, far int) {
		if _, known := r.far[s]; !known {
			r.far[s] = far
			r.order = append(r.order, s)
		}
	}
	for _, s := range starts {
		visit(s, 0)
	}
	for i := 0; i < len(r.order); i++ {
		s := r.order[i]
		r.edges[s] = next(s)
		for _, e := range r.edges[s] {
			if !e.full {
				r.steps++
				visit(e.to, r.far[s]+1)
			}
		}
	}
	return r
}

// nearest returns the distance of the nearest matching state, or -1.
func (r *reference) nearest(pass func(string) bool) int {
	for _, s := range r.order {
		if pass(s) {
			return r.far[s]
		}
	}
	return -1
}

func (r *reference) depth() int { return r.far[r.order[len(r.order)-1]] }

func (r *reference) stuck(rests func(string) bool) func(string) bool {
	return func(s string) bool {
		return !(rests != nil && rests(s)) && !slices.ContainsFunc(r.edges[s], refEdge.isStep)
	}
}

// lost returns the states that reach no resting state and reach themselves.
func (r *reference) lost(rests func(string) bool) func(string) bool {
	reach := map[string]map[string]bool{}
	for _, s := range r.order {
		seen, queue := map[string]bool{}, []string{s}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, e := range r.edges[at] {
				if e.isStep() && !seen[e.to] {
					seen[e.to] = true
					queue = append(queue, e.to)
				}
			}
		}
		reach[s] = seen
	}
	return func(s string) bool {
		for to := range reach[s] {
			if rests(to) {
				return false
			}
		}
		return !rests(s) && reach[s][s]
	}
}

func (e refEdge) isStep() bool { return !e.fault && !e.full }

// refLead is a property: a state of from is followed by one of to.
type refLead struct{ from, to func(string) bool }

// refRegion is the number of states for which the reference tries all subsets.
const refRegion = 9

// unreached reports whether a fair run can stay forever in states that the property has
// entered and not left. It tries every set of states as the set that the run visits again
// and again. known is false if there are too many sets.
func (r *reference) unreached(p *refLead) (yes, known bool) {
	var region []string
	visit := func(s string) {
		if !p.to(s) && !slices.Contains(region, s) {
			region = append(region, s)
		}
	}
	for _, s := range r.order {
		if p.from(s) {
			visit(s)
		}
	}
	for i := 0; i < len(region); i++ {
		for _, e := range r.edges[region[i]] {
			if !e.full {
				visit(e.to)
			}
		}
	}
	if len(region) > refRegion {
		return false, false
	}
	for set := 1; set < 1<<len(region); set++ {
		var states []string
		for i, s := range region {
			if set&(1<<i) != 0 {
				states = append(states, s)
			}
		}
		if r.connected(states) && r.fair(states) {
			return true, true
		}
	}
	return false, true
}

// connected reports whether every state reaches every other one inside the set.
func (r *reference) connected(set []string) bool {
	for _, s := range set {
		seen := []string{s}
		for i := 0; i < len(seen); i++ {
			for _, e := range r.edges[seen[i]] {
				if e.isStep() && slices.Contains(set, e.to) && !slices.Contains(seen, e.to) {
					seen = append(seen, e.to)
				}
			}
		}
		if len(seen) < len(set) {
			return false
		}
	}
	return true
}

// fair reports whether a run that visits the states of a set forever, and takes every step
// between them, is fair.
func (r *reference) fair(set []string) bool {
	type sight struct {
		wants           map[string]bool
		possible, taken bool
	}
	all := map[string]*sight{}
	for _, s := range set {
		for _, e := range r.edges[s] {
			if e.action == "" {
				continue
			}
			if all[e.action] == nil {
				all[e.action] = &sight{wants: map[string]bool{}}
			}
			a := all[e.action]
			a.wants[s] = true
			a.possible = a.possible || !e.full
			a.taken = a.taken || !e.full && slices.Contains(set, e.to)
		}
	}
	for _, a := range all {
		if len(a.wants) == len(set) && a.possible && !a.taken {
			return false
		}
	}
	return true
}

// agrees fails unless the verdict is that of the reference.
func (r *reference) agrees(t require.TestingT, v *explore.Verdict, bad, rests func(string) bool, lead *refLead) {
	violated, stuck, lost := r.nearest(bad), r.nearest(r.stuck(rests)), -1
	if rests != nil {
		lost = r.nearest(r.lost(rests))
	}
	far := -1
	require.Equal(t, v.Outcome == explore.Violated || v.Outcome == explore.Unreached, v.Property != "", "a property only of what violates it: %s", v)
	require.Equal(t, v.Outcome == explore.Violated, v.Problem != nil)
	require.NoError(t, v.Reason)
	unreached, known := r.unreached(lead)
	if known && max(violated, stuck, lost) < 0 {
		require.Equal(t, unreached, v.Outcome == explore.Unreached, v)
	}
	switch v.Outcome {
	case explore.Unreached:
		require.Equal(t, []int{-1, -1, -1}, []int{violated, stuck, lost}, "others are found first")
		require.Equal(t, len(r.order), v.States)
		return
	case explore.Holds:
		require.Equal(t, []int{-1, -1, -1}, []int{violated, stuck, lost})
		require.Equal(t, len(r.order), v.States)
		require.Equal(t, r.steps, v.Steps)
		require.Equal(t, r.depth(), v.Depth)
		require.Nil(t, v.Trace)
		return
	case explore.Violated:
		far = violated
	case explore.Stuck:
		far = stuck
	case explore.Livelock:
		require.Equal(t, []int{-1, -1}, []int{violated, stuck}, "others are found first")
		require.Equal(t, len(r.order), v.States)
		require.Positive(t, v.Trace.Loop)
		far = lost
	}
	require.GreaterOrEqual(t, far, 0, v)
	require.Len(t, v.Trace.Steps, far+v.Trace.Loop, v)
	require.LessOrEqual(t, v.States, len(r.order))
}

// modelGraph is a model given by its steps.
type modelGraph struct {
	next  [][]refStep
	bad   []bool
	rests []bool
	from  []bool
	to    []bool
	fair  [4]bool // by label
}

type refStep struct {
	fault bool
	to    int
}

func drawGraph(t *rapid.T) *modelGraph {
	n := rapid.IntRange(1, rapid.SampledFrom([]int{5, 10, 40}).Draw(t, "most states")).Draw(t, "states")
	most := rapid.IntRange(1, 4).Draw(t, "steps")
	wrong := rapid.SampledFrom([]int{0, 0, 10, 60}).Draw(t, "one bad in")
	g := &modelGraph{next: make([][]refStep, n), bad: make([]bool, n), rests: make([]bool, n), from: make([]bool, n), to: make([]bool, n)}
	for i := range g.fair {
		g.fair[i] = rapid.IntRange(0, 3).Draw(t, "fair") > 0
	}
	for i := range n {
		for range rapid.IntRange(0, most).Draw(t, "degree") {
			g.next[i] = append(g.next[i], refStep{
				fault: rapid.IntRange(0, 5).Draw(t, "fault") == 0, to: rapid.IntRange(0, n-1).Draw(t, "to"),
			})
		}
		g.bad[i] = wrong > 0 && rapid.IntRange(0, wrong).Draw(t, "bad") == 0
		g.rests[i] = rapid.IntRange(0, 3).Draw(t, "rests") == 0
		g.from[i] = rapid.IntRange(0, 2).Draw(t, "from") == 0
		g.to[i] = rapid.IntRange(0, 2).Draw(t, "to") == 0
	}
	return g
}

func (g *modelGraph) model(live bool) *explore.Model[int] {
	m := &explore.Model[int]{
		Name: "graph", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) {
			for i, e := range g.next[s] {
				step(fmt.Sprint(i), e.fault, e.to)
			}
		},
		Always: map[string]func(int) error{"good": func(s int) error {
			if g.bad[s] {
				return errors.New("bad")
			}
			return nil
		}},
		LeadsTo: map[string]explore.LeadsTo[int]{"arrives": {
			From: func(s int) bool { return g.from[s] }, To: func(s int) bool { return g.to[s] },
		}},
		Fair: func(label string) bool { return g.fair[number(label)] },
	}
	if live {
		m.Rests = func(s int) bool { return g.rests[s] }
	}
	return m
}

func TestModelsAgreeWithReference(t *testing.T) {
	seen := map[explore.Outcome]int{}
	tabletest.CheckUntil(t, every(seen), func(t *rapid.T) {
		g := drawGraph(t)
		r := refer([]string{"0"}, func(s string) (list []refEdge) {
			for i, e := range g.next[number(s)] {
				edge := refEdge{fault: e.fault, to: fmt.Sprint(e.to)}
				if !e.fault && g.fair[i] {
					edge.action = fmt.Sprint(i)
				}
				list = append(list, edge)
			}
			return list
		})
		live := rapid.Bool().Draw(t, "live")
		v, err := g.model(live).Explore(context.Background(), nil)
		require.NoError(t, err)
		var rests func(string) bool
		if live {
			rests = func(s string) bool { return g.rests[number(s)] }
		}
		r.agrees(t, v, func(s string) bool { return g.bad[number(s)] }, rests, &refLead{
			from: func(s string) bool { return g.from[number(s)] }, to: func(s string) bool { return g.to[number(s)] },
		})
		if v.Trace != nil {
			g.runs(t, v.Trace)
			roundTrip(t, v.Trace)
		}
		if v.Outcome == explore.Unreached {
			g.unreached(t, v.Trace)
		}
		seen[v.Outcome]++
	})
	t.Log(seen)
}

// unreached fails unless the trace is a fair run that passes a state of from and then none
// of to.
func (g *modelGraph) unreached(t require.TestingT, tr *explore.Trace) {
	states := []int{0}
	for _, s := range tr.Steps {
		states = append(states, number(s.Locals[0].After))
	}
	entered := false // and not left since
	for _, s := range states {
		entered = !g.to[s] && (entered || g.from[s])
	}
	require.True(t, entered, tr)
	loop := states[len(states)-1-tr.Loop:]
	for _, s := range loop {
		require.False(t, g.to[s], tr)
	}
	for label, fair := range g.fair {
		if !fair {
			continue
		}
		taken := slices.ContainsFunc(tr.Steps[len(tr.Steps)-tr.Loop:], func(s explore.TraceStep) bool { return number(s.Label) == label })
		unwanted := slices.ContainsFunc(loop, func(s int) bool { return label >= len(g.next[s]) || g.next[s][label].fault })
		require.True(t, taken || unwanted, "label %d is fair: %v", label, tr)
	}
}

// runs fails unless the trace is a run of the graph.
func (g *modelGraph) runs(t require.TestingT, tr *explore.Trace) {
	at := 0
	require.Equal(t, "0", tr.Actors[0].Start)
	for i, s := range tr.Steps {
		require.Equal(t, fmt.Sprint(at), s.Locals[0].Before)
		e := g.next[at][number(s.Label)]
		require.Equal(t, e.fault, s.Kind == explore.StepFault)
		if i >= len(tr.Steps)-tr.Loop {
			require.False(t, e.fault)
		}
		require.Equal(t, fmt.Sprint(e.to), s.Locals[0].After)
		at = e.to
	}
	if tr.Loop > 0 {
		require.Equal(t, tr.Steps[len(tr.Steps)-tr.Loop].Locals[0].Before, fmt.Sprint(at))
	}
}

func number(s string) (n int) {
	if _, err := fmt.Sscan(s, &n); err != nil {
		panic(err)
	}
	return n
}

// every reports whether the random systems had every outcome.
func every(seen map[explore.Outcome]int) func() bool {
	return func() bool {
		return min(seen[explore.Holds], seen[explore.Violated], seen[explore.Stuck], seen[explore.Livelock], seen[explore.Unreached]) > 0
	}
}
