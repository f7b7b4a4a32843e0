package edgecloud

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
)

// Upgrade requests another version of the CRM: Ready to UpdateRequested. Until the
// cloudlet is Ready again, changes of its instances are refused; in UpdateError too,
// until an operator has repaired it. The cloudlet must have a CRM that is Ready, and no
// instance in transition. Both are conditions of the commit, and so is the version of
// that CRM.
//
// Errors: [ErrInUse] with an instance in transition, [lifecycle.ErrInvalid]
// without a version or for the one that runs, [lifecycle.ErrBusy],
// [lifecycle.ErrPrecondition], those of [lifecycle.Manager.Fire].
func (c *Cloudlets) Upgrade(ctx context.Context, id, version, reason string) (CloudletRecord, error) {
	if version == "" {
		return CloudletRecord{}, refused("fire", upgradeKey(id), string(Upgrade), User,
			fmt.Errorf("%w: no version", lifecycle.ErrInvalid))
	}
	return commit(ctx, func(tx *lifecycle.Tx) (*cloudletResult, error) {
		at, err := c.creations.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if at.State != CloudletReady {
			needed := c.creations.Require(id, CloudletReady)
			now := lifecycle.StoredRecord{Key: needed.Key, State: string(at.State)}
			return nil, refused("fire", upgradeKey(id), string(Upgrade), User,
				&lifecycle.PreconditionError{Precondition: needed, Current: now})
		}
		result := c.upgrades.In(tx).Fire(id, Upgrade, User, &cloudletChange{Reason: reason, Edit: func(u *CloudletSpec) error {
			if version == at.Payload.Version {
				return fmt.Errorf("%w: the CRM has version %s", lifecycle.ErrInvalid, version)
			}
			u.Version, u.OldVersion = version, at.Payload.Version
			return nil
		}})
		// If another CRM has started since, the upgrade is decided again.
		c.creations.In(tx).Fire(id, Replacing, Controller, &cloudletChange{Expect: at.Revision, Force: true})
		_, err = c.coordinator.write(ctx, tx, cloudletNote(id), func(*note) error {
			if err := c.coordinator.Clusters.checkAtRest(ctx, id); err != nil {
				return err
			}
			return c.coordinator.Apps.checkAtRest(ctx, id)
		})
		return result, err
	})
}

// AckUpgrade records that the old CRM has begun to start the new one: UpdateRequested
// to Updating.
//
// Errors: [lifecycle.ErrStale] for a connection that is not one of the cloudlet's,
// [fsm.ErrWrongActor] for one that is not the old CRM's, [fsm.ErrNotAllowed],
// those of [lifecycle.Manager.Fire].
func (c *Cloudlets) AckUpgrade(ctx context.Context, id string, notifyID int64) error {
	return c.report(ctx, id, notifyID, AckUpgrade, "")
}

// BringUpFailed records that the old CRM could not bring up the new one and has removed
// it: UpdateRequested, Updating or InitOk to UpdateError. The cloudlet stays there
// until [Cloudlets.Repaired]. The record keeps 4 KiB of the reason.
//
// Errors: those of AckUpgrade.
func (c *Cloudlets) BringUpFailed(ctx context.Context, id string, notifyID int64, reason string) error {
	return c.report(ctx, id, notifyID, BringUpFailed, reason)
}

// report fires an event by the CRM with a notify id. The table refuses it for a CRM that
// takes part in no upgrade.
func (c *Cloudlets) report(ctx context.Context, id string, notifyID int64, e CloudletEvent, reason string) error {
	return c.message(ctx, upgradeKey(id), notifyID, e, "", func(tx *lifecycle.Tx, from *sender) (*cloudletResult, error) {
		return c.upgrades.In(tx).Fire(id, e, from.actor, &cloudletChange{
			Operation: from.upgrade.Operation, Reason: storable.Reason(reason),
		}), nil
	})
}

// KeepOld records that the old CRM continues after a failed upgrade and sends all its
// data again: UpdateError stays UpdateError. If the new CRM was the current one, the old
// CRM becomes the current one again and is Ready.
//
// Errors: those of AckUpgrade.
func (c *Cloudlets) KeepOld(ctx context.Context, id string, notifyID int64) error {
	err := c.message(ctx, upgradeKey(id), notifyID, KeepOld, "", func(tx *lifecycle.Tx, from *sender) (*cloudletResult, error) {
		if from.current() && from.creation.State == CloudletOffline {
			// A CRM whose connection has dropped does not continue: it has to start up.
			return nil, refused("fire", upgradeKey(id), string(KeepOld), CRMv1, errDropped(notifyID))
		}
		result := c.upgrades.In(tx).Fire(id, KeepOld, from.actor, &cloudletChange{
			Operation: from.upgrade.Operation, Reason: from.upgrade.Reason, // of the failure
		})
		if !from.current() {
			c.makeCurrent(tx, from)
		}
		return result, nil
	})
	if err != nil {
		return err
	}
	return c.Gathered(ctx, id, notifyID)
}

// Repaired records that an operator has repaired a cloudlet in UpdateError, by force:
// the cloudlet runs a CRM of this version, and its instances may be changed again. It
// does not move the record of the creation. A CRM that connected in the upgrade, and whose
// [Cloudlets.Gathered] was refused, reports that again, or starts up again after
// [StartTimeout]; until then changes of instances and upgrades are refused. An old CRM
// that is to continue reports [Cloudlets.KeepOld] before.
//
// Errors: [lifecycle.ErrInvalid] without a version or a reason, [fsm.ErrNotAllowed]
// in another state, those of [lifecycle.Manager.Fire].
func (c *Cloudlets) Repaired(ctx context.Context, id, version, reason string) error {
	if version == "" || reason == "" {
		return refused("fire", upgradeKey(id), string(Repaired), User,
			fmt.Errorf("%w: a repair needs a version and a reason", lifecycle.ErrInvalid))
	}
	_, err := c.upgrades.Fire(ctx, id, Repaired, User, &cloudletChange{
		Force: true, Reason: reason,
		Edit: func(u *CloudletSpec) error { *u = CloudletSpec{Version: version}; return nil },
	})
	return err
}
