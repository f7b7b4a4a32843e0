// Ovc runs the objects of a small OpenvCloud. A node is put in maintenance while users
// request actions on its machines. A hypervisor does not answer. Two agents update one
// status. A machine is deleted with its disk, and both are destroyed later.
//
// It prints the states and the text of every refusal. It fails if an object ends in a wrong
// state.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout, time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "ovc:", err)
		os.Exit(1)
	}
}

// run performs all steps. The timeout of actions and the retention period are equal.
func run(ctx context.Context, out io.Writer, timeout time.Duration) error {
	h := newHypervisor()
	d := &demo{out: out, hypervisor: h, timeout: timeout}
	var err error
	d.cloud, err = ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Method: d.method, StuckAfter: timeout, Retention: timeout})
	if err != nil {
		return err
	}
	defer d.end(ctx)
	for _, step := range []func(context.Context) error{
		d.setUp, d.maintenance, d.unanswered, d.updates, d.retention, d.verify,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// setUp deploys the machines, and adds their disks.
func (d *demo) setUp(ctx context.Context) error {
	d.printf("machines m1, m2 and m3 run on node n1; disks d1 and d2 are attached to m2 and m3")
	err := errors.Join(d.add(ctx, ovc.KindNode, "n1"), d.add(ctx, ovc.KindDisk, "d1"), d.add(ctx, ovc.KindDisk, "d2"))
	for _, vm := range machines {
		err = errors.Join(err, d.add(ctx, ovc.KindVM, vm), d.perform(ctx, ovc.KindVM, vm, ovc.Deploy, ""))
	}
	return errors.Join(
		err,
		d.perform(ctx, ovc.KindVM, "m2", ovc.AddDisk, "d1"),
		d.perform(ctx, ovc.KindVM, "m3", ovc.AddDisk, "d2"),
	)
}

// maintenance migrates the machines of the node while users request actions.
func (d *demo) maintenance(ctx context.Context) error {
	d.printf("n1 is put in maintenance: its machines are migrated, and keep their status")
	n1, err := d.cloud.Do(ctx, ovc.KindNode, "n1", ovc.PutInMaintenance, nil)
	if err := errors.Join(err, d.hypervisor.await(ctx, len(machines)), d.show(ctx)); err != nil {
		return err
	}
	d.printf("destroy m1 and detach d1: both are accepted, and wait")
	m1, err1 := d.cloud.Do(ctx, ovc.KindVM, "m1", ovc.Destroy, nil)
	m2, err2 := d.cloud.Do(ctx, ovc.KindVM, "m2", ovc.DetachDisk, &ovc.Options{With: "d1"})
	if err := errors.Join(err1, err2, d.show(ctx)); err != nil {
		return err
	}
	d.printf("stop m1 and delete m2: both are refused")
	_, err1 = d.cloud.Do(ctx, ovc.KindVM, "m1", ovc.Stop, nil)
	_, err2 = d.cloud.Do(ctx, ovc.KindVM, "m2", ovc.Delete, nil)
	err = errors.Join(d.refused(err1), d.refused(err2))
	d.printf("the migrations end, and the accepted actions are performed")
	close(d.hypervisor.held[ovc.Migrate])
	for _, t := range []*ovc.Ticket{n1, m1, m2} {
		_, failed := t.Wait(ctx)
		err = errors.Join(err, failed)
	}
	d.printf("  methods of m1: %s", strings.Join(d.hypervisor.calls["m1"], ", "))
	if n := len(d.cloud.Queuer().Inspect(ovc.KindVM.Key("m1"))); n > 0 {
		err = errors.Join(err, fmt.Errorf("m1 is destroyed and has %d actions in its queue", n))
	}
	return errors.Join(err, d.show(ctx))
}

// unanswered reboots a machine. The answer arrives after the timeout.
func (d *demo) unanswered(ctx context.Context) error {
	d.printf("reboot m2: the hypervisor does not answer")
	reboot, err := d.cloud.Do(ctx, ovc.KindVM, "m2", ovc.Reboot, nil)
	if err := errors.Join(err, d.hypervisor.await(ctx, 1)); err != nil {
		return err
	}
	healing, err := d.heal(ctx)
	for _, r := range healing.Stuck {
		d.printf("  %s: stuck in %s, moved to %s", r.ID, r.From, r.To)
	}
	close(d.hypervisor.held[ovc.Reboot])
	_, late := reboot.Wait(ctx)
	if !errors.Is(late, lifecycle.ErrStale) {
		return errors.Join(err, fmt.Errorf("the late answer of m2 was written: %w", late))
	}
	d.printf("  the late answer has no effect")
	return err
}

// updates changes a status, like agents that perform actions without the service.
func (d *demo) updates(ctx context.Context) error {
	d.printf("two agents set m2 to PAUSING, and one of them to PAUSED")
	_, first := d.cloud.UpdateStatus(ctx, ovc.KindVM, "m2", ovc.Running, ovc.Pausing)
	_, second := d.cloud.UpdateStatus(ctx, ovc.KindVM, "m2", ovc.Running, ovc.Pausing)
	_, last := d.cloud.UpdateStatus(ctx, ovc.KindVM, "m2", ovc.Pausing, ovc.Paused)
	return errors.Join(first, d.refused(second), last)
}

// retention deletes a machine. The service destroys it after the retention period.
func (d *demo) retention(ctx context.Context) error {
	d.printf("delete m3 with d2; after the retention period both are destroyed")
	err := errors.Join(d.perform(ctx, ovc.KindVM, "m3", ovc.Delete, ""), d.show(ctx))
	healing, failed := d.heal(ctx)
	err = errors.Join(err, failed)
	for _, t := range healing.Expired {
		_, failed := t.Wait(ctx)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, d.show(ctx))
}

// ends are the states that the objects must end in.
var ends = []string{"m1 DESTROYED", "m2 PAUSED", "m3 DESTROYED", "d1 CREATED", "d2 DESTROYED", "n1 MAINTENANCE"}

// verify returns an error if an object is in a wrong state.
func (d *demo) verify(ctx context.Context) error {
	list, err := d.states(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(list, ends) {
		return fmt.Errorf("the states are %s", strings.Join(list, ", "))
	}
	d.printf("end: every object is in the expected state")
	return nil
}
