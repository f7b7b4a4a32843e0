package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// census is what one pass over the objects of a machine has counted. It does not change
// when the pass has ended.
type census struct {
	MachineSummary
	versions map[string]int
	oldest   []Object // transitional, the oldest first
	stuck    []lifecycle.SweepResult
}

// counter counts the objects of a machine for all requests. However many pages are open, it
// uses at most a tenth of the time of one connection to the store. A request waits for its
// turn no longer than its context lasts, which [Config].Timeout ends.
type counter struct {
	turn  chan struct{} // has a value while a request counts, or reads last
	last  *census
	until time.Time // last is used until then
}

// count returns the last count if it is not older than ten times the time that it took, at
// most 10 seconds, and else counts again.
func (p *Page) count(ctx context.Context, m Machine) (*census, error) {
	c := p.counters[m.table().Name]
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, lifecycle.Ended(ctx)
	}
	begin := time.Now()
	if begin.Before(c.until) {
		return c.last, nil
	}
	counted, err := countAll(ctx, m, p.config.MaxObjects)
	if err == nil {
		c.last, c.until = counted, begin.Add(min(11*time.Since(begin), 10*time.Second))
	}
	return counted, err
}

// countAll reads the objects of a machine, without payloads, and those that are stuck.
func countAll(ctx context.Context, m Machine, most int) (*census, error) {
	table := m.table()
	c := &census{versions: map[string]int{}, MachineSummary: MachineSummary{
		Name: table.Name, Title: table.Title, States: []StateCount{},
	}}
	place := map[string]int{} // of the state in States
	for i := range table.States {
		if s := &table.States[i]; s.Kind != fsm.Absent {
			place[s.Name] = len(c.States)
			c.States = append(c.States, StateCount{State: s.Name, Kind: s.Kind.String()})
		}
	}
	for after := ""; ; {
		limit := min(lifecycle.MaxPage, most-c.Objects+1)
		page, err := m.list(ctx, nil, after, limit)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if c.Objects == most {
				c.More = true
				break
			}
			c.add(&page[i], place)
		}
		if len(page) < limit || c.More {
			break
		}
		after = page[len(page)-1].ID
	}
	c.trim()
	var err error
	c.stuck, err = m.Stuck(ctx, lifecycle.MaxPage)
	c.Stuck = len(c.stuck)
	return c, err
}

// add counts an object.
func (c *census) add(o *Object, place map[string]int) {
	c.Objects++
	c.versions[o.Version]++
	i, ok := place[o.State]
	if !ok || o.Problem != nil {
		c.Unreadable++
		return
	}
	c.States[i].Count++
	if o.Kind == fsm.Transitional.String() {
		c.Transitional++
		c.oldest = append(c.oldest, *o)
		if len(c.oldest) >= lifecycle.MaxPage {
			c.trim()
		}
	}
}

// trim sorts the oldest objects and keeps as many as the page shows.
func (c *census) trim() {
	slices.SortStableFunc(c.oldest, func(a, b Object) int { return a.Since.Compare(b.Since) })
	c.oldest = c.oldest[:min(len(c.oldest), ShownObjects)]
}
