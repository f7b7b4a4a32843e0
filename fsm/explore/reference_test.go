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
	fault bool
	to    string
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
		r.steps += len(r.edges[s])
		for _, e := range r.edges[s] {
			visit(e.to, r.far[s]+1)
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
		return !(rests != nil && rests(s)) && !slices.ContainsFunc(r.edges[s], func(e refEdge) bool { return !e.fault })
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
				if !e.fault && !seen[e.to] {
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

// agrees fails unless the verdict is that of the reference.
func (r *reference) agrees(t require.TestingT, v *explore.Verdict, bad, rests func(string) bool) {
	violated, stuck, lost := r.nearest(bad), r.nearest(r.stuck(rests)), -1
	if rests != nil {
		lost = r.nearest(r.lost(rests))
	}
	far := -1
	require.Equal(t, v.Outcome == explore.Violated, v.Property != "", "a property only of what violates it: %s", v)
	require.Equal(t, v.Outcome == explore.Violated, v.Problem != nil)
	require.NoError(t, v.Reason)
	switch v.Outcome {
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
}

type refStep struct {
	fault bool
	to    int
}

func drawGraph(t *rapid.T) *modelGraph {
	n := rapid.IntRange(1, 40).Draw(t, "states")
	most := rapid.IntRange(1, 4).Draw(t, "steps")
	wrong := rapid.SampledFrom([]int{0, 0, 10, 60}).Draw(t, "one bad in")
	g := &modelGraph{next: make([][]refStep, n), bad: make([]bool, n), rests: make([]bool, n)}
	for i := range n {
		for range rapid.IntRange(0, most).Draw(t, "degree") {
			g.next[i] = append(g.next[i], refStep{
				fault: rapid.IntRange(0, 5).Draw(t, "fault") == 0, to: rapid.IntRange(0, n-1).Draw(t, "to"),
			})
		}
		g.bad[i] = wrong > 0 && rapid.IntRange(0, wrong).Draw(t, "bad") == 0
		g.rests[i] = rapid.IntRange(0, 3).Draw(t, "rests") == 0
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
			for _, e := range g.next[number(s)] {
				list = append(list, refEdge{e.fault, fmt.Sprint(e.to)})
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
		r.agrees(t, v, func(s string) bool { return g.bad[number(s)] }, rests)
		if v.Trace != nil {
			g.runs(t, v.Trace)
			roundTrip(t, v.Trace)
		}
		seen[v.Outcome]++
	})
	t.Log(seen)
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
		return min(seen[explore.Holds], seen[explore.Violated], seen[explore.Stuck], seen[explore.Livelock]) > 0
	}
}
