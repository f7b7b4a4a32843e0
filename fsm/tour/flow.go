package tour

import (
	"container/heap"
	"math"
)

// A tour is a bitset.Set of walks that use every way at least once. Seen from a place,
// what comes in beyond what goes out has to go on, over ways that are used again
// or by ending the walk and beginning another one at an entry: a flow, and the
// cheapest flow gives the shortest tour, because the ways and what was added to
// them hang together and so have an Eulerian circuit.

// part is what hangs together of a walk: an independent problem. Its places have
// numbers of their own.
type part struct {
	places  int
	entries []int
	ways    []link
}

// link is a way of a part.
type link struct{ from, to, way int }

// parts splits the walk into what hangs together, in order of the first place.
// Every part has an entry, because every place was reached from one.
func (w *walk) parts() (list []*part) {
	above := make([]int, len(w.places)) // union-find
	for i := range above {
		above[i] = i
	}
	find := func(i int) int {
		for above[i] != i {
			above[i] = above[above[i]]
			i = above[i]
		}
		return i
	}
	for i := range w.ways {
		a, b := find(w.ways[i].from), find(w.ways[i].to)
		above[max(a, b)] = min(a, b)
	}
	of := make(map[int]*part)
	local := make([]int, len(w.places))
	for n := range w.places {
		root := find(n)
		p := of[root]
		if p == nil {
			p = &part{}
			of[root] = p
			list = append(list, p)
		}
		local[n] = p.places
		p.places++
	}
	for _, e := range w.entries {
		p := of[find(e)]
		p.entries = append(p.entries, local[e])
	}
	for i := range w.ways {
		x := &w.ways[i]
		p := of[find(x.from)]
		p.ways = append(p.ways, link{local[x.from], local[x.to], i})
	}
	return list
}

// tour returns the sequences of a shortest tour of the part, each a list of ways,
// and the least number of steps that any tour of as few sequences has.
func (p *part) tour(restart int) (sequences [][]int, bound int) {
	if len(p.ways) == 0 {
		return nil, 0
	}
	// Dearer than any detour: no walk between two places is longer than there are
	// places, and there are no more of them than ways.
	price := int64(len(p.ways)+1) * int64(p.places+1)
	if restart > 0 {
		price = min(price, int64(restart))
	}
	n := newNetwork(p, price)
	n.settle()
	repeats, begins := n.used()
	sequences = p.circuit(repeats, begins)
	return sequences, int(n.dual() - price*int64(len(sequences)-1))
}

// network is the flow problem of a part: its places, and behind them the end of
// a sequence and the beginning of the next one.
type network struct {
	part   *part
	end    int     // where sequences end
	begin  int     // and begin
	need   []int64 // by place: what is left over; below 0: what it takes
	arcs   []arc   // each with its reverse behind it
	out    [][]int // arcs by place
	level  []int   // by place, from where something is left over; -1: not reached
	next   []int   // by place: the arc to look at
	height []int64 // potentials: no arc with room goes down by more than it costs
}

type arc struct {
	to         int
	room, cost int64
	way        int // that it repeats; -1 none
}

const plenty = math.MaxInt32

func newNetwork(p *part, price int64) *network {
	n := &network{
		part: p, end: p.places, begin: p.places + 1,
		need: make([]int64, p.places+2), out: make([][]int, p.places+2), height: make([]int64, p.places+2),
	}
	seen := make(map[[2]int]bool)
	for i, l := range p.ways {
		n.need[l.from]--
		n.need[l.to]++
		if at := [2]int{l.from, l.to}; l.from != l.to && !seen[at] {
			seen[at] = true // of several ways between two places one is enough to go again
			n.add(l.from, l.to, plenty, 1, i)
		}
	}
	for v := range p.places {
		n.add(v, n.end, plenty, 0, -1)
	}
	n.add(n.end, n.begin, 1, 0, -1) // the first sequence costs nothing
	n.add(n.end, n.begin, plenty, price, -1)
	for _, e := range p.entries {
		n.add(n.begin, e, plenty, 0, -1)
	}
	return n
}

func (n *network) add(from, to int, room, cost int64, way int) {
	n.out[from] = append(n.out[from], len(n.arcs))
	n.out[to] = append(n.out[to], len(n.arcs)+1)
	n.arcs = append(n.arcs, arc{to, room, cost, way}, arc{from, 0, -cost, -1})
}

// reduced is the cost of an arc against the potentials.
func (n *network) reduced(from int, a *arc) int64 {
	return a.cost + n.height[from] - n.height[a.to]
}

