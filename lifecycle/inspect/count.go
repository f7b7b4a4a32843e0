package inspect

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// census is what one pass over the objects of a machine has counted.
type census struct {
	MachineSummary
	versions map[string]int
	oldest   []Object // transitional, the oldest first
}

// count reads the objects of a machine, without payloads, and those that are stuck.
func (p *Page) count(ctx context.Context, m Machine) (*census, []lifecycle.SweepResult, error) {
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
		limit := min(lifecycle.MaxPage, p.config.MaxObjects-c.Objects+1)
		page, err := m.list(ctx, nil, after, limit)
		if err != nil {
			return nil, nil, err
		}
		for i := range page {
			if c.Objects == p.config.MaxObjects {
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
	stuck, err := m.Stuck(ctx, lifecycle.MaxPage)
	c.Stuck = len(stuck)
	return c, stuck, err
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

func (p *Page) overview(ctx context.Context, _ *http.Request) (any, error) {
	doc := Overview{Title: p.config.Title, Time: now(), Machines: []MachineSummary{}, Locks: []LockSummary{}}
	for _, m := range p.config.Machines {
		c, _, err := p.count(ctx, m)
		if err != nil {
			c = &census{MachineSummary: MachineSummary{
				Name: m.table().Name, Title: m.table().Title, States: []StateCount{}, Problem: problemOf(err),
			}}
		}
		doc.Machines = append(doc.Machines, c.MachineSummary)
	}
	var err error
	if doc.Owners, err = p.readOwners(ctx); err != nil {
		doc.OwnersProblem = problemOf(err)
	}
	doc.Queues = p.readQueues(false)
	for _, name := range p.locks {
		l, err := p.readLock(ctx, name, false)
		if err != nil {
			l = LockSummary{Name: name, Problem: problemOf(err)}
		}
		doc.Locks = append(doc.Locks, l)
	}
	return doc, nil
}

func (p *Page) machinePage(ctx context.Context, r *http.Request) (any, error) {
	m, err := p.machine(r)
	if err != nil {
		return nil, err
	}
	c, stuck, err := p.count(ctx, m)
	if err != nil {
		return nil, err
	}
	doc := MachinePage{Time: now(), MachineSummary: c.MachineSummary, Versions: []VersionCount{}, Oldest: c.oldest}
	if doc.Oldest == nil {
		doc.Oldest = []Object{}
	}
	for _, name := range slices.Sorted(maps.Keys(c.versions)) {
		doc.Versions = append(doc.Versions, VersionCount{Version: name, Count: c.versions[name]})
	}
	doc.StuckObjects, err = explainStuck(ctx, m, stuck[:min(len(stuck), ShownObjects)])
	return doc, err
}

// explainStuck returns stuck objects with what moves them next. It leaves out those that
// are gone meanwhile.
func explainStuck(ctx context.Context, m Machine, stuck []lifecycle.SweepResult) ([]Object, error) {
	list := []Object{}
	for i := range stuck {
		found := &stuck[i]
		o := Object{ID: found.ID, State: found.From, Operation: found.Operation, Owner: found.Owner, Cause: found.Cause}
		if found.Err != nil { // a foreign record
			o.State, o.Problem = "", problemOf(found.Err)
			list = append(list, o)
			continue
		}
		x, err := m.Explain(ctx, found.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			continue
		case errors.Is(err, lifecycle.ErrForeign):
			o.Problem = problemOf(err)
		case err != nil:
			return nil, err
		default:
			o = explained(&x)
			if x.Operation == found.Operation {
				o.Cause = cmp.Or(o.Cause, found.Cause)
			}
		}
		list = append(list, o)
	}
	return list, nil
}

// readOwners returns the owners of all machines' stores. A process that is an owner in
// several stores is listed once, unless it is dead in some of them.
func (p *Page) readOwners(ctx context.Context) (list []Owner, failed error) {
	type life struct {
		ref   lifecycle.OwnerRef
		alive bool
	}
	found := map[life]Owner{}
	for _, m := range p.config.Machines {
		owners, err := m.Owners(ctx)
		failed = cmp.Or(failed, err)
		for _, o := range owners {
			found[life{o.OwnerRef, o.Alive}] = Owner{
				Name: o.Name, Epoch: o.Epoch, Alive: o.Alive, Since: o.Since.UTC(),
				Heartbeat: o.Heartbeat.UTC(), TTL: o.TTL.Seconds(),
			}
		}
	}
	list = slices.SortedFunc(maps.Values(found), func(a, b Owner) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Epoch, b.Epoch), a.Since.Compare(b.Since))
	})
	return append([]Owner{}, list...), failed
}

func (p *Page) ownerPage(ctx context.Context, _ *http.Request) (any, error) {
	owners, err := p.readOwners(ctx)
	return OwnerPage{Time: now(), Owners: owners}, err
}

// now returns the time of an answer.
func now() time.Time { return time.Now().UTC() }
