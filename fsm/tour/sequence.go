package tour

import "slices"

// sequences takes each of the goals at least once, with other ways between them. After
// each it continues to the nearest place with a goal that it has not taken. If it can
// reach none, it starts a new sequence in an entry.
func (w *walk) sequences(goals []int) (list [][]int) {
	s := &sequencer{
		walk: w, out: make([][]int, len(w.places)), open: make([][]int, len(w.places)),
		by: make([]int, len(w.places)), seen: make([]int, len(w.places)),
	}
	for i, x := range w.ways {
		s.out[x.from] = append(s.out[x.from], i)
	}
	for _, i := range goals {
		from := w.ways[i].from
		s.open[from] = append(s.open[from], i)
	}
	var steps []int
	for taken, at := 0, []int(nil); taken < len(goals); {
		if steps == nil {
			at = w.entries
		}
		ways, found := s.nearest(at)
		if !found {
			list, steps = append(list, steps), nil
			continue // every way starts in a place that an entry reaches
		}
		steps = append(steps, ways...)
		for _, i := range ways {
			taken += s.take(i)
		}
		at = []int{w.ways[steps[len(steps)-1]].to}
	}
	if steps != nil {
		list = append(list, steps)
	}
	return list
}

type sequencer struct {
	*walk
	out  [][]int // by place: the ways that leave it
	open [][]int // the goals among them that are not taken
	by   []int   // by place: the way that leads there, in the present search
	seen []int   // by place: the search that saw it
	runs int
}

// take marks a way as taken and returns 1 if it was not.
func (s *sequencer) take(way int) int {
	open := &s.open[s.ways[way].from]
	i := slices.Index(*open, way)
	if i < 0 {
		return 0
	}
	*open = slices.Delete(*open, i, i+1)
	return 1
}

// nearest returns a shortest way from one of the places that ends with a way that
// is not taken.
func (s *sequencer) nearest(starts []int) (ways []int, found bool) {
	s.runs++
	queue := make([]int, 0, len(starts))
	for _, p := range starts {
		s.seen[p], s.by[p] = s.runs, -1
		queue = append(queue, p)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if len(s.open[at]) > 0 {
			ways = append(ways, s.open[at][0])
			for ; s.by[at] >= 0; at = s.ways[s.by[at]].from {
				ways = append(ways, s.by[at])
			}
			slices.Reverse(ways)
			return ways, true
		}
		for _, i := range s.out[at] {
			if to := s.ways[i].to; s.seen[to] != s.runs {
				s.seen[to], s.by[to] = s.runs, i
				queue = append(queue, to)
			}
		}
	}
	return nil, false
}
