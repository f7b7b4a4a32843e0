package lifecycle

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lookEvery is how often [Await] and [Watch] look for changes that other
// processes have made.
const lookEvery = time.Second

// Await waits until want returns true for the record of an object, and returns that record.
// It sees changes by this manager at once, and so it sees changes by any manager over the
// same [MemoryStore]. It sees other changes and new deadlines ([Manager.Heartbeat]) within
// a second; [Wake] makes it look sooner. Await calls want with every record that it reads.
// The object may have had other records in between. If the object does not exist, want gets
// a zero Record with the ID.
//
// The error is an error of [Manager.Get] except [ErrNotFound], or the error of the context.
// The record is then the last one that Await has read.
func Await[S, E comparable, T any](ctx context.Context, m *Manager[S, E, T], id string, want func(Record[S, T]) bool) (Record[S, T], error) {
	changed := m.core.watchers.add(m.core.key(id))
	defer m.core.watchers.remove(m.core.key(id), changed)
	again := time.NewTicker(lookEvery)
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
			return last, m.core.failed("await", id, Ended(ctx))
		}
	}
}

// Wake makes every [Await] and [Watch] of the managers look for changes of a key at
// once. It is for programs that learn of the commits of other processes, such as package
// pgnotify. An empty ID means any object of the machine, an empty Machine any object. A
// key of another machine has no effect, and neither has a wake without a change. Wake
// does not wait.
func Wake(key Key, managers ...AnyManager) {
	for _, m := range managers {
		m.untyped().watchers.wake(key)
	}
}

// watchers wait for changes by this process, by key. A key without ID stands for all
// objects of its machine. The managers over a MemoryStore share the store's watchers,
// any other manager has its own.
type watchers struct {
	mu   sync.Mutex
	keys map[Key]map[chan struct{}]struct{}
}

func (w *watchers) add(k Key) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = map[Key]map[chan struct{}]struct{}{}
	}
	if w.keys[k] == nil {
		w.keys[k] = map[chan struct{}]struct{}{}
	}
	// Room for one: a change that comes while the watcher reads is not lost, and
	// two changes need one more read.
	c := make(chan struct{}, 1)
	w.keys[k][c] = struct{}{}
	return c
}

func (w *watchers) remove(k Key, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.keys[k], c)
	if len(w.keys[k]) == 0 {
		delete(w.keys, k)
	}
}

// wake wakes the watchers of a key and those of its machine. A key without ID or without
// Machine stands for all.
func (w *watchers) wake(k Key) {
	w.mu.Lock()
	var wake []chan struct{}
	collect := func(k Key) {
		for c := range w.keys[k] {
			wake = append(wake, c)
		}
	}
	if k.ID != "" && k.Machine != "" {
		collect(k)
		collect(Key{Machine: k.Machine})
	} else {
		for other := range w.keys {
			if k.Machine == "" || k.Machine == other.Machine {
				collect(other)
			}
		}
	}
	w.mu.Unlock()
	for _, c := range wake {
		select {
		case c <- struct{}{}:
		default: // there is a change to read already
		}
	}
}
