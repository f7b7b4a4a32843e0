package crashtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

type (
	state string
	event string
)

// vm is a table with every reaction to a dead owner: creating and starting return to the
// origin, stopping fails, rebooting and deleting start again.
var vm = fsm.Must[struct{}](fsm.Spec[state, event]{
	Name: "vm", Initial: "none", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[state]{
		{Name: "none", Kind: fsm.Absent},
		{Name: "stopped"},
		{Name: "running"},
		{Name: "failed", Kind: fsm.Failed},
		{Name: "creating", Kind: fsm.Transitional},
		{Name: "starting", Kind: fsm.Transitional},
		{Name: "stopping", Kind: fsm.Transitional},
		{Name: "rebooting", Kind: fsm.Transitional},
		{Name: "deleting", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "create", "creating").By("user"),
		fsm.Move[state, event]("creating", "done", "stopped").By("worker"),
		fsm.Return[state, event]("creating", "fail").By("worker"),
		fsm.Return[state, event]("creating", "late").After(time.Minute),
		fsm.Move[state, event]("stopped", "start", "starting").AlsoFrom("failed").By("user"),
		fsm.Move[state, event]("starting", "done", "running").By("worker"),
		fsm.Return[state, event]("starting", "fail").By("worker"),
		fsm.Return[state, event]("starting", "late").After(time.Minute),
		fsm.Move[state, event]("running", "stop", "stopping").By("user"),
		fsm.Move[state, event]("stopping", "done", "stopped").By("worker"),
		fsm.Return[state, event]("stopping", "fail").By("worker"),
		fsm.Move[state, event]("stopping", "late", "failed").After(time.Minute),
		fsm.Move[state, event]("running", "reboot", "rebooting").By("user"),
		fsm.Move[state, event]("rebooting", "done", "running").By("worker"),
		fsm.Move[state, event]("rebooting", "fail", "failed").By("worker"),
		fsm.Redo[state, event]("rebooting", "late", time.Minute),
		fsm.Move[state, event]("stopped", "delete", "deleting").AlsoFrom("failed").By("user"),
		fsm.Move[state, event]("starting", "delete", "deleting").By("user").Superseding(),
		fsm.Move[state, event]("deleting", "done", "none").By("worker"),
		fsm.Move[state, event]("deleting", "fail", "failed").By("worker"),
		fsm.Redo[state, event]("deleting", "late", time.Minute),
	),
})

type vms = *lifecycle.Manager[state, event, struct{}]

// startVMs makes a process that does the work of VMs.
func startVMs(ctx context.Context, p *Process) (vms, error) {
	if err := p.Join(ctx, 30*time.Second); err != nil {
		return nil, err
	}
	return Manage(p, vm, &lifecycle.Config[event]{
		WorkerActor: "worker", Done: []event{"done"}, Failed: []event{"fail"},
		Handlers: map[string]lifecycle.Handler{
			"work": func(ctx context.Context, _ []byte) error { return p.Effect(ctx) },
			"hang": func(ctx context.Context, _ []byte) error {
				<-ctx.Done()
				return context.Cause(ctx)
			},
			// The duration is not a multiple of the tick, so that the end of the work and
			// the writes of the tick have an order.
			"slow": func(ctx context.Context, _ []byte) error {
				select {
				case <-time.After(13 * time.Second):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return p.Effect(ctx)
			},
			"fail": func(context.Context, []byte) error { return errFlat },
		},
	}), nil
}

var errFlat = errors.New("the battery is flat")

func memory(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() }

func memoryHarness() Harness { return Harness{New: memory} }

func key(id string) lifecycle.Key { return lifecycle.Key{Machine: "vm", ID: id} }

// bring requests an operation, unless the object is in the state to.
func bring(id string, e event, to state, handler string) func(context.Context, vms) error {
	return func(ctx context.Context, m vms) error {
		rec, err := m.Get(ctx, id)
		switch {
		case err == nil && rec.State == to:
			return nil
		case errors.Is(err, lifecycle.ErrNotFound) && to == "none":
			return nil
		case err != nil && !errors.Is(err, lifecycle.ErrNotFound):
			return err
		}
		ticket, err := m.Do(ctx, id, e, "user", lifecycle.Named(handler, nil), nil)
		if err != nil {
			return err
		}
		_, err = ticket.Wait(ctx)
		return err
	}
}

// life is one VM from its creation to its end, and another VM that does not start.
func life(ctx context.Context, w *Clients[vms]) error {
	for _, step := range []struct {
		id      string
		e       event
		to      state
		handler string
	}{
		{"a", "create", "stopped", "work"},
		{"a", "start", "running", "work"},
		{"b", "create", "stopped", "work"},
	} {
		if err := w.Insist("alpha", string(step.e)+" "+step.id, bring(step.id, step.e, step.to, step.handler)); err != nil {
			return err
		}
	}
	if err := w.Ask("alpha", "reboot a", func(ctx context.Context, m vms) error {
		ticket, err := m.Do(ctx, "a", "reboot", "user", lifecycle.Named("work", nil), nil)
		if err == nil {
			_, err = ticket.Wait(ctx)
		}
		return err
	}); err != nil && w.Faultless() {
		return err
	}
	err := w.Ask("alpha", "start b in vain", bring("b", "start", "running", "fail"))
	if w.Faultless() && !errors.Is(err, errFlat) {
		return fmt.Errorf("the start of b: %w", err)
	}
	w.Pass(20 * time.Second)
	if err := w.Insist("alpha", "destroy a", destroy("a")); err != nil {
		return err
	}
	return w.Insist("alpha", "override b", func(ctx context.Context, m vms) error {
		rec, err := m.Get(ctx, "b")
		if err != nil || rec.State == "failed" {
			return err
		}
		_, err = m.Override(ctx, "b", "failed", "user", "it does not start", nil)
		return err
	})
}

// destroy stops and deletes.
func destroy(id string) func(context.Context, vms) error {
	return func(ctx context.Context, m vms) error {
		if rec, err := m.Get(ctx, id); err == nil && rec.State == "running" {
			if err := bring(id, "stop", "stopped", "work")(ctx, m); err != nil {
				return err
			}
		}
		return bring(id, "delete", "none", "work")(ctx, m)
	}
}

// TestLife runs one process, and the processes that replace it.
func TestLife(t *testing.T) {
	Run(t, memoryHarness(), Scenario[vms]{
		Start: startVMs, Script: life,
		Ends: map[lifecycle.Key][]string{key("a"): {""}, key("b"): {"failed"}},
	})
}
