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
	wake chan struct{} // closed at the end, so that no call hangs any more

	mu    sync.Mutex
	has   map[string]string // lease by type
	does  map[string]string // the result of the next call, by name and type
	calls []string
	wrong []string
}

var errDown = errors.New("it is down")

func (h *hosts) plugin(kind string) blazar.Plugin {
	return blazar.Plugin{
		Update: func(ctx context.Context, a blazar.Allocation) error { return h.call(ctx, "update "+kind, a) },
		OnStart: func(ctx context.Context, a blazar.Allocation) error {
			if err := h.call(ctx, "start "+kind, a); err != nil {
				return err
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if other, taken := h.has[kind]; taken {
				h.wrong = append(h.wrong, fmt.Sprintf("%s gets the %s of %s", a.Lease, kind, other))
			}
			h.has[kind] = a.Lease
			return nil
		},
		OnEnd: func(ctx context.Context, a blazar.Allocation) error {
			if err := h.call(ctx, "end "+kind, a); err != nil {
				return err
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.has[kind] == a.Lease {
				delete(h.has, kind)
			}
			return nil
		},
	}
}

// set sets the result of the next call.
func (h *hosts) set(call, does string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.does[call] = does
}

func (h *hosts) call(ctx context.Context, call string, a blazar.Allocation) error {
	h.mu.Lock()
	does := h.does[call]
	delete(h.does, call)
	h.calls = append(h.calls, fmt.Sprintf("%s for %s", call, a.Lease))
	h.mu.Unlock()
	switch does {
	case "fails":
		return errDown
	case "refuses":
		return fmt.Errorf("%w: another lease has it then", blazar.ErrRefused)
	case "hangs":
		select {
		case <-h.wake:
		case <-ctx.Done():
		}
		return context.Cause(ctx)
	}
	return nil
}

// take returns the calls since the last time.
func (h *hosts) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

// verify returns an error if anything was handed out twice, or not taken back.
func (h *hosts) verify() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range h.wrong {
		return errors.New(text)
	}
	for kind, lease := range h.has {
		return fmt.Errorf("%s still has the %s", lease, kind)
	}
	return nil
}
