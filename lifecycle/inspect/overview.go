package inspect

import (
	"context"
	"net/http"
	"sync"
	"time"
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

// now returns the time of an answer.
func now() time.Time { return time.Now().UTC() }
