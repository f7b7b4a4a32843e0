package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPick compares what the tree of classes finds with a look at everybody, over
// a tree that is wide enough for the heaps.
func TestPick(t *testing.T) {
	for seed := range 40 {
		rnd := rand.New(rand.NewPCG(uint64(seed), 2))
		config := &Config[int]{MaxRunning: 12, Classes: map[string]Limit{"": {MaxChildren: 3}}}
		paths := []string{""}
		for p := range 5 {
			provider := fmt.Sprint("p", p)
			config.Classes[provider] = Limit{MaxRunning: rnd.IntN(8), MaxChildren: rnd.IntN(4)}
			paths = append(paths, provider)
			for r := range 1 + rnd.IntN(20) {
				region := fmt.Sprint(provider, "/r", r)
				config.Classes[region] = Limit{MaxRunning: rnd.IntN(3)}
				paths = append(paths, region)
			}
		}
		q := Must(config)
		class := func() *class[int] {
			if p := paths[rnd.IntN(len(paths))]; p != "" {
				return q.classes[p]
			}
			return &q.root
		}
		var ready, running []*Ticket[int]
		for range 2000 {
			switch rnd.IntN(5) {
			case 0, 1:
				t := &Ticket[int]{q: q, class: class()}
				q.push(t)
				ready = append(ready, t)
			case 2:
				if len(ready) > 0 {
					i := rnd.IntN(len(ready))
					ready[i].pull()
					ready = append(ready[:i], ready[i+1:]...)
				}
			case 3:
				if len(running) > 0 {
					i := rnd.IntN(len(running))
					running[i].class.give()
					running = append(running[:i], running[i+1:]...)
				}
			}
			want := -1
			for i, t := range ready {
				if mayStart(t.class) {
					want = i
					break
				}
			}
			got := q.pick()
			if want < 0 {
				require.Nil(t, got)
				continue
			}
			require.Same(t, ready[want], got)
			if rnd.IntN(2) == 0 {
				got.pull()
				got.class.take()
				ready = append(ready[:want], ready[want+1:]...)
				running = append(running, got)
			}
		}
	}
}

func mayStart(c *class[int]) bool {
	for ; c != nil; c = c.parent {
		if c.full() {
			return false
		}
		if p := c.parent; p != nil && c.running == 0 && p.limit.MaxChildren > 0 && p.active >= p.limit.MaxChildren {
			return false
		}
	}
	return true
}
