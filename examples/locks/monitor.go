package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/interlock-go/interlock/lock"
)

// monitor prints the events of a lock tree, and finds conflicting locks that are held at
// once.
type monitor struct {
	out     io.Writer
	waiting chan struct{} // receives a value when a request starts to wait

	mu     sync.Mutex
	held   map[string]lock.Request // by owner
	faults []error
}

func (m *monitor) observer() lock.Observer {
	return lock.Observer{
		Waiting:  func(context.Context, lock.Waiting) { m.waiting <- struct{}{} },
		Granted:  func(_ context.Context, e lock.Acquisition) { m.granted(e.Owner, e.Requests[0]) },
		Released: func(_ context.Context, e lock.Released) { m.released(e.Owner) },
	}
}

// restarted drops the locks of the earlier process.
func (m *monitor) restarted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = map[string]lock.Request{}
}

func (m *monitor) granted(owner string, r lock.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, held := range m.held {
		if held.Conflicts(r) {
			m.faults = append(m.faults, fmt.Errorf("%s is granted %v while %s holds %v", owner, r, other, held))
		}
	}
	m.held[owner] = r
	fmt.Fprintf(m.out, "  %s is granted %v\n", owner, r)
}

func (m *monitor) released(owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fmt.Fprintf(m.out, "  %s releases %v\n", owner, m.held[owner])
	delete(m.held, owner)
}

// verify returns an error if two conflicting locks were held at once.
func (m *monitor) verify() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.faults...)
}
