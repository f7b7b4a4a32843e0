package check

import (
	"slices"

	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// graph holds the edges between n states, each once.
type graph struct {
	n    int
	to   [][]int      // successors, in order of add
	from [][]int      // predecessors
	seen []bitset.Set // by source: the successors as a set; nil without any
}

func newGraph(n int) *graph {
	return &graph{n: n, to: make([][]int, n), from: make([][]int, n), seen: make([]bitset.Set, n)}
}

func (g *graph) add(from, to int) {
	if g.seen[from] == nil {
		g.seen[from] = bitset.New(g.n)
	}
	if g.seen[from].Add(to) {
		g.to[from] = append(g.to[from], to)
		g.from[to] = append(g.from[to], from)
	}
}

// distances returns for every node the length of a shortest path from one of the
// starts along next, or -1.
func distances(next [][]int, starts []int) []int {
	d := slices.Repeat([]int{-1}, len(next))
	for _, s := range starts {
		d[s] = 0
	}
	for queue := slices.Clone(starts); len(queue) > 0; queue = queue[1:] {
		for _, t := range next[queue[0]] {
			if d[t] < 0 {
				d[t] = d[queue[0]] + 1
				queue = append(queue, t)
			}
		}
	}
	return d
}

// components returns the sizes of the strongly connected components, by the algorithm of
// Kosaraju: backwards from the node that a search leaves last, the other nodes of its
// component are those that no component has yet.
func (g *graph) components() (sizes []int) {
	type visit struct{ node, next int }
	seen := bitset.New(g.n)
	var left []int // in the order in which the search leaves the nodes
	for root := range g.n {
		if !seen.Add(root) {
			continue
		}
		for way := []visit{{node: root}}; len(way) > 0; {
			at := &way[len(way)-1]
			if at.next == len(g.to[at.node]) {
				left = append(left, at.node)
				way = way[:len(way)-1]
				continue
			}
			to := g.to[at.node][at.next]
			at.next++
			if seen.Add(to) {
				way = append(way, visit{node: to})
			}
		}
	}
	taken := bitset.New(g.n)
	for _, root := range slices.Backward(left) {
		if !taken.Add(root) {
			continue
		}
		component := []int{root}
		for i := 0; i < len(component); i++ {
			for _, from := range g.from[component[i]] {
				if taken.Add(from) {
					component = append(component, from)
				}
			}
		}
		sizes = append(sizes, len(component))
	}
	return sizes
}
