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
	d := &demo{out: out, hypervisor: newHypervisor(), timeout: timeout}
	var err error
	d.cloud, err = ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Method: d.method, StuckAfter: timeout, Retention: timeout})
	if err != nil {
		return err
	}
	defer d.end(ctx)
	d.setUp(ctx)
	d.maintenance(ctx)
	d.unanswered(ctx)
	d.updates(ctx)
	d.retention(ctx)
	d.verify(ctx)
	return d.err
}

// setUp deploys the machines, and adds their disks.
func (d *demo) setUp(ctx context.Context) {
	d.printf("machines m1, m2 and m3 run on node n1; disks d1 and d2 are attached to m2 and m3")
	d.add(ctx, ovc.KindNode, "n1")
	d.add(ctx, ovc.KindDisk, "d1")
	d.add(ctx, ovc.KindDisk, "d2")
	for _, vm := range machines {
		d.add(ctx, ovc.KindVM, vm)
		d.wait(ctx, d.do(ctx, ovc.KindVM, vm, ovc.Deploy, ""))
	}
	d.wait(ctx, d.do(ctx, ovc.KindVM, "m2", ovc.AddDisk, "d1"))
	d.wait(ctx, d.do(ctx, ovc.KindVM, "m3", ovc.AddDisk, "d2"))
}

// maintenance migrates the machines of the node while users request actions.
func (d *demo) maintenance(ctx context.Context) {
	d.printf("n1 is put in maintenance: its machines are migrated, and keep their status")
	n1 := d.do(ctx, ovc.KindNode, "n1", ovc.PutInMaintenance, "")
	d.await(ctx, len(machines))
	d.show(ctx)
	d.printf("destroy m1 and detach d1: both are accepted, and wait")
	m1 := d.do(ctx, ovc.KindVM, "m1", ovc.Destroy, "")
	m2 := d.do(ctx, ovc.KindVM, "m2", ovc.DetachDisk, "d1")
	d.show(ctx)
	d.printf("stop m1 and delete m2: both are refused")
	_, err := d.cloud.Do(ctx, ovc.KindVM, "m1", ovc.Stop, nil)
	d.refused(err)
	_, err = d.cloud.Do(ctx, ovc.KindVM, "m2", ovc.Delete, nil)
	d.refused(err)
	d.printf("the migrations end, and the accepted actions are performed")
	close(d.hypervisor.held[ovc.Migrate])
	d.wait(ctx, n1, m1, m2)
	d.printf("  methods of m1: %s", strings.Join(d.hypervisor.methods("m1"), ", "))
	if n := len(d.cloud.Queuer().Inspect(ovc.KindVM.Key("m1"))); n > 0 {
		d.keep(fmt.Errorf("m1 is destroyed and has %d actions in its queue", n))
	}
	d.show(ctx)
}

// unanswered reboots a machine. The answer arrives after the timeout.
func (d *demo) unanswered(ctx context.Context) {
	d.printf("reboot m2: the hypervisor does not answer")
	reboot := d.do(ctx, ovc.KindVM, "m2", ovc.Reboot, "")
	d.await(ctx, 1)
	for _, r := range d.heal(ctx).Stuck {
		d.printf("  %s: stuck in %s, moved to %s", r.ID, r.From, r.To)
	}
	close(d.hypervisor.held[ovc.Reboot])
	if d.err != nil {
		return
	}
	if _, err := reboot.Wait(ctx); !errors.Is(err, lifecycle.ErrStale) {
		d.keep(fmt.Errorf("the late answer of m2 was written: %w", err))
	}
	d.printf("  the late answer has no effect")
}

// updates changes a status, like agents that perform actions without the service.
func (d *demo) updates(ctx context.Context) {
	d.printf("two agents set m2 to PAUSING, and one of them to PAUSED")
	_, err := d.cloud.UpdateStatus(ctx, ovc.KindVM, "m2", ovc.Running, ovc.Pausing)
	d.keep(err)
	_, err = d.cloud.UpdateStatus(ctx, ovc.KindVM, "m2", ovc.Running, ovc.Pausing)
	d.refused(err)
	_, err = d.cloud.UpdateStatus(ctx, ovc.KindVM, "m2", ovc.Pausing, ovc.Paused)
	d.keep(err)
}

// retention deletes a machine. The service destroys it after the retention period.
func (d *demo) retention(ctx context.Context) {
	d.printf("delete m3 with d2; after the retention period both are destroyed")
	d.wait(ctx, d.do(ctx, ovc.KindVM, "m3", ovc.Delete, ""))
	d.show(ctx)
	d.wait(ctx, d.heal(ctx).Expired...)
	d.show(ctx)
}

// ends are the states that the objects must end in.
const ends = "m1 DESTROYED, m2 PAUSED, m3 DESTROYED, d1 CREATED, d2 DESTROYED, n1 MAINTENANCE"

// verify keeps an error if an object is in a wrong state.
func (d *demo) verify(ctx context.Context) {
	if states := d.states(ctx); states != ends {
		d.keep(fmt.Errorf("the states are %s", states))
	}
	d.printf("end: every object is in the expected state")
}
