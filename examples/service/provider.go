package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// provider simulates the cloud where the VMs run. Its methods are the work of operations.
// Every call takes its time, and may be repeated: another replica does the work again after
// a crash, so a real provider gets the name of the VM as its idempotency key.
type provider struct {
	delay  time.Duration
	called atomic.Bool // with the image "busy"
}

// create creates the VM. The commit that makes it running writes its address. The image
// "missing" does not exist, and the first call for the image "busy" is refused.
func (p *provider) create(ctx context.Context, image []byte) error {
	if err := p.change(ctx, nil); err != nil {
		return err
	}
	switch {
	case string(image) == "missing":
		return lifecycle.Permanent(errors.New("the provider has no such image")) // no further attempt
	case string(image) == "busy" && p.called.CompareAndSwap(false, true):
		return errors.New("the provider is busy")
	}
	sum := crc32.ChecksumIEEE([]byte(lifecycle.TaskOf(ctx).ID))
	address := fmt.Sprintf("10.%d.%d.%d", byte(sum>>16), byte(sum>>8), byte(sum))
	lifecycle.EditOutcome(ctx, func(vm *VM) error { vm.Address = address; return nil })
	return nil
}

// change starts, stops or deletes the VM. A real provider has a method for each.
func (p *provider) change(ctx context.Context, _ []byte) error {
	select {
	case <-time.After(p.delay):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
