package explore

import (
	"context"
	"math/bits"
	"sync/atomic"
)

// finish looks for states from which the system cannot come to rest, when all
// are known. It cannot from all states of a strongly connected component of the
// edges without faults, if none of them rests and no edge leads to another
// component. Whatever cannot come to rest leads to such a component.
func (s *search[K]) finish(ctx context.Context) error {
	s.count()
	if !s.live {
		s.holds()
		return nil
	}
	for i := range s.shards { // nobody looks for states any more
		s.shards[i].table = nil
	}
	s.tasks, s.batch = nil, nil
	if all, err := s.spread(ctx); err != nil || all {
		if err != nil {
			return s.stop(err)
		}
		s.holds()
		return nil
	}
	c := newComponents(s)
	if err := c.run(ctx); err != nil {
		return s.stop(err)
	}
	id := c.nearest()
	if id == nobody {
		s.holds()
		return nil
	}
	return s.found(Livelock, id)
}

// spread marks states from which a step leads to one that rests, or is marked, as
// if they rested themselves, until all are. It gives up when that goes slowly: for
// most systems it is much faster than components, and for a long chain of states
// much slower. all: every state can come to rest.
//
// Each worker marks the states of its shard and reads the marks of others. Whether
// it sees one that is made meanwhile is chance, which decides when a mark is made
// and not whether: what follows finds the same from any marks that are true.
func (s *search[K]) spread(ctx context.Context) (all bool, err error) {
	const slow = 32 // the part of what is left that must be marked in one go
	for {
		var left, marked [shards]int
		err := parallel(ctx, s.workers, shards, func(_, i int) { left[i], marked[i] = s.spreadShard(i) })
		if err != nil {
			return false, err
		}
		open, done := 0, 0
		for i := range shards {
			open, done = open+left[i], done+marked[i]
		}
		if open == 0 || done*slow < open {
			return open == 0, nil
		}
	}
}

// spreadShard goes from the latest states back, for steps mostly lead to later
// ones. It returns how many have no mark, and how many it has marked.
func (s *search[K]) spreadShard(at int) (left, marked int) {
	sh := &s.shards[at]
	for place := sh.n; place > 0; {
		place--
		if sh.resting(place) {
			continue
		}
		if s.leadsToRest(sh.nodes.at(place).edges) {
			atomic.OrUint64(&sh.rests[place/64], 1<<(place%64))
			marked++
		} else {
			left++
		}
	}
	return left, marked
}

// leadsToRest reports whether one of the edges from there on leads to a mark.
func (s *search[K]) leadsToRest(edges uint32) bool {
	for ; edges != 0; edges++ {
		edge := *s.edges.at(uint64(edges) - 1)
		to := edge &^ lastEdge
		place := placeOf(to)
		if atomic.LoadUint64(&s.shards[shardOf(to)].rests[place/64])&(1<<(place%64)) != 0 {
			return true
		}
		if edge != to {
			return false
		}
	}
	return false
}

func (s *search[K]) holds() {
	struck := make([]bool, len(s.t.sys.faults))
	for _, w := range s.hands {
		for i, happened := range w.x.struck {
			struck[i] = struck[i] || happened
		}
	}
	s.verdict.Outcome, s.verdict.Unused = Holds, s.t.unused(struck)
}

// components finds the strongly connected components by the algorithm of Pearce,
// a variant of Tarjan's that needs one number for each state beside a stack; with
// a stack of its own instead of recursion. Edges are used up: each node's edges
// are advanced as they are looked at.
type components[K packed] struct {
	s *search[K]
	// rank is, by id: 0 not visited; below finished, the lowest rank known to be
	// reached from here; from finished on, the component, which is complete.
	rank  []uint32
	root  bitset // no lower rank is known to be reached from here
	rests bitset // a resting state is known to be reached from here
	exits bitset // an edge leads to another component
	// stack holds from the front the way from where the visit began to here, and
	// from the back what was visited and waits for the root of its component.
	stack       []uint32
	front, back int
	visited     uint32 // and not in a complete component, plus one
	component   uint32 // name of the next
	lost        [shards]uint32
}

