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

// demo performs the steps of main.go. It keeps the first error, and prints nothing after it.
type demo struct {
	out        io.Writer
	cloud      *ovc.Service
	hypervisor *hypervisor
	timeout    time.Duration
	err        error
}

func (d *demo) printf(format string, args ...any) {
	if d.err == nil {
		fmt.Fprintf(d.out, format+"\n", args...)
	}
}

// keep keeps the first error.
func (d *demo) keep(err error) {
	if d.err == nil {
		d.err = err
	}
}

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

func (d *demo) add(ctx context.Context, kind ovc.Kind, id string) {
	_, err := d.cloud.Add(ctx, kind, id, "", ovc.Model{})
	d.keep(err)
}

// do requests an action, which must be accepted.
func (d *demo) do(ctx context.Context, kind ovc.Kind, id string, action ovc.Event, with string) *ovc.Ticket {
	t, err := d.cloud.Do(ctx, kind, id, action, &ovc.Options{With: with})
	d.keep(err)
	return t
}

// wait waits for the outcomes of actions, which must succeed.
func (d *demo) wait(ctx context.Context, tickets ...*ovc.Ticket) {
	for _, t := range tickets {
		if d.err == nil {
			_, err := t.Wait(ctx)
			d.keep(err)
		}
	}
}

// refused prints the error of a request that must be refused.
func (d *demo) refused(err error) {
	if err == nil {
		d.keep(errors.New("a request was not refused"))
	}
	d.printf("  %d: %v", lifecycle.HTTPStatus(err), err)
}

// await returns when n held methods have started.
func (d *demo) await(ctx context.Context, n int) {
	for i := 0; i < n && d.err == nil; i++ {
		select {
		case <-d.hypervisor.started:
		case <-ctx.Done():
			d.keep(lifecycle.Ended(ctx))
		}
	}
}

// heal waits for the timeout, and moves stuck and expired objects.
func (d *demo) heal(ctx context.Context) (healing ovc.Healing) {
	if d.err == nil {
		time.Sleep(d.timeout + d.timeout/4)
		healing, d.err = d.cloud.SelfHeal(ctx)
	}
	return healing
}

func (d *demo) states(ctx context.Context) string {
	var list []string
	for kind := range ovc.Kinds() {
		for rec, err := range d.cloud.Objects(kind).All(ctx, lifecycle.Select[ovc.State]{}) {
			d.keep(err)
			list = append(list, rec.ID+" "+string(rec.State))
		}
	}
	return strings.Join(list, ", ")
}

// show prints all states.
func (d *demo) show(ctx context.Context) { d.printf("  %s", d.states(ctx)) }

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

// methods returns the methods that have ended for an object.
func (h *hypervisor) methods(id string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[id]
}
