package tour

import "slices"

// sequences takes each of the goals at least once, with other ways between them. After
// each it continues to the nearest status with a goal that it has not taken. If it can
// reach none, it starts a new sequence in an entry.
func (w *walk) sequences(goals []int) (list [][]int) {
	out := make([][]int, len(w.statuses)) // by status: the ways that leave it
	for i, x := range w.ways {
		out[x.from] = append(out[x.from], i)
	}
	open := make([]bool, len(w.ways)) // the goals that are not taken
	for _, i := range goals {
		open[i] = true
	}
	var steps []int
	for taken, at := 0, w.entries; taken < len(goals); {
		ways := w.nearest(at, out, open)
		if ways == nil { // every way starts in a status that an entry reaches
			list, steps, at = append(list, steps), nil, w.entries
			continue
		}
		steps = append(steps, ways...)
		for _, i := range ways {
			if open[i] {
				open[i] = false
				taken++
			}
		}
		at = []int{w.ways[steps[len(steps)-1]].to}
	}
	if steps != nil {
		list = append(list, steps)
	}
	return list
}

// nearest returns a shortest way from one of the statuses that ends with an open way, or nil.
func (w *walk) nearest(starts []int, out [][]int, open []bool) (ways []int) {
	by := make(map[int]int) // by status: the way that leads there
	for _, p := range starts {
		by[p] = -1
	}
	for queue := slices.Clone(starts); len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if i := slices.IndexFunc(out[at], func(way int) bool { return open[way] }); i >= 0 {
			ways = append(ways, out[at][i])
			for ; by[at] >= 0; at = w.ways[by[at]].from {
				ways = append(ways, by[at])
			}
			slices.Reverse(ways)
			return ways
		}
		for _, i := range out[at] {
			to := w.ways[i].to
			if _, seen := by[to]; !seen {
				by[to] = i
				queue = append(queue, to)
			}
		}
	}
	return nil
}
