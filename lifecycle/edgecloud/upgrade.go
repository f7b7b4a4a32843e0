package edgecloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Upgrade requests another version of the CRM: Ready to UpdateRequested. Until the
// cloudlet is Ready again, changes of its instances are refused; in UpdateError too,
// until an operator has repaired it. The cloudlet must have a CRM that is Ready, and no
// instance in transition. Both are conditions of the commit, and so is the version of
// that CRM.
//
// Errors: [ErrInUse] with the instances in transition, [lifecycle.ErrInvalid]
// without a version or for the one that runs, [lifecycle.ErrBusy],
// [lifecycle.ErrPrecondition], those of [lifecycle.Manager.Fire].
func (c *Cloudlets) Upgrade(ctx context.Context, id, version, reason string) (CloudletRecord, error) {
	if version == "" {
		return CloudletRecord{}, c.refusedUpgrade(id, Upgrade, User, fmt.Errorf("%w: no version", lifecycle.ErrInvalid))
	}
	var upgraded *lifecycle.TxResult[CloudletState, Cloudlet]
	err := together(ctx, func(tx *lifecycle.Tx) error {
		at, err := c.start.Get(ctx, id)
		if err != nil {
			return err
		}
		if at.State != CloudletReady {
			needed := c.start.Require(id, CloudletReady)
			now, err := c.c.store.Get(ctx, needed.Key)
			if err == nil {
				err = c.refusedUpgrade(id, Upgrade, User, &lifecycle.PreconditionError{Precondition: needed, Current: now})
			}
			return err
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
		upgraded = c.upgrade.In(tx).Fire(id, Upgrade, User, &cloudletChange{Edit: edit, Reason: reason})
		// If another CRM has started since, the upgrade is decided again.
		c.start.In(tx).Fire(id, Replacing, Controller, &cloudletChange{Expect: at.Revision, Force: true})
		return touch(ctx, tx, c.c.cloudletRefs, id, func() error { return c.c.movingOn(ctx, id) })
	})
	if err != nil {
		return CloudletRecord{}, err
	}
	return upgraded.Record(), nil
}

// AckUpgrade records that the old CRM has begun to start the new one: UpdateRequested
// to Updating.
//
// Errors: [lifecycle.ErrStale] for a connection that is not one of the cloudlet's,
// [fsm.ErrWrongActor] for one that is not the old CRM's, [fsm.ErrNotAllowed],
// those of [lifecycle.Manager.Fire].
func (c *Cloudlets) AckUpgrade(ctx context.Context, id string, notifyID int64) error {
	return c.report(ctx, id, notifyID, AckUpgrade, nil)
}

// BringUpFailed records that the old CRM could not bring up the new one and has removed
// it: UpdateRequested, Updating or InitOk to UpdateError. The cloudlet stays there
// until [Cloudlets.Repaired].
//
// Errors: those of AckUpgrade.
func (c *Cloudlets) BringUpFailed(ctx context.Context, id string, notifyID int64, reason string) error {
	return c.report(ctx, id, notifyID, BringUpFailed, &cloudletChange{Reason: reason})
}

// report fires an event by the CRM with a notify id. The table refuses it for a CRM that
// takes part in no upgrade.
func (c *Cloudlets) report(ctx context.Context, id string, notifyID int64, e CloudletEvent, change *cloudletChange) error {
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

// KeepOld records that the old CRM continues after a failed upgrade and sends all its
// data again: UpdateError stays UpdateError. If the new CRM was the current one, the old
// CRM becomes the current one again and is Ready.
//
// Errors: those of AckUpgrade.
func (c *Cloudlets) KeepOld(ctx context.Context, id string, notifyID int64) error {
	reason := ""
	if now, err := c.upgrade.Get(ctx, id); err == nil && now.State == CloudletUpdateError {
		reason = now.Reason // of the failure
	}
	// A CRM whose connection has dropped does not continue: it has to start up.
	if at, err := c.start.Get(ctx, id); err == nil && at.State == CloudletOffline && at.Payload.NotifyID == notifyID {
		return c.refusedUpgrade(id, KeepOld, CRMv1, fmt.Errorf("%w: notify id %d has dropped", lifecycle.ErrStale, notifyID))
	}
	if err := c.report(ctx, id, notifyID, KeepOld, &cloudletChange{Reason: reason}); err != nil {
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

// Repaired is an operator's way out of UpdateError, by force: the cloudlet runs a CRM
// of this version, and its instances may be changed again. It does not move the
// record of the creation. A CRM that connected in the upgrade, and whose
// [Cloudlets.Gathered] was refused, reports that again, or starts up again after
// [StartTimeout]; until then changes of instances and upgrades are refused. An old CRM
// that is to continue reports [Cloudlets.KeepOld] before.
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
	if le, ok := err.(*lifecycle.Error); ok && le.Machine == CloudletCreate.Name() && le.Verb == "fire" {
		le.Machine = CloudletUpgrade.Name()
	}
	return err
}
