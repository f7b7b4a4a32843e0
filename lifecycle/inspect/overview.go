package inspect

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func (p *Page) overview(ctx context.Context, _ *http.Request) (view, error) {
	doc := Overview{Title: p.config.Title, Time: now(), Machines: make([]MachineSummary, len(p.config.Machines))}
	// A store that is slow leaves the time of the others.
	together([]func(){
		func() {
			var err error
			if doc.Owners, err = p.readOwners(ctx); err != nil {
				doc.OwnersProblem = p.problem(ctx, err)
			}
		},
		func() { doc.Locks = p.readLocks(ctx, false) },
		func() { doc.Queues = p.readQueues(false) },
		func() {
			together(p.config.Machines, func(i int, m Machine) { doc.Machines[i] = p.summary(ctx, m) })
		},
	}, func(_ int, read func()) { read() })
	return view{Heading: doc.Title, Doc: doc}, nil
}

// summary returns the counts of a machine, or why there are none.
func (p *Page) summary(ctx context.Context, m Machine) MachineSummary {
	c, err := p.count(ctx, m)
	if err != nil {
		problem := p.problem(ctx, late(storeOf(m.table().Name), err))
		return MachineSummary{Name: m.table().Name, Title: m.table().Title, States: []StateCount{}, Problem: problem}
	}
	return c.MachineSummary
}

// together calls f for all elements of a list at once, and returns when all calls have
// returned. A panic continues in the goroutine of the caller.
func together[T any](list []T, f func(i int, element T)) {
	var calls sync.WaitGroup
	panics := make(chan any, len(list))
	for i, element := range list {
		calls.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panics <- v
				}
			}()
			f(i, element)
		})
	}
	calls.Wait()
	select {
	case v := <-panics:
		panic(v)
	default:
	}
}

func (p *Page) machinePage(ctx context.Context, r *http.Request) (view, error) {
	m, err := p.machine(r)
	if err != nil {
		return view{}, err
	}
	c, err := p.count(ctx, m)
	if err != nil {
		return view{}, err
	}
	doc := MachinePage{Time: now(), MachineSummary: c.MachineSummary, Versions: []VersionCount{}, Oldest: c.oldest}
	for _, name := range slices.Sorted(maps.Keys(c.versions)) {
		doc.Versions = append(doc.Versions, VersionCount{Version: name, Count: c.versions[name]})
	}
	doc.StuckObjects = p.explainStuck(ctx, m, c.stuck[:min(len(c.stuck), shownObjects)])
	return view{Heading: doc.Name, Machine: doc.Name, Doc: doc}, nil
}

// explainStuck returns stuck objects with what moves them next. It leaves out those that
// are gone meanwhile. An object that cannot be explained has a problem.
func (p *Page) explainStuck(ctx context.Context, m Machine, stuck []lifecycle.SweepResult) []Object {
	list := []Object{}
	failed := false
	for i := range stuck {
		found := &stuck[i]
		o := Object{ID: found.ID, State: found.From, Operation: found.Operation, Owner: found.Owner, Cause: found.Cause}
		if found.Err != nil { // a foreign record
			o.State, o.Problem = "", new(lifecycle.Problem(found.Err))
			list = append(list, o)
			continue
		}
		x, err := m.Explain(ctx, found.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			continue
		case err != nil:
			err = late(storeOf(m.table().Name), err)
			o.Problem = new(lifecycle.Problem(err))
			if !failed && !errors.Is(err, lifecycle.ErrForeign) {
				failed = true
				p.problem(ctx, err) // for the log, once
			}
		default:
			o = explained(&x)
			if x.Operation == found.Operation {
				o.Cause = cmp.Or(o.Cause, found.Cause)
			}
		}
		list = append(list, o)
	}
	return list
}

// now returns the time of an answer.
func now() time.Time { return time.Now().UTC() }
