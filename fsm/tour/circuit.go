package tour

// turns says how many sequences end and begin at each place.
type turns struct{ ends, begins []int }

// circuit walks over every way once and as often again as it is repeated, and
// returns the sequences into which the end of one and the beginning of another
// cut the walk. REQUIRES: of every place as much goes out as comes in, turns
// included, and everything hangs together.
func (p *part) circuit(repeats []int, t turns) [][]int {
	// The turn is a place of its own, as in the network.
	const turn = -1
	hub := p.places
	type step struct{ to, way int }
	out := make([][]step, p.places+1)
	start := p.entries[0]
	// Taken from behind: ways in order of declaration, and an end comes last.
	for v := range p.places {
		for range t.ends[v] {
			out[v] = append(out[v], step{hub, turn})
		}
		for range t.begins[v] {
			out[hub] = append(out[hub], step{v, turn})
			start = hub
		}
	}
	for i := len(p.ways) - 1; i >= 0; i-- {
		l := p.ways[i]
		for range 1 + repeats[i] {
			out[l.from] = append(out[l.from], step{l.to, l.way})
		}
	}
	// Hierholzer: go on until it does not, and put down what was walked on the way
	// back; a place from which it goes on is gone on from first.
	way := []step{{start, turn}}
	var walked []int
	for len(way) > 0 {
		at := way[len(way)-1]
		if rest := out[at.to]; len(rest) > 0 {
			out[at.to] = rest[:len(rest)-1]
			way = append(way, rest[len(rest)-1])
			continue
		}
		walked = append(walked, at.way)
		way = way[:len(way)-1]
	}
	var sequences [][]int
	var steps []int
	for i := len(walked) - 1; i >= 0; i-- {
		switch {
		case walked[i] != turn:
			steps = append(steps, walked[i])
		case len(steps) > 0:
			sequences, steps = append(sequences, steps), nil
		}
	}
	if len(steps) > 0 {
		sequences = append(sequences, steps)
	}
	return sequences
}
