package pgqueue

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/queue"
)

// Run claims and runs actions until ctx ends. It then claims no more, the contexts of the
// running handlers end, and Run waits for them for the time of a lease, while the leases are
// renewed. An action whose handler returns an error now is put back, and another worker may
// run it at once.
//
// Run is called once at a time for a worker. The goroutines that it starts have
// ended when it returns, except handlers that have not returned. A lost connection or server
// does not end Run: it tries again, and reports to [Observer].Error.
//
// The error matches that of ctx and its cause, and [queue.ErrNotDrained] too if handlers have not
// returned, or if an end could not be committed, for example because its Settle fails; or, at
// the start, it is the driver's, also if [Migrate] has not run.
func (w *Worker) Run(ctx context.Context) error {
	if _, err := tokens(ctx, w.db, migrated); err != nil && ctx.Err() == nil {
		return err
	}
	// The statements that end actions and renew leases outlive ctx.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var claiming, renewing, working sync.WaitGroup
	claiming.Go(func() { w.loop(ctx, nil, w.listen) })
	claiming.Go(func() { w.loop(ctx, nil, w.enterDue) })
	claiming.Go(func() {
		w.loop(ctx, w.ready, func(context.Context) (time.Duration, error) { return w.claim(ctx, life, &working) })
	})
	renewing.Go(func() { w.loop(life, nil, w.renew) })
	renewing.Go(func() { w.removeAll(life) })
	claiming.Wait()
	err := fmt.Errorf("pgqueue: run: %w", ctx.Err())
	if cause := context.Cause(ctx); cause != ctx.Err() {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	drained := make(chan struct{})
	go func() {
		working.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(w.config.Lease):
		err = fmt.Errorf("%w: %w", queue.ErrNotDrained, err)
	}
	end()
	renewing.Wait()
	<-drained // what waits for a handler that does not return has ended with life
	return err
}

// loop calls step until ctx ends. step returns the longest pause before the next call; a
// wake-up ends the pause.
func (w *Worker) loop(ctx context.Context, wake <-chan struct{}, step func(context.Context) (time.Duration, error)) {
	for ctx.Err() == nil {
		pause, err := step(ctx)
		if err != nil {
			pause = w.failed(ctx, err)
		}
		select {
		case <-time.After(pause):
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// failed reports an error of a statement and returns the pause before the next one. The pause
// is short: a renewal has a third of the lease for its answer, and then needs a second one in
// time.
func (w *Worker) failed(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		report(ctx, w.config.Observer.Error, err)
	}
	return min(w.config.Poll, w.config.Lease/10)
}

// wake ends the pause of the loop of claims. If it is not in a pause, its next one ends at
// once.
func (w *Worker) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// claim starts as many actions as may start.
func (w *Worker) claim(ctx, life context.Context, working *sync.WaitGroup) (time.Duration, error) {
	w.mu.Lock()
	free := w.config.MaxRunning - len(w.held)
	w.mu.Unlock()
	if free == 0 {
		return w.config.Poll, nil // the end of an action wakes
	}
	// Not with ctx, whose end in the middle would leave actions that are claimed and do
	// not run.
	limited, stop := context.WithTimeout(life, w.config.Lease)
	defer stop()
	paths, limits := make([]string, 0), make([]int, 0)
	for path, most := range w.config.Classes {
		paths, limits = append(paths, path), append(limits, most)
	}
	before := time.Now()
	claimed, err := leases(limited, w.db, w.config.Owner, w.config.Lease.Microseconds(), paths, limits, free)
	if err != nil {
		return 0, err
	}
	for _, l := range claimed {
		w.hold(ctx, l, before)
		working.Go(func() { w.work(life, l) })
	}
	if len(claimed) == free {
		return 0, nil // there may be more, and room for them by now
	}
	return w.config.Poll, nil
}

// enterDue lets the delayed actions enter their lanes whose delay is over.
func (w *Worker) enterDue(ctx context.Context) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, w.config.Lease)
	defer stop()
	entered := false
	if err := queryRow(ctx, w.db, enterDue, nil, &entered); err != nil || entered {
		return 0, err // there may be more
	}
	return w.config.Poll, nil
}

// listen wakes the loop of claims after every commit that notifies, until the connection is
// lost, which is one of the pool. While there is none, the worker polls.
func (w *Worker) listen(ctx context.Context) (time.Duration, error) {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return 0, prefixed(err)
	}
	defer conn.Close()
	_ = conn.Raw(func(raw any) error {
		err = w.wakes(ctx, raw)
		return driver.ErrBadConn // the pool drops the connection, which otherwise would listen in other hands
	})
	return 0, prefixed(err)
}

// wakes wakes the loop of claims until the connection is lost.
func (w *Worker) wakes(ctx context.Context, raw any) error {
	holder, ok := raw.(interface{ Conn() *pgx.Conn })
	if !ok {
		return &queue.InvalidError{Field: "db", Problem: fmt.Sprintf("a driver other than pgx: %T", raw)}
	}
	_, err := holder.Conn().Exec(ctx, listen)
	for err == nil {
		// At first too: what was committed before is not notified.
		w.wake()
		_, err = holder.Conn().WaitForNotification(ctx)
	}
	return err
}
