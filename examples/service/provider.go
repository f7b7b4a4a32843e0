package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// provider is the cloud where the VMs run. Its methods are the work of operations. Every call
// takes its time, and may be repeated: another replica does the work again after a crash.
type provider struct {
	delay  time.Duration
	url    string // of the provider's API; empty: all calls are simulated
	client http.Client
	called atomic.Bool // with the image "busy"
}

// create creates the VM. The commit that makes it running writes its address. The image
// "missing" does not exist, and the first call for the image "busy" is refused.
func (p *provider) create(ctx context.Context, image []byte) error {
	if err := p.call(ctx, Create); err != nil {
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

func (p *provider) start(ctx context.Context, _ []byte) error  { return p.call(ctx, Start) }
func (p *provider) stop(ctx context.Context, _ []byte) error   { return p.call(ctx, Stop) }
func (p *provider) remove(ctx context.Context, _ []byte) error { return p.call(ctx, Delete) }

// order is the body of a request to the provider.
type order struct {
	Action Event `json:"action"`
	// Operation is the fencing token. A replica that was paused, or cut off from the
	// database, may send its order after another replica has done the work again. The
	// provider refuses an order with a lower number than the VM had before.
	Operation lifecycle.OpID  `json:"operation"`
	Admission lifecycle.Token `json:"admission"` // the idempotency key
	Replica   string          `json:"replica"`
}

// call waits for the delay, and then sends an order to the provider, if it has an API.
func (p *provider) call(ctx context.Context, action Event) error {
	select {
	case <-time.After(p.delay):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.url == "" {
		return nil
	}
	task := lifecycle.TaskOf(ctx)
	body, err := json.Marshal(order{action, task.Operation, task.Admission, task.Owner})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, p.url+"/"+url.PathEscape(task.ID), bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		return lifecycle.Permanent(errors.New("the provider has seen a later operation of the VM"))
	}
	return fmt.Errorf("the provider answers %s", answer.Status)
}
