package edgecloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Upgrade asks for another version of the CRM: Ready to UpdateRequested. From then
// on until the cloudlet is Ready again, changes of its instances are refused; in
// UpdateError too, until a person has repaired it. The cloudlet must have a CRM
// that is Ready, to do it, and no instance in transition; both are part of the
// commit, and so is which version that CRM has.
//
// Errors: [ErrInUse] with the instances in transition, [lifecycle.ErrInvalid]
// without a version or for the one that runs, [lifecycle.ErrBusy],
// [lifecycle.ErrPrecondition], those of [lifecycle.Manager.Fire].
func (c *Cloudlets) Upgrade(ctx context.Context, id, version, reason string) (CloudletRecord, error) {
	if version == "" {
		return CloudletRecord{}, c.refusedUpgrade(id, Upgrade, User, fmt.Errorf("%w: no version", lifecycle.ErrInvalid))
	}
	var part *lifecycle.Part[CloudletState, CloudletEvent, Cloudlet]
	err := together(ctx, func() ([]lifecycle.AnyPart, error) {
		at, err := c.start.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if at.State != CloudletReady {
			needed := c.start.Require(id, CloudletReady)
			now, err := c.c.store.Get(ctx, needed.Key)
			if err == nil {
				err = c.refusedUpgrade(id, Upgrade, User, &lifecycle.PreconditionError{Precondition: needed, Current: now})
			}
			return nil, err
		}
		edit := func(u *Cloudlet) error {
			runs := at.Payload.Version
			if runs == "" {
				runs = u.Version
			}
			if version == runs {
				return fmt.Errorf("%w: the CRM has version %s", lifecycle.ErrInvalid, version)
			}
			u.Version, u.OldVersion = version, runs
			return nil
		}
		part = c.upgrade.Firing(id, Upgrade, User, &cloudletChange{
			Edit: edit, Reason: reason,
		})
		// If another CRM has come since, the upgrade is decided anew.
		runs := c.start.Firing(id, Replacing, Controller, &cloudletChange{Expect: at.Revision, Force: true})
		rest, err := touching(ctx, c.c.cloudletRefs, id, func() error { return c.c.movingOn(ctx, id) })
		return []lifecycle.AnyPart{part, runs, rest}, err
	})
	if err != nil {
		return CloudletRecord{}, err
	}
	return part.Record(), nil
}

// AckUpgrade is the old CRM that has begun: UpdateRequested to Updating. It starts
// the new one.
//
// Errors: [lifecycle.ErrStale] for a connection that is none of the cloudlet's,
// [fsm.ErrWrongActor] for one that is not the old CRM's, [fsm.ErrNotAllowed],
// those of [lifecycle.Manager.Fire].
func (c *Cloudlets) AckUpgrade(ctx context.Context, id string, notifyID int64) error {
	return c.says(ctx, id, notifyID, AckUpgrade, nil)
}

// BringUpFailed is the old CRM that could not bring up the new one, and has
// cleaned it up: UpdateRequested, Updating or InitOk to UpdateError. It is left
// there for a person.
//
// Errors: as of AckUpgrade.
func (c *Cloudlets) BringUpFailed(ctx context.Context, id string, notifyID int64, reason string) error {
	return c.says(ctx, id, notifyID, BringUpFailed, &cloudletChange{Reason: reason})
}

// says fires an event by whoever speaks under a notify id. Said by no CRM of an
// upgrade, the table refuses it.
func (c *Cloudlets) says(ctx context.Context, id string, notifyID int64, e CloudletEvent, change *cloudletChange) error {
	if change == nil {
		change = &cloudletChange{}
	}
	for {
		now, speaker, err := c.speaker(ctx, id, notifyID)
		if err != nil {
			return c.refusedUpgrade(id, e, "", err)
		}
		change.Operation = now.Operation
		_, err = c.upgrade.Fire(ctx, id, e, speaker, change)
		if !errors.Is(err, lifecycle.ErrConflict) || ctx.Err() != nil {
			return err
		}
	}
}

// KeepOld is the old CRM that goes on after a failed upgrade, and sends all its
// data again: UpdateError stays UpdateError. If the new CRM had taken its place,
// it takes it back and is Ready.
//
// Errors: as of AckUpgrade.
func (c *Cloudlets) KeepOld(ctx context.Context, id string, notifyID int64) error {
	reason := ""
	if now, err := c.upgrade.Get(ctx, id); err == nil && now.State == CloudletUpdateError {
		reason = now.Reason // why it failed is not forgotten
	}
	// A connection that has dropped does not serve on: its CRM is to start up.
	if at, err := c.start.Get(ctx, id); err == nil && at.State == CloudletOffline && at.Payload.NotifyID == notifyID {
		return c.refusedUpgrade(id, KeepOld, CRMv1, fmt.Errorf("%w: notify id %d has dropped", lifecycle.ErrStale, notifyID))
	}
	if err := c.says(ctx, id, notifyID, KeepOld, &cloudletChange{Reason: reason}); err != nil {
		return err
	}
	for {
		at, err := c.start.Get(ctx, id)
		if err != nil || at.State == CloudletReady && at.Payload.NotifyID == notifyID {
			return err
		}
		change := &cloudletChange{Operation: at.Operation}
		if at.Payload.NotifyID == notifyID {
			switch at.State {
			case CloudletInit:
				_, err = c.start.Fire(ctx, id, AckStart, Controller, change)
			case CloudletInitOk:
				_, err = c.start.Fire(ctx, id, Gathered, CRM, change)
			default: // it has dropped meanwhile
				return c.refusedUpgrade(id, KeepOld, CRMv1, fmt.Errorf("%w: notify id %d has dropped", lifecycle.ErrStale, notifyID))
			}
		} else {
			change.Expect, change.Edit = at.Revision, back(at.State, notifyID)
			_, err = c.start.Fire(ctx, id, StartUp, CRM, change)
		}
		overtaken := errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, fsm.ErrNotAllowed)
		if err != nil && (!overtaken || ctx.Err() != nil) {
			return err
		}
	}
}

// Repaired is a person's way out of UpdateError, by force: the cloudlet runs a CRM
// of this version, and its instances may be changed again. It does not move the
// record of the creation: a CRM that connected in the upgrade and was refused when
// it had [Cloudlets.Gathered] its data says so again, or starts up anew if it was
// silent for [StartTimeout]; until then instances and upgrades are refused. The old
// CRM that is to serve on says [Cloudlets.KeepOld] before.
//
// Errors: [lifecycle.ErrInvalid] without a version or a reason, [fsm.ErrNotAllowed]
// in another state, those of [lifecycle.Manager.Fire].
func (c *Cloudlets) Repaired(ctx context.Context, id, version, reason string) error {
	if version == "" || reason == "" {
		return c.refusedUpgrade(id, Repaired, User, fmt.Errorf("%w: a repair needs a version and a reason", lifecycle.ErrInvalid))
	}
	_, err := c.upgrade.Fire(ctx, id, Repaired, User, &cloudletChange{
		Force: true, Reason: reason,
		Edit: func(u *Cloudlet) error { *u = Cloudlet{Version: version}; return nil },
	})
	return err
}

func (c *Cloudlets) refusedUpgrade(id string, e CloudletEvent, actor fsm.Actor, err error) error {
	err = c.refused(id, e, actor, err)
	if le, ok := err.(*lifecycle.Error); ok && le.Machine == c.start.Machine().Table().Name && le.Verb == "fire" {
		le.Machine = c.upgrade.Machine().Table().Name
	}
	return err
}
