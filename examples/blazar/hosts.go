package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// hosts are the resources: one of each type, which one lease holds at a time.
type hosts struct {
	wake chan struct{} // closed at the end: ends the calls that hang

	mu      sync.Mutex
	holders map[string]string // lease by type
	next    map[string]error  // of the next call, by call and type; none: success
	calls   []string
	faults  []error
}

// What calls return.
var (
	errDown    = errors.New("the switch is down")
	errRefused = fmt.Errorf("%w: reserved by another lease", blazar.ErrRefused)
	errHangs   = errors.New("the call hangs") // it does not return before the end
)

func newHosts() *hosts {
	return &hosts{wake: make(chan struct{}), holders: map[string]string{}, next: map[string]error{}}
}

func (h *hosts) plugins() map[string]blazar.Plugin {
	plugins := map[string]blazar.Plugin{}
	for _, kind := range []string{"host", "rack", "network"} {
		call := func(verb string) func(context.Context, blazar.Allocation) error {
			return func(ctx context.Context, a blazar.Allocation) error { return h.call(ctx, verb, kind, a.Lease) }
		}
		plugins[kind] = blazar.Plugin{Update: call("update"), OnStart: call("start"), OnEnd: call("release")}
	}
	return plugins
}

func (h *hosts) call(ctx context.Context, verb, kind, lease string) error {
	if err := h.behave(ctx, verb+" "+kind, lease); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch holder := h.holders[kind]; {
	case verb == "release" && holder == lease:
		delete(h.holders, kind)
	case verb == "start" && holder != "":
		h.faults = append(h.faults, fmt.Errorf("%s acquires the %s of %s", lease, kind, holder))
	case verb == "start":
		h.holders[kind] = lease
	}
	return nil
}

// set sets what the next call returns.
func (h *hosts) set(call string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next[call] = err
}

// behave records a call, and returns what is set for it.
func (h *hosts) behave(ctx context.Context, call, lease string) error {
	h.mu.Lock()
	err := h.next[call]
	delete(h.next, call)
	h.calls = append(h.calls, fmt.Sprintf("%s for %s", call, lease))
	h.mu.Unlock()
	if err != errHangs {
		return err
	}
	select {
	case <-h.wake:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// take returns the calls since the last take.
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
		faults = append(faults, fmt.Errorf("%s still holds the %s", lease, kind))
	}
	return errors.Join(faults...)
}
