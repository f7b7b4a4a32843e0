package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

const (
	// watchOverlap is how much of the time before the last look [Watch] reads
	// again. A commit has the time of its statement, and may be visible ten seconds
	// later. The look itself may take as long, because the store retries its query.
	watchOverlap = 20 * time.Second
	// watchPause is the least time between two looks. Many changes need few of them.
	watchPause = 100 * time.Millisecond
)

// Watch yields the objects of the machine that change after the call of Watch, each with
// the sequence number of its newest change. Removed objects are included. Several changes
// of an object may come as one value. To get all of them, read the object's history from
// the last sequence number that the reader has ([Manager.History]). The order of objects
// has no meaning.
//
// A service that streams changes calls Watch, then reads the list, and then ranges over the
// result. So it misses no change in between. The changes of the last twenty seconds before
// the call come too. Ignore an object whose sequence number is not above that of the record
// in the list. After that each sequence number of an object comes at most once.
//
//	changes := lifecycle.Watch(ctx, vms)
//	for vm, err := range vms.All(ctx, lifecycle.Select[State]{}) { ... }
//	for changed, err := range changes { ... }
//
// Watch sees changes by this manager at once, and so it sees changes by any manager over
// the same [MemoryStore]. It sees other changes within a second; [Wake] makes it look
// sooner. After many changes it looks again after 100 milliseconds. Between two looks it
// holds no lock, no connection and no goroutine. A slow reader delays nothing and misses no
// object, because every look covers the whole time since the last one.
//
// Watch finds a change by its time, which is of the store's clock. If the transaction
// commits more than ten seconds after that time, or the clock is set back, Watch may miss
// it until the next change of the object. A reader that needs every change reads the list
// again from time to time.
//
// If the caller continues after an error that matches [ErrUnavailable], the next look
// covers what was missed. Any other error is the last value: [errors.ErrUnsupported] if the
// store is not a [Follower], or the error of the context or of the store. Only one range
// may use the result at a time. A second range starts again at the call.
func Watch(ctx context.Context, m AnyManager) iter.Seq2[ChangedObject, error] {
	c, start := m.untyped(), time.Now()
	return func(yield func(ChangedObject, error) bool) {
		all := Key{Machine: c.table.Name}
		changed := c.watchers.add(all)
		defer c.watchers.remove(all, changed)
		again := time.NewTicker(lookEvery)
		defer again.Stop()
		w := watch{core: c, last: start, seen: map[string]uint64{}}
		for w.look(ctx, yield) {
			select {
			case <-time.After(watchPause):
			case <-ctx.Done():
			}
			select {
			case <-changed:
			case <-again.C:
			case <-ctx.Done(): // the next look reports it
			}
		}
	}
}

// watch is the state of one range over [Watch].
type watch struct {
	core *core
	last time.Time // when the last complete look began
	// seen are the sequence numbers that were found in the last complete look or since, and
	// earlier those of the look before. The bad schedule without earlier: the query of a look
	// waits in the store, so its time begins later than that of the next look, which finds
	// again what the first one has missed.
	seen, earlier map[string]uint64
}

// look yields what has changed since the last look. It returns false at the end.
func (w *watch) look(ctx context.Context, yield func(ChangedObject, error) bool) bool {
	begin, found := time.Now(), map[string]uint64{}
	for after := ""; ; {
		page, err := w.page(ctx, after)
		if err != nil {
			return yield(ChangedObject{}, w.core.failed("watch", "", err)) && errors.Is(err, ErrUnavailable)
		}
		for _, o := range page {
			seen := max(w.seen[o.ID], w.earlier[o.ID])
			found[o.ID] = max(o.Sequence, seen)
			if o.Sequence <= seen {
				continue
			}
			w.seen[o.ID] = o.Sequence // also if a later page fails
			if !yield(o, nil) {
				return false
			}
		}
		if len(page) < MaxPage {
			break
		}
		after = page[len(page)-1].ID
	}
	w.last, w.seen, w.earlier = begin, found, w.seen
	return true
}

func (w *watch) page(ctx context.Context, after string) ([]ChangedObject, error) {
	store, ok := w.core.store.(Follower)
	if !ok {
		return nil, fmt.Errorf("%w: the store is not a Follower", errors.ErrUnsupported)
	}
	// The monotonic clock of a machine that was suspended has stood still, and its wall
	// clock may be set back. The longer time is safe: it only finds more.
	since := max(time.Since(w.last), time.Since(w.last.Round(0)))
	return store.Recent(ctx, w.core.table.Name, since+watchOverlap, after, MaxPage)
}
