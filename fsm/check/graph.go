package check

import "github.com/interlock-go/interlock/fsm/internal/bitset"

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
	d := make([]int, len(next))
	for i := range d {
		d[i] = -1
	}
	var queue []int
	for _, s := range starts {
		if d[s] < 0 {
			d[s] = 0
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, t := range next[s] {
			if d[t] < 0 {
				d[t] = d[s] + 1
				queue = append(queue, t)
			}
		}
	}
	return d
}

// components returns the sizes of the strongly connected components: Tarjan's
// algorithm without recursion.
func (g *graph) components() (sizes []int) {
	const unseen = 0
	var (
		order   = make([]int, g.n) // in which the search entered the nodes, from 1
		low     = make([]int, g.n) // the lowest order that is known to be on a cycle with the node
		stacked = make([]bool, g.n)
		next    = make([]int, g.n) // index of the next successor
		stack   []int              // entered, component incomplete
		way     []int              // path from the root to here
		entered int
	)
	enter := func(s int) {
		entered++
		order[s], low[s], stacked[s] = entered, entered, true
		stack, way = append(stack, s), append(way, s)
	}
	for root := range g.n {
		if order[root] != unseen {
			continue
		}
		enter(root)
		for len(way) > 0 {
			s := way[len(way)-1]
			if next[s] < len(g.to[s]) {
				t := g.to[s][next[s]]
				next[s]++
				switch {
				case order[t] == unseen:
					enter(t)
				case stacked[t]:
					low[s] = min(low[s], order[t])
				}
				continue
			}
			way = way[:len(way)-1]
			if len(way) > 0 {
				parent := way[len(way)-1]
				low[parent] = min(low[parent], low[s])
			}
			if low[s] == order[s] {
				size := 0
				for {
					t := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					stacked[t] = false
					size++
					if t == s {
						break
					}
				}
				sizes = append(sizes, size)
			}
		}
	}
	return sizes
}
