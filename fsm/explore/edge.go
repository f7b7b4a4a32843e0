package explore

import (
	"iter"
	"slices"
)

// edge is a step from one state to another, or a fair send that waits for room, from a
// state to itself.
type edge struct{ from, to, mark uint32 }

// The mark of an edge is the number of its fair action, or 0, with these bits.
const (
	isFault = 1 << 31
	waits   = 1 << 30
)

// isStep reports whether the edge is a step without a fault.
func (e edge) isStep() bool { return isStep(e.mark) }

func isStep(mark uint32) bool { return mark < waits }

func (e edge) fair() uint32 { return e.mark &^ (isFault | waits) }

// firstEdge returns the place of the first edge of a state. The edges of the state before
// end there.
func (s *search) firstEdge(id uint32) uint32 { return s.firsts.at(int(id))[0] }

// edge returns the edge of a state at a place.
func (s *search) edge(from, place uint32) edge {
	at := s.edges.at(int(place))
	e := edge{from: from, to: at[0]}
	if len(at) > 1 {
		e.mark = at[1]
	}
	return e
}

func (s *search) edgesOf(id uint32) iter.Seq[edge] {
	return func(yield func(edge) bool) {
		for i := s.firstEdge(id); i < s.firstEdge(id+1); i++ {
			if !yield(s.edge(id, i)) {
				return
			}
		}
	}
}

// way returns a shortest way from a state to the first edge that ends it, or nil if there
// is none. It takes the steps without faults that pass.
func (s *search) way(from uint32, pass, ends func(edge) bool) (way []edge) {
	by := map[uint32]edge{}
	for work := []uint32{from}; len(work) > 0; work = work[1:] {
		for e := range s.edgesOf(work[0]) {
			if !e.isStep() || !pass(e) {
				continue
			}
			if ends(e) {
				for way = []edge{e}; e.from != from; way = append(way, e) {
					e = by[e.from]
				}
				slices.Reverse(way)
				return way
			}
			if _, known := by[e.to]; !known {
				by[e.to] = e
				work = append(work, e.to)
			}
		}
	}
	return nil
}
