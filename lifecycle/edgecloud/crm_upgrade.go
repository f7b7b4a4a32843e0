package edgecloud

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/lifecycle"
)

// Uplink is the connection of a CRM to its controller, under one notify id. An error of
// a function is that of the method of [Cloudlets] or [Coordinator] of the same name, or of
// the network; the CRM may send the message again. [Coordinator.Uplink] is one within the
// process of the controller. All functions are set. An Uplink is a value.
type Uplink struct {
	Reconnect     func(ctx context.Context, all Account) error
	Gathered      func(ctx context.Context) error
	GatherFailed  func(ctx context.Context, reason string) error
	AckUpgrade    func(ctx context.Context) error
	BringUpFailed func(ctx context.Context, reason string) error
	KeepOld       func(ctx context.Context) error
}

// Replacer starts and ends CRMs of a cloudlet. Its methods may be called again for the
// same upgrade: work that is done already is not an error.
type Replacer interface {
	// StartNew starts the CRM of this version. It returns nil when that CRM is connected,
	// and an error if it cannot be started.
	StartNew(ctx context.Context, version string) error
	// RemoveNew removes what StartNew has left.
	RemoveNew(ctx context.Context) error
	// EndOld ends the CRM before for good.
	EndOld(ctx context.Context) error
}

// Gather is the start of a CRM after [Cloudlets.StartUp]: it sends its account, ends the
// old CRM if it is the new one of an upgrade, and then reports that it is ready. Without
// a Replacer there is no old CRM.
//
// If the platform cannot be read, it reports that, and the CRM exits. After any other
// error the CRM calls Gather again, or exits and starts again.
func (r *ResourceManager) Gather(ctx context.Context, by Replacer, to Uplink) error {
	all, err := r.Account(ctx)
	if err != nil {
		return errors.Join(err, to.GatherFailed(ctx, err.Error()))
	}
	if err := to.Reconnect(ctx, all); err != nil {
		return err
	}
	if by != nil {
		if err := by.EndOld(ctx); err != nil {
			return err
		}
	}
	return to.Gathered(ctx)
}

// Upgrade is the part of the old CRM in an upgrade to a version. As in the document, only
// the controller's state determines what the CRM does, see [Cloudlets.Upgrading]:
//   - UpdateRequested: it acknowledges the upgrade and starts the new CRM.
//   - Updating, InitOk: it starts the new CRM, which may run already.
//   - UpdateError: it continues, and sends its account again.
//   - Ready: nothing.
//
// If the new CRM cannot be started, the old one removes it, reports the failure, which is
// the error, and continues. After any other error, and after a crash, it reads the
// controller's state and calls Upgrade again.
func (r *ResourceManager) Upgrade(ctx context.Context, state CloudletState, version string, by Replacer, to Uplink) error {
	switch state {
	case CloudletUpdateRequested:
		if err := to.AckUpgrade(ctx); err != nil {
			return err
		}
	case CloudletUpdating, CloudletInitOk:
	case CloudletUpdateError:
		return r.keepOld(ctx, to)
	default:
		return nil
	}
	failed := by.StartNew(ctx, version)
	switch {
	case failed == nil:
		return nil
	case ctx.Err() != nil:
		return lifecycle.Ended(ctx)
	}
	if err := by.RemoveNew(ctx); err != nil {
		return errors.Join(failed, err)
	}
	if err := to.BringUpFailed(ctx, failed.Error()); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.keepOld(ctx, to))
}

// keepOld continues as the current CRM. Only that one may send an account.
func (r *ResourceManager) keepOld(ctx context.Context, to Uplink) error {
	all, err := r.Account(ctx)
	if err == nil {
		err = to.KeepOld(ctx)
	}
	if err != nil {
		return err
	}
	return to.Reconnect(ctx, all)
}

// Uplink returns the connection of a CRM within the process of the controller.
func (c *Coordinator) Uplink(cloudlet string, notifyID int64) Uplink {
	l := c.Cloudlets
	return Uplink{
		Reconnect: func(ctx context.Context, all Account) error {
			_, err := c.Reconnect(ctx, cloudlet, notifyID, all)
			return err
		},
		Gathered:     func(ctx context.Context) error { return l.Gathered(ctx, cloudlet, notifyID) },
		GatherFailed: func(ctx context.Context, reason string) error { return l.GatherFailed(ctx, cloudlet, notifyID, reason) },
		AckUpgrade:   func(ctx context.Context) error { return l.AckUpgrade(ctx, cloudlet, notifyID) },
		BringUpFailed: func(ctx context.Context, reason string) error {
			return l.BringUpFailed(ctx, cloudlet, notifyID, reason)
		},
		KeepOld: func(ctx context.Context) error { return l.KeepOld(ctx, cloudlet, notifyID) },
	}
}
