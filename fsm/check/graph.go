package check

import (
	"slices"

	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// graph holds the edges between n states, each once.
type graph struct {
	to   [][]int      // successors, in order of add
	from [][]int      // predecessors
	seen []bitset.Set // by source: the successors as a set; nil without any
}

func newGraph(n int) *graph {
	return &graph{to: make([][]int, n), from: make([][]int, n), seen: make([]bitset.Set, n)}
}

func (g *graph) add(from, to int) {
	if g.seen[from] == nil {
		g.seen[from] = bitset.New(len(g.to))
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
	seen := bitset.New(len(g.to))
	var left []int // in the order in which the search leaves the nodes
	var search func(node int)
	search = func(node int) {
		for _, to := range g.to[node] {
			if seen.Add(to) {
				search(to)
			}
		}
		left = append(left, node)
	}
	for root := range g.to {
		if seen.Add(root) {
			search(root)
		}
	}
	taken := bitset.New(len(g.to))
	for _, root := range slices.Backward(left) {
		if n := spread(taken, root, func(node int) []int { return g.from[node] }); n > 0 {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// parts returns the number of parts between which there are no edges.
func (g *graph) parts() (n int) {
	seen := bitset.New(len(g.to))
	for root := range g.to {
		if spread(seen, root, func(node int) []int { return slices.Concat(g.to[node], g.from[node]) }) > 0 {
			n++
		}
	}
	return n
}

// spread adds to a set a node, and the nodes that can be reached from it by way of nodes
// that the set does not contain. It returns how many it has added.
func spread(set bitset.Set, start int, next func(node int) []int) (added int) {
	if !set.Add(start) {
		return 0
	}
	work := []int{start}
	for ; added < len(work); added++ {
		for _, node := range next(work[added]) {
			if set.Add(node) {
				work = append(work, node)
			}
		}
	}
	return added
}