// settle finds the cheapest flow: as long as something is left over somewhere, it
// is sent on along all of the cheapest paths at once. Every place reaches an end,
// and from there an entry and everything else, so nothing is ever left.
func (n *network) settle() {
	for n.climb() {
		for n.levels() {
			for v := range n.need {
				for n.need[v] > 0 && n.push(v) > 0 {
				}
			}
		}
	}
}

// climb raises the potentials by the distances from where something is left over,
// so that the arcs of the cheapest paths cost nothing. It returns false if
// nothing is left over.
func (n *network) climb() bool {
	far := make([]int64, len(n.need))
	var queue frontier
	for v := range far {
		far[v] = math.MaxInt64
		if n.need[v] > 0 {
			far[v] = 0
			queue = append(queue, reachedAt{v, 0})
		}
	}
	if len(queue) == 0 {
		return false
	}
	for len(queue) > 0 {
		at := heap.Pop(&queue).(reachedAt)
		if at.far > far[at.place] {
			continue
		}
		for _, i := range n.out[at.place] {
			a := &n.arcs[i]
			if a.room == 0 {
				continue
			}
			if d := at.far + n.reduced(at.place, a); d < far[a.to] {
				far[a.to] = d
				heap.Push(&queue, reachedAt{a.to, d})
			}
		}
	}
	// Nobody needs to be higher than the nearest place that takes something.
	nearest := int64(math.MaxInt64)
	for v := range far {
		if n.need[v] < 0 {
			nearest = min(nearest, far[v])
		}
	}
	for v := range far {
		n.height[v] += min(far[v], nearest)
	}
	return true
}

// levels numbers the places by the arcs that cost nothing, from where something
// is left over, and reports whether a place is reached that takes it.
func (n *network) levels() bool {
	n.level, n.next = make([]int, len(n.need)), make([]int, len(n.need))
	var queue []int
	for v := range n.level {
		n.level[v] = -1
		if n.need[v] > 0 {
			n.level[v] = 0
			queue = append(queue, v)
		}
	}
	found := false
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		found = found || n.need[v] < 0
		for _, k := range n.out[v] {
			if a := &n.arcs[k]; a.room > 0 && n.level[a.to] < 0 && n.reduced(v, a) == 0 {
				n.level[a.to] = n.level[v] + 1
				queue = append(queue, a.to)
			}
		}
	}
	return found
}

// push sends something from a place along one path up the levels to a place that
// takes it, and returns how much: nothing if there is no path any more. It keeps
// the path itself instead of recursing: a path is as long as the table.
func (n *network) push(from int) int64 {
	var path []int // arcs
	v := from
	for n.need[v] >= 0 {
		if n.next[v] < len(n.out[v]) {
			k := n.out[v][n.next[v]]
			if a := &n.arcs[k]; a.room > 0 && n.level[a.to] == n.level[v]+1 && n.reduced(v, a) == 0 {
				path = append(path, k)
				v = a.to
			} else {
				n.next[v]++
			}
			continue
		}
		if len(path) == 0 {
			return 0
		}
		v = n.arcs[path[len(path)-1]^1].to // a dead end: one back
		path = path[:len(path)-1]
		n.next[v]++
	}
	much := min(n.need[from], -n.need[v])
	for _, k := range path {
		much = min(much, n.arcs[k].room)
	}
	for _, k := range path {
		n.arcs[k].room -= much
		n.arcs[k^1].room += much
	}
	n.need[from] -= much
	n.need[v] += much
	return much
}

// used returns how often each way is repeated, and how many sequences end at
// each place, and begin there.
func (n *network) used() (repeats []int, t turns) {
	repeats = make([]int, len(n.part.ways))
	t.ends, t.begins = make([]int, n.part.places), make([]int, n.part.places)
	for k := 0; k < len(n.arcs); k += 2 {
		flow, from, to := int(n.arcs[k^1].room), n.arcs[k^1].to, n.arcs[k].to
		switch {
		case n.arcs[k].way >= 0:
			repeats[n.arcs[k].way] = flow
		case to == n.end:
			t.ends[from] += flow
		case from == n.begin:
			t.begins[to] += flow
		}
	}
	return repeats, t
}

// dual is the least that any tour costs, in steps, with the price of every
// sequence but the first: what the potentials prove. Summed along a closed walk
// they cancel, and no arc costs less than nothing against them but the one that
// may be used once only.
func (n *network) dual() int64 {
	var sum int64
	for _, l := range n.part.ways {
		sum += 1 + n.height[l.from] - n.height[l.to]
	}
	return sum + min(0, n.height[n.end]-n.height[n.begin])
}

// reachedAt and frontier are a heap of places by distance.
type reachedAt struct {
	place int
	far   int64
}

type frontier []reachedAt

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f[i].far < f[j].far }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(reachedAt)) }
func (f *frontier) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
