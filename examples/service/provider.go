package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// provider simulates the cloud where the VMs run. Every call takes its time, and may be
// repeated: another replica does the work again after a crash, so a real provider gets the
// name of the VM as its idempotency key.
type provider struct {
	delay  time.Duration
	called sync.Map // by name of the VM
}

var (
	errBusy    = errors.New("the provider is busy")
	errNoImage = errors.New("the provider has no such image")
)

// create returns the address of the VM. The image "missing" does not exist, and the first
// call for the image "busy" is refused.
func (p *provider) create(ctx context.Context, name, image string) (string, error) {
	if err := p.wait(ctx); err != nil {
		return "", err
	}
	if image == "missing" {
		return "", lifecycle.Permanent(errNoImage) // no further attempt
	}
	if _, called := p.called.LoadOrStore(name, true); image == "busy" && !called {
		return "", errBusy
	}
	sum := crc32.ChecksumIEEE([]byte(name))
	return fmt.Sprintf("10.%d.%d.%d", byte(sum>>16), byte(sum>>8), byte(sum)), nil
}

// do starts, stops or deletes the VM.
func (p *provider) do(ctx context.Context, _ Event, _ string) error { return p.wait(ctx) }

func (p *provider) wait(ctx context.Context) error {
	timer := time.NewTimer(p.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
