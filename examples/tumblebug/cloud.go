package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// cloud simulates the providers.
type cloud struct {
	gate sync.RWMutex // locked by the steps of main.go: no action on a VM starts

	mu        sync.Mutex // guards what follows
	vms       map[string]tumblebug.State
	resources map[tumblebug.Resource]bool
}

func newCloud() *cloud {
	return &cloud{vms: map[string]tumblebug.State{}, resources: map[tumblebug.Resource]bool{}}
}

var (
	errRejected = fmt.Errorf("%w: quota exceeded", tumblebug.ErrRejected) // the request has no effect
	errLost     = errors.New("no answer")                                 // the request has an effect
)

// faults are the requests that get an error: actions on a VM, and keys at a provider.
var faults = map[string]error{"Create web-3": errRejected, "Suspend db-2": errLost, "sshKey ncp": errRejected}

func (c *cloud) Validate(context.Context, tumblebug.SubGroup) error { return nil }

func (c *cloud) Prepare(_ context.Context, r tumblebug.Resource) error {
	if err := faults[string(r.Kind)+" "+r.Provider]; err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
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

func (c *cloud) Control(_ context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	err := faults[string(a)+" "+vm.VMID]
	if err != errRejected {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.vms[id(vm)] = a.Target()
	}
	return err
}

func (c *cloud) Status(_ context.Context, vm tumblebug.VMRef) (tumblebug.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, exists := c.vms[id(vm)]
	if !exists {
		return "", tumblebug.ErrNoVM
	}
	return state, nil
}

// id returns the name of a VM at its provider. The name of an MCI may be used again.
func id(vm tumblebug.VMRef) string { return vm.Life + "/" + vm.VMID }
