package inspect

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func (p *Page) overview(ctx context.Context, _ *http.Request) (any, error) {
	doc := Overview{Title: p.config.Title, Time: now(), Machines: []MachineSummary{}, Locks: []LockSummary{}}
	for _, m := range p.config.Machines {
		c, err := p.count(ctx, m)
		if err != nil {
			c = &census{MachineSummary: MachineSummary{
				Name: m.table().Name, Title: m.table().Title, States: []StateCount{}, Problem: p.problem(ctx, err),
			}}
		}
		doc.Machines = append(doc.Machines, c.MachineSummary)
	}
	var err error
	if doc.Owners, err = p.readOwners(ctx); err != nil {
		doc.OwnersProblem = p.problem(ctx, err)
	}
	doc.Queues = p.readQueues(false)
	for _, name := range p.locks {
		l, err := p.readLock(ctx, name, false)
		if err != nil {
			l = LockSummary{Name: name, Problem: p.problem(ctx, err)}
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
	c, err := p.count(ctx, m)
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
	doc.StuckObjects, err = explainStuck(ctx, m, c.stuck[:min(len(c.stuck), ShownObjects)])
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

// now returns the time of an answer.
func now() time.Time { return time.Now().UTC() }
