package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// hosts are the resources: there is one of each type, and one lease has it at a
// time.
type hosts struct {
	wake chan struct{} // closed at the end: no call hangs after that

	mu      sync.Mutex
	holders map[string]string // lease by type
	next    map[string]string // behaviour of the next call, by call and type
	calls   []string
	faults  []error
}

var errDown = errors.New("the switch is down")

func newHosts() *hosts {
	return &hosts{wake: make(chan struct{}), holders: map[string]string{}, next: map[string]string{}}
}

func (h *hosts) plugins() map[string]blazar.Plugin {
	plugins := map[string]blazar.Plugin{}
	for _, kind := range []string{"host", "rack", "network"} {
		plugins[kind] = blazar.Plugin{
			Update:  func(ctx context.Context, a blazar.Allocation) error { return h.call(ctx, "update "+kind, a) },
			OnStart: func(ctx context.Context, a blazar.Allocation) error { return h.start(ctx, kind, a) },
			OnEnd:   func(ctx context.Context, a blazar.Allocation) error { return h.release(ctx, kind, a) },
		}
	}
	return plugins
}

func (h *hosts) start(ctx context.Context, kind string, a blazar.Allocation) error {
	if err := h.call(ctx, "start "+kind, a); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if holder, taken := h.holders[kind]; taken {
		h.faults = append(h.faults, fmt.Errorf("%s gets the %s of %s", a.Lease, kind, holder))
	}
	h.holders[kind] = a.Lease
	return nil
}

func (h *hosts) release(ctx context.Context, kind string, a blazar.Allocation) error {
	if err := h.call(ctx, "release "+kind, a); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holders[kind] == a.Lease {
		delete(h.holders, kind)
	}
	return nil
}

// set sets the behaviour of the next call: "fails", "refuses" or "hangs".
func (h *hosts) set(call, behaviour string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next[call] = behaviour
}

func (h *hosts) call(ctx context.Context, call string, a blazar.Allocation) error {
	h.mu.Lock()
	behaviour := h.next[call]
	delete(h.next, call)
	h.calls = append(h.calls, fmt.Sprintf("%s for %s", call, a.Lease))
	h.mu.Unlock()
	switch behaviour {
	case "fails":
		return errDown
	case "refuses":
		return fmt.Errorf("%w: reserved by another lease", blazar.ErrRefused)
	case "hangs":
		select {
		case <-h.wake:
		case <-ctx.Done():
		}
		return context.Cause(ctx)
	}
	return nil
}

// take returns the calls since the last call of take.
func (h *hosts) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

// verify returns an error if a resource had two holders, or was not released.
func (h *hosts) verify() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	faults := h.faults
	for kind, lease := range h.holders {
		faults = append(faults, fmt.Errorf("%s still has the %s", lease, kind))
	}
	return errors.Join(faults...)
}
