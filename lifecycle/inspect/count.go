package inspect

import (
	"context"
	"slices"

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

// count returns the census of a machine, which may be some seconds old.
func (p *Page) count(ctx context.Context, m Machine) (*census, error) {
	return p.counts[m.table().Name].get(ctx, func(ctx context.Context) (*census, error) {
		return countAll(ctx, m, p.config.MaxObjects)
	})
}

// countAll reads the objects of a machine, without payloads, and those that are stuck.
func countAll(ctx context.Context, m Machine, most int) (*census, error) {
	table := m.table()
	c := &census{versions: map[string]int{}, oldest: []Object{}, MachineSummary: MachineSummary{
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
	c.stuck, err = lifecycle.Stuck(ctx, m, lifecycle.MaxPage)
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
	c.oldest = c.oldest[:min(len(c.oldest), shownObjects)]
}
