package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// machines are those of node n1.
var machines = []string{"m1", "m2", "m3"}

// demo performs the steps of main.go.
type demo struct {
	out        io.Writer
	cloud      *ovc.Service
	hypervisor *hypervisor
	timeout    time.Duration
}

func (d *demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// end ends held methods, and waits until nothing runs.
func (d *demo) end(ctx context.Context) {
	close(d.hypervisor.ended)
	_ = d.cloud.Close(context.WithoutCancel(ctx)) // it waits for all actions
}

// method performs one method. PutInMaintenance migrates the machines; the hypervisor
// performs all other methods.
func (d *demo) method(ctx context.Context, call ovc.Call) error {
	if call.Method != ovc.PutInMaintenance {
		d.hypervisor.perform(call)
		return nil
	}
	var group errgroup.Group
	for _, vm := range machines {
		migration, err := d.cloud.Migrate(ctx, vm, &ovc.Options{Args: json.RawMessage(`{"node":"n2"}`)})
		if err != nil {
			return err
		}
		group.Go(func() error { return migration.Wait(ctx) })
	}
	return group.Wait()
}

func (d *demo) add(ctx context.Context, kind ovc.Kind, id string) error {
	_, err := d.cloud.Add(ctx, kind, id, "", ovc.Model{})
	return err
}

// perform requests an action and waits for its outcome.
func (d *demo) perform(ctx context.Context, kind ovc.Kind, id string, action ovc.Event, with string) error {
	t, err := d.cloud.Do(ctx, kind, id, action, &ovc.Options{With: with})
	if err == nil {
		_, err = t.Wait(ctx)
	}
	return err
}

// refused prints the error of a request that must be refused.
func (d *demo) refused(err error) error {
	if err == nil {
		return errors.New("a request was not refused")
	}
	d.printf("  %d: %v", lifecycle.HTTPStatus(err), err)
	return nil
}

// heal waits for the timeout, and moves stuck and expired objects.
func (d *demo) heal(ctx context.Context) (ovc.Healing, error) {
	select {
	case <-time.After(d.timeout + d.timeout/4):
		return d.cloud.SelfHeal(ctx)
	case <-ctx.Done():
		return ovc.Healing{}, lifecycle.Ended(ctx)
	}
}

func (d *demo) states(ctx context.Context) (list []string, err error) {
	for kind := range ovc.Kinds() {
		for rec, err := range d.cloud.Objects(kind).All(ctx, lifecycle.Select[ovc.State]{}) {
			if err != nil {
				return nil, err
			}
			list = append(list, rec.ID+" "+string(rec.State))
		}
	}
	return list, nil
}

// show prints all states.
func (d *demo) show(ctx context.Context) error {
	list, err := d.states(ctx)
	d.printf("  %s", strings.Join(list, ", "))
	return err
}

// hypervisor performs methods at once, and held ones after its answer. It has no context,
// like many clients of remote services.
type hypervisor struct {
	held    map[ovc.Event]chan struct{} // by method; closed: the hypervisor answers
	started chan struct{}               // receives for each held method that starts
	ended   chan struct{}               // closed at the end: no method is held

	mu    sync.Mutex
	calls map[string][]string // methods that have ended, by object
}

func newHypervisor() *hypervisor {
	return &hypervisor{
		held:    map[ovc.Event]chan struct{}{ovc.Migrate: make(chan struct{}), ovc.Reboot: make(chan struct{})},
		started: make(chan struct{}, 10), ended: make(chan struct{}), calls: map[string][]string{},
	}
}

func (h *hypervisor) perform(call ovc.Call) {
	if answer := h.held[call.Method]; answer != nil {
		h.started <- struct{}{}
		select {
		case <-answer:
		case <-h.ended:
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[call.ID] = append(h.calls[call.ID], strings.TrimSpace(fmt.Sprintf("%s %s", call.Method, call.Args)))
}

// await returns when n held methods have started.
func (h *hypervisor) await(ctx context.Context, n int) error {
	for range n {
		select {
		case <-h.started:
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	return nil
}
