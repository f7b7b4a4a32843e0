package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// cloud simulates providers that take their time, fail, do not answer and lie.
type cloud struct {
	mu     sync.Mutex
	delay  time.Duration
	vms    map[string]*machine
	made   map[tumblebug.Resource]bool
	reject map[string]bool              // "Create web-2": it says no
	mute   map[string]bool              // it does it and does not answer
	lies   map[string][]tumblebug.State // what it says about a VM before the truth
	gate   chan struct{}                // while not nil, nothing is begun until it is closed
}

// machine is a VM as its provider has it.
type machine struct {
	during, then tumblebug.State
	at           time.Time
	operation    lifecycle.OpID
}

func newCloud(delay time.Duration) *cloud {
	return &cloud{
		delay: delay, vms: map[string]*machine{}, made: map[tumblebug.Resource]bool{},
		reject: map[string]bool{}, mute: map[string]bool{}, lies: map[string][]tumblebug.State{},
	}
}

func (c *cloud) Validate(context.Context, tumblebug.SubGroup) error { return nil }

func (c *cloud) Prepare(_ context.Context, r tumblebug.Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reject[string(r.Kind)] {
		return fmt.Errorf("%w: no more quota", tumblebug.ErrRejected)
	}
	c.made[r] = true
	return nil
}

func (c *cloud) Release(_ context.Context, r tumblebug.Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, r)
	return nil
}

func (c *cloud) Create(ctx context.Context, vm tumblebug.VMRef) error {
	return c.begin(ctx, vm, tumblebug.ActionCreate)
}

func (c *cloud) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	return c.begin(ctx, vm, a)
}

func (c *cloud) begin(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	c.mu.Lock()
	gate := c.gate
	c.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	what := string(a) + " " + vm.VMID
	if c.reject[what] {
		return fmt.Errorf("%w: no more quota", tumblebug.ErrRejected)
	}
	id := vm.Life + "/" + vm.VMID // not by the name of the MCI, which may be used again
	if m := c.vms[id]; m == nil || m.operation != vm.Operation {
		c.vms[id] = &machine{tumblebug.Suspending, a.Target(), time.Now().Add(c.delay), vm.Operation}
	}
	if c.mute[what] {
		return errors.New("no answer")
	}
	return nil
}

func (c *cloud) Status(_ context.Context, vm tumblebug.VMRef) (tumblebug.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lies := c.lies[vm.VMID]; len(lies) > 0 {
		c.lies[vm.VMID] = lies[1:]
		return lies[0], nil
	}
	m := c.vms[vm.Life+"/"+vm.VMID]
	switch {
	case m == nil:
		return "", tumblebug.ErrNoVM
	case time.Now().Before(m.at):
		return m.during, nil
	}
	return m.then, nil
}

// change changes how the cloud behaves.
func (c *cloud) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// close keeps everything from beginning, until what it returns is called.
func (c *cloud) close() (open func()) {
	gate := make(chan struct{})
	c.change(func() { c.gate = gate })
	return func() {
		c.change(func() { c.gate = nil })
		close(gate)
	}
}

func (c *cloud) resources() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.made)
}