const finished = 1 << 31

type bitset []uint64

func (b bitset) has(i uint32) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bitset) add(i uint32)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) remove(i uint32)   { b[i/64] &^= 1 << (i % 64) }

// idSpace is one more than the greatest id can be.
func (s *search[K]) idSpace() int {
	n := uint32(0)
	for i := range s.shards {
		n = max(n, s.shards[i].n)
	}
	return int(n) << shardBits
}

// finishBytes is what components of so many states take.
func (s *search[K]) finishBytes(states int) int64 {
	ids := int64(s.idSpace())
	return 4*ids + 3*8*(ids/64+1) + 4*int64(states)
}

func newComponents[K packed](s *search[K]) *components[K] {
	ids := s.idSpace()
	c := &components[K]{
		s: s, rank: make([]uint32, ids), stack: make([]uint32, s.verdict.States),
		root: make(bitset, ids/64+1), rests: make(bitset, ids/64+1), exits: make(bitset, ids/64+1),
		visited: 1, component: nobody - 1,
	}
	c.back = len(c.stack)
	for i := range c.lost {
		c.lost[i] = nobody
	}
	for i := range s.shards {
		for at, w := range s.shards[i].rests {
			for ; w != 0; w &= w - 1 {
				c.rests.add(idOf(i, uint32(at*64+bits.TrailingZeros64(w))))
			}
		}
	}
	return c
}

func (c *components[K]) run(ctx context.Context) error {
	const between = 1 << 16 // looks at the context
	steps := 0
	for i := range c.s.shards {
		for place := range c.s.shards[i].n {
			if id := idOf(i, place); c.rank[id] == 0 {
				c.enter(id)
			}
			for c.front > 0 {
				if steps++; steps%between == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				c.step()
			}
		}
	}
	return nil
}

func (c *components[K]) enter(id uint32) {
	c.rank[id] = c.visited
	c.visited++
	c.root.add(id)
	c.stack[c.front] = id
	c.front++
}

// step follows one edge of the state at the end of the way, or leaves it.
func (c *components[K]) step() {
	id := c.stack[c.front-1]
	n := c.s.node(id)
	for n.edges != 0 {
		edge := *c.s.edges.at(uint64(n.edges) - 1)
		to := edge &^ lastEdge
		switch rank := c.rank[to]; {
		case rank == 0:
			c.enter(to) // and look at the edge again when that is left
			return
		case rank >= finished:
			c.exits.add(id)
			if c.rests.has(to) {
				c.rests.add(id)
			}
		case rank < c.rank[id]:
			c.rank[id] = rank
			c.root.remove(id)
		}
		if n.edges++; edge != to {
			n.edges = 0
		}
	}
	c.front--
	if c.root.has(id) {
		c.complete(id)
		return
	}
	c.back--
	c.stack[c.back] = id
}

// complete closes the component of a root.
func (c *components[K]) complete(root uint32) {
	from := c.back
	rests, exits := c.rests.has(root), c.exits.has(root)
	for ; c.back < len(c.stack) && c.rank[c.stack[c.back]] >= c.rank[root]; c.back++ {
		id := c.stack[c.back]
		rests, exits = rests || c.rests.has(id), exits || c.exits.has(id)
	}
	c.leave(root, rests, exits)
	for _, id := range c.stack[from:c.back] {
		c.leave(id, rests, exits)
	}
	c.component--
}

func (c *components[K]) leave(id uint32, rests, exits bool) {
	c.rank[id] = c.component
	c.visited--
	switch {
	case rests:
		c.rests.add(id)
	case !exits: // in a shard, a lower place is never farther from the start
		c.lost[shardOf(id)] = min(c.lost[shardOf(id)], id)
	}
}

// nearest returns of the states that are lost one that is not farther from the
// start than any other.
func (c *components[K]) nearest() uint32 {
	best, length := uint32(nobody), 0
	for _, id := range c.lost {
		if id == nobody {
			continue
		}
		n := 0
		for at := id; at != nobody; at = c.s.node(at).parent {
			n++
		}
		if best == nobody || n < length {
			best, length = id, n
		}
	}
	return best
}
