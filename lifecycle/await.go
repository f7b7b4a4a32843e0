package lifecycle

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// awaitEvery is how often [Manager.Await] looks for changes that were made by
// other managers and processes.
const awaitEvery = time.Second

// Await waits until an object is as the caller wants it, and returns it then.
// It subscribes before it reads, so that an answer which is faster than the
// caller is not missed: changes by this manager are seen at once, those by others,
// and new deadlines ([Manager.Beat]), within a second. The condition is asked about
// every record that is read, and not about each that there was in between. For an
// object that does not exist it is asked about the zero Record with the ID.
//
// The error is that of [Manager.Get], but for [ErrNotFound], or the context's;
// the record is then the last that was read.
func (m *Manager[S, E, T]) Await(ctx context.Context, id string, want func(Record[S, T]) bool) (Record[S, T], error) {
	changed := m.watchers.add(m.key(id))
	defer m.watchers.remove(m.key(id), changed)
	again := time.NewTicker(awaitEvery)
	defer again.Stop()
	var last Record[S, T]
	for {
		rec, err := m.Get(ctx, id)
		switch {
		case errors.Is(err, ErrNotFound):
			rec = Record[S, T]{ID: id}
		case err != nil:
			return last, err
		}
		if last = rec; want(rec) {
			return rec, nil
		}
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			return last, &Error{Verb: "await", Machine: m.table.Name, ID: id, Err: Ended(ctx)}
		}
	}
}

// watchers are told of the commits of this manager, by key.
type watchers struct {
	// How many there are, for who commits: if a commit sees none, whoever comes
	// later reads after the commit.
	n    atomic.Int32
	mu   sync.Mutex
	keys map[Key]map[chan struct{}]struct{}
}

func (w *watchers) add(k Key) chan struct{} {
	w.n.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = map[Key]map[chan struct{}]struct{}{}
	}
	if w.keys[k] == nil {
		w.keys[k] = map[chan struct{}]struct{}{}
	}
	// Room for one: a change that comes while the watcher reads is not lost, and
	// more than one says no more than one.
	c := make(chan struct{}, 1)
	w.keys[k][c] = struct{}{}
	return c
}

func (w *watchers) remove(k Key, c chan struct{}) {
	w.n.Add(-1)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.keys[k], c)
	if len(w.keys[k]) == 0 {
		delete(w.keys, k)
	}
}

// tell wakes who waits for a key.
func (w *watchers) tell(k Key) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	var wake []chan struct{}
	for c := range w.keys[k] {
		wake = append(wake, c)
	}
	w.mu.Unlock()
	for _, c := range wake {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
