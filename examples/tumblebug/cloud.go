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

// cloud simulates the providers. Its actions take a delay. It can reject requests, lose
// answers, and pause.
type cloud struct {
	delay time.Duration

	mu        sync.Mutex
	vms       map[string]*machine
	resources map[tumblebug.Resource]bool
	answers   map[string]error // to requests such as "Create web-2"; none: success
	paused    chan struct{}    // while not nil, no request starts until it is closed
}

// machine is a VM at its provider.
type machine struct {
	then      tumblebug.State
	at        time.Time // end of the action
	operation lifecycle.OpID
}

func newCloud(delay time.Duration) *cloud {
	return &cloud{delay: delay, vms: map[string]*machine{}, resources: map[tumblebug.Resource]bool{}, answers: map[string]error{}}
}

var (
	errRejected = fmt.Errorf("%w: quota exceeded", tumblebug.ErrRejected) // the request has no effect
	errLost     = errors.New("no answer")                                 // the request has an effect
)

// answer sets the answer to a request, or to the preparation of resources of a kind.
func (c *cloud) answer(request string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[request] = err
}

func (c *cloud) Validate(context.Context, tumblebug.SubGroup) error { return nil }

func (c *cloud) Prepare(_ context.Context, r tumblebug.Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.answers[string(r.Kind)]; err != nil {
		return err
	}
	c.resources[r] = true
	return nil
}

func (c *cloud) Release(_ context.Context, r tumblebug.Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.resources, r)
	return nil
}

func (c *cloud) Create(ctx context.Context, vm tumblebug.VMRef) error {
	return c.Control(ctx, vm, tumblebug.ActionCreate)
}

func (c *cloud) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	c.mu.Lock()
	paused := c.paused
	c.mu.Unlock()
	if paused != nil {
		select {
		case <-paused:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.answers[string(a)+" "+vm.VMID]
	if answer == errRejected {
		return answer
	}
	id := vm.Life + "/" + vm.VMID // the name of an MCI may be used again
	if m := c.vms[id]; m == nil || m.operation != vm.Operation {
		c.vms[id] = &machine{a.Target(), time.Now().Add(c.delay), vm.Operation}
	}
	return answer
}

func (c *cloud) Status(_ context.Context, vm tumblebug.VMRef) (tumblebug.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.vms[vm.Life+"/"+vm.VMID]
	switch {
	case m == nil:
		return "", tumblebug.ErrNoVM
	case time.Now().Before(m.at):
		return tumblebug.Suspending, nil
	}
	return m.then, nil
}

// pause delays all requests until resume.
func (c *cloud) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = make(chan struct{})
}

func (c *cloud) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.paused)
	c.paused = nil
}

// left returns the number of resources that are left.
func (c *cloud) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.resources)
}
