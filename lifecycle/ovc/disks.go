package ovc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// partner is an action on a machine and a disk, as the other one of the two sees it.
var partner = map[Event]Event{
	AddDisk: Assign, AttachDisk: Attach, DetachDisk: Detach,
	Assign: AddDisk, Attach: AttachDisk, Detach: DetachDisk,
}

// pair moves a machine and a disk in one operation, which is that of the requested
// object. A detachment changes both models when it begins. If it does not succeed,
// both models are restored like every model.
func (r *request) pair(ctx context.Context, vm, disk string, action Event) (*Ticket, error) {
	editDisk := func(d *Model) error {
		switch {
		case action != Detach:
			d.VM = vm
		case d.VM != vm:
			return fmt.Errorf("%w: disk %q is not attached to %q", lifecycle.ErrPrecondition, disk, vm)
		default:
			d.VM = ""
		}
		return nil
	}
	editVM := func(m *Model) error {
		m.Disks = slices.DeleteFunc(m.Disks, func(d string) bool { return d == disk })
		if action != Detach {
			m.Disks = append(m.Disks, disk)
		}
		return nil
	}
	vms, disks := r.s.managers[KindVM], r.s.managers[KindDisk]
	work := r.work(job{Kind: KindVM, ID: vm, Methods: []Event{partner[action]}, Disks: []string{disk}, Args: r.options.Args})
	work.With = &lifecycle.Tx{}
	if r.kind == KindVM {
		disks.In(work.With).Fire(disk, action, API, r.change(editDisk))
		return vms.Do(ctx, vm, partner[action], API, work, r.ownChange(editVM))
	}
	vms.In(work.With).Fire(vm, partner[action], API, r.change(editVM))
	return disks.Do(ctx, disk, action, API, work, r.ownChange(editDisk))
}

// disk moves a disk, and takes the turn of the machine that it is attached to. A
// detachment moves that machine too.
func (r *request) disk(ctx context.Context) (*Ticket, error) {
	m := r.s.managers[KindDisk]
	rec, err := m.Get(ctx, r.id)
	if err != nil {
		return nil, err
	}
	vm, want := rec.Payload.VM, r.options.With
	if r.action == Detach && rec.State == Assigned {
		if want != "" && vm != want {
			return nil, fmt.Errorf("ovc: %w: disk %q is not attached to %q", lifecycle.ErrPrecondition, r.id, want)
		}
		if vm != "" {
			return r.pair(ctx, vm, r.id, Detach)
		}
	}
	work := r.work(r.job())
	change := r.ownChange(nil)
	// Another action that attaches or detaches the disk meanwhile changes its
	// revision, and then this action is refused. The bad schedule without it: a disk
	// that is being attached is read, is attached, and is then detached alone; its
	// machine keeps it.
	change.Expect = rec.Revision
	if vm != "" && rec.State == Assigned {
		work.Also = []lifecycle.Key{KindVM.Key(vm)}
	}
	return m.Do(ctx, r.id, r.action, API, work, change)
}

// changing reports whether a disk is in an action that may leave it attached. One
// that is destroyed out of the bin is not.
func changing(disk Record) bool {
	return IsTransition(disk.State) && disk.Origin != Deleted && disk.Origin != ToBeDeleted
}

// withDisks deletes or destroys a machine and the disks that are attached to it.
func (r *request) withDisks(ctx context.Context) (*Ticket, error) {
	vms, disks := r.s.managers[KindVM], r.s.managers[KindDisk]
	rec, err := vms.Get(ctx, r.id)
	if err != nil {
		return nil, err
	}
	var attached []string
	var with lifecycle.Tx
	for _, id := range rec.Payload.Disks {
		disk, err := disks.Get(ctx, id)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case disk.State != Assigned && !changing(disk):
			continue // it is in the bin, or was destroyed
		case disk.Payload.VM != r.id && (disk.Payload.VM != "" || disk.State == Assigned):
			continue // it was detached by a change of its status, and is attached elsewhere
		}
		attached = append(attached, id)
		own := r.change(nil)
		own.Expect = disk.Revision // UpdateStatus detaches a disk without a change of the machine
		disks.In(&with).Fire(id, r.action, API, own)
	}
	work := r.work(r.job(attached...))
	work.With = &with
	change := r.ownChange(nil)
	change.Expect = rec.Revision // a disk that is attached meanwhile changes the machine
	return vms.Do(ctx, r.id, r.action, API, work, change)
}
