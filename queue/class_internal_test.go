package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOldest compares the ticket that the tree of classes finds with a search over all
// tickets.
func TestOldest(t *testing.T) {
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
		var ready, running []*Ticket[int]
		for range 2000 {
			switch rnd.IntN(5) {
			case 0, 1:
				t := &Ticket[int]{q: q, class: q.makeClass(paths[rnd.IntN(len(paths))]), state: Waiting}
				q.enqueue(t)
				ready = append(ready, t)
			case 2:
				if len(ready) > 0 {
					i := rnd.IntN(len(ready))
					ready[i].dequeue()
					ready = slices.Delete(ready, i, i+1)
				}
			case 3:
				if len(running) > 0 {
					i := rnd.IntN(len(running))
					running[i].class.give()
					running = slices.Delete(running, i, i+1)
				}
			}
			want := slices.IndexFunc(ready, func(t *Ticket[int]) bool { return mayStart(t.class) })
			got := q.root.oldest()
			if want < 0 {
				require.Nil(t, got)
				continue
			}
			require.Same(t, ready[want], got)
			if rnd.IntN(2) == 0 {
				got.dequeue()
				got.class.take()
				ready = slices.Delete(ready, want, want+1)
				running = append(running, got)
			}
		}
	}
}

func mayStart(c *class[int]) bool {
	for ; c != nil; c = c.parent {
		if c.full() || c.parent != nil && c.parent.crowded(c) {
			return false
		}
	}
	return true
}
