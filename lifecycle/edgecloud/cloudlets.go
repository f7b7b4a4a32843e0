package edgecloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
)

// Cloudlets are the cloudlets of a [Coordinator], which makes them. It is safe
// for concurrent use and must not be copied.
//
// A cloudlet has two records. The record of the creation has the document's
// CloudletState: whether a CRM is connected and has gathered its data. The record of
// the upgrades has the document's TrackedState. Only the latter decides about an
// upgrade, because a CRM can crash and reconnect. Instances change while both records
// are Ready.
//
// A CRM is identified by the notify id of its connection. Notify ids grow. A message
// under a notify id that is not current is [lifecycle.ErrStale] and changes nothing.
type Cloudlets struct {
	c       *Coordinator
	start   *lifecycle.Manager[CloudletState, CloudletEvent, CloudletSpec]
	upgrade *lifecycle.Manager[CloudletState, CloudletEvent, CloudletSpec]
}

// CloudletRecord is a record of cloudlets.
type CloudletRecord = lifecycle.Record[CloudletState, CloudletSpec]

type (
	cloudletChange = lifecycle.Change[CloudletSpec]
	cloudletResult = lifecycle.TxResult[CloudletState, CloudletSpec]
)

// Creation returns the record of the creation: Offline, Init, InitOk or Ready.
func (c *Cloudlets) Creation(ctx context.Context, id string) (CloudletRecord, error) {
	return c.start.Get(ctx, id)
}

// Upgrading returns the record of the upgrades: Ready, UpdateRequested, Updating,
// InitOk or UpdateError.
func (c *Cloudlets) Upgrading(ctx context.Context, id string) (CloudletRecord, error) {
	return c.upgrade.Get(ctx, id)
}

// needs returns the conditions that a change of an instance has on its cloudlet.
func (c *Cloudlets) needs(id string) []lifecycle.Precondition {
	return []lifecycle.Precondition{c.upgrade.Require(id, CloudletReady), c.start.Require(id, CloudletReady)}
}

// add creates both records of a cloudlet, if it has none.
func (c *Cloudlets) add(ctx context.Context, id string, actor fsm.Actor, version string) error {
	_, err := c.start.Get(ctx, id)
	if err == nil || !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	var tx lifecycle.Tx
	c.start.In(&tx).Add(id, CloudletOffline, actor, CloudletSpec{}, nil)
	c.upgrade.In(&tx).Add(id, CloudletReady, Controller, CloudletSpec{Version: version}, nil)
	err = tx.Commit(ctx)
	if errors.Is(err, lifecycle.ErrExists) {
		return nil // another caller was faster
	}
	return err
}

// Create requests a cloudlet that runs a CRM of this version: Offline to Init. The
// caller then has to start that CRM. The attributes replace those before; nil is none.
//
// Errors: [lifecycle.ErrInvalid] without a version, and for attributes that are not JSON or
// too large, [lifecycle.ErrBusy] or
// [fsm.ErrNotAllowed] for a cloudlet that is not Offline, those of
// [lifecycle.Manager.Fire].
func (c *Cloudlets) Create(ctx context.Context, id, version string, attributes json.RawMessage) (CloudletRecord, error) {
	if version == "" {
		return CloudletRecord{}, c.refused(id, Launch, User, fmt.Errorf("%w: a cloudlet needs a version", lifecycle.ErrInvalid))
	}
	if err := (lifecycle.Limits{}).CheckPayload(CloudletSpec{Attributes: attributes}); err != nil {
		return CloudletRecord{}, c.refused(id, Launch, User, err)
	}
	if err := c.add(ctx, id, User, version); err != nil {
		return CloudletRecord{}, err
	}
	return c.start.Fire(ctx, id, Launch, User, &cloudletChange{Edit: func(at *CloudletSpec) error {
		*at = CloudletSpec{OldNotifyID: max(at.NotifyID, at.OldNotifyID), Attributes: attributes} // no CRM is connected
		return nil
	}})
}

// StartUp records that a CRM has started and connects: by hand, after Create, after
// a crash, or as the new CRM of an upgrade. It leads from Offline, Ready, Init or
// InitOk to Init. It starts an operation: later messages of the CRM before are stale.
//
// Errors: [lifecycle.ErrStale] for a notify id that is not greater than those
// before, [lifecycle.ErrInvalid] for one that is not positive or no version,
// those of [lifecycle.Manager.Fire].
func (c *Cloudlets) StartUp(ctx context.Context, id string, notifyID int64, version string) (CloudletRecord, error) {
	if notifyID <= 0 || version == "" {
		return CloudletRecord{}, c.refused(id, StartUp, CRM,
			fmt.Errorf("%w: a CRM needs a notify id and a version", lifecycle.ErrInvalid))
	}
	if err := c.add(ctx, id, CRM, version); err != nil {
		return CloudletRecord{}, err
	}
	return c.fire(ctx, id, CRM, func(now *CloudletRecord) (CloudletEvent, *cloudletChange) {
		return StartUp, &cloudletChange{Edit: func(at *CloudletSpec) error {
			if notifyID <= max(at.NotifyID, at.OldNotifyID) {
				return fmt.Errorf("%w: notify id %d is not new", lifecycle.ErrStale, notifyID)
			}
			at.connect(now.State, notifyID, version)
			return nil
		}}
	})
}

// NewNotifyID assigns the notify id of a new connection of a CRM, for [Cloudlets.StartUp].
// It is greater than every one before of the cloudlet: concurrent calls of any number of
// processes get different ids, and a process that has restarted does not repeat any. It
// is at least the time of this process in microseconds since 1970, so it does not go back
// either if the store was restored from a backup. Errors: [lifecycle.ErrInvalid] for the
// id, the store's, and the context's.
func (c *Cloudlets) NewNotifyID(ctx context.Context, id string) (int64, error) {
	rec, err := commit(ctx, func(tx *lifecycle.Tx) (*lifecycle.TxResult[noteState, note], error) {
		at, err := c.start.Get(ctx, id)
		if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			return nil, err
		}
		return c.c.write(ctx, tx, cloudletNote(id), func(n *note) error {
			last := max(n.NotifyID, at.Payload.NotifyID, at.Payload.OldNotifyID)
			n.NotifyID = max(last+1, time.Now().UnixMicro())
			return nil
		})
	})
	return rec.Payload.NotifyID, err
}

// fire fires the event that decide returns for the present record of the creation. It
// decides again if the record has moved.
func (c *Cloudlets) fire(
	ctx context.Context, id string, actor fsm.Actor, decide func(*CloudletRecord) (CloudletEvent, *cloudletChange),
) (CloudletRecord, error) {
	return commit(ctx, func(tx *lifecycle.Tx) (*cloudletResult, error) {
		now, err := c.start.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		e, change := decide(&now)
		change.Expect = now.Revision
		return c.start.In(tx).Fire(id, e, actor, change), nil
	})
}

// connect records a CRM that has started. The current CRM of another version may run
// beside it, as in an upgrade, unless its connection has dropped. The same version is the
// current CRM that has started again; it changes nothing about the other CRM.
func (at *CloudletSpec) connect(now CloudletState, notifyID int64, version string) {
	replaced := at.Version != "" && at.Version != version
	if replaced {
		at.OldNotifyID, at.OldVersion = at.NotifyID, at.Version
	}
	at.NotifyID, at.Version = notifyID, version
	if replaced && now == CloudletOffline {
		at.drop()
	}
}

// makeCurrent returns an edit that makes the old CRM the current one again.
func makeCurrent(now CloudletState, notifyID int64) func(*CloudletSpec) error {
	return func(at *CloudletSpec) error {
		if !at.old(notifyID) {
			return errNotConnected(notifyID)
		}
		at.connect(now, at.OldNotifyID, at.OldVersion)
		return nil
	}
}

// old reports whether a connection is that of the CRM before the current one, and
// that CRM may still run.
func (at *CloudletSpec) old(notifyID int64) bool {
	return at.OldVersion != "" && at.OldNotifyID == notifyID
}

// drop records that the CRM before the current one, or its connection, has ended. Its
// notify id stays recorded while it is the greatest, so that it is never new again.
func (at *CloudletSpec) drop() {
	at.OldVersion = ""
	if at.OldNotifyID < at.NotifyID {
		at.OldNotifyID = 0
	}
}

// requireCurrent returns an edit that changes nothing and fails unless this connection
// is the current one.
func requireCurrent(notifyID int64) func(*CloudletSpec) error {
	return func(at *CloudletSpec) error {
		if notifyID == 0 || at.NotifyID != notifyID { // 0: no CRM has connected
			return fmt.Errorf("%w: notify id %d is not current, %d is", lifecycle.ErrStale, notifyID, at.NotifyID)
		}
		return nil
	}
}

func errNotConnected(notifyID int64) error {
	return fmt.Errorf("%w: the cloudlet has no connection with notify id %d", lifecycle.ErrStale, notifyID)
}

// Acknowledge records the controller's answer to a CRM that has started: Init to
// InitOk. If it is the new CRM of an upgrade, the same commit moves the upgrade to
// InitOk, also from UpdateRequested, if the old CRM's message was missed.
//
// Errors: [lifecycle.ErrStale] for a connection that is not the current one,
// [lifecycle.ErrBusy] or [fsm.ErrNotAllowed] in another state than Init, those of
// [lifecycle.Manager.Fire].
func (c *Cloudlets) Acknowledge(ctx context.Context, id string, notifyID int64) error {
	_, err := commit(ctx, func(tx *lifecycle.Tx) (*cloudletResult, error) {
		at, now, sender, err := c.sender(ctx, id, notifyID)
		if err != nil {
			return nil, c.refused(id, AckStart, Controller, err)
		}
		return c.acknowledge(tx, &at, &now, sender, notifyID), nil
	})
	return err
}

// acknowledge adds to a transaction what Acknowledge commits.
func (c *Cloudlets) acknowledge(tx *lifecycle.Tx, at, now *CloudletRecord, sender fsm.Actor, notifyID int64) *cloudletResult {
	result := c.start.In(tx).Fire(at.ID, AckStart, Controller, &cloudletChange{Expect: at.Revision, Edit: requireCurrent(notifyID)})
	if sender == CRMv2 && (now.State == CloudletUpdateRequested || now.State == CloudletUpdating) {
		c.upgrade.In(tx).Fire(at.ID, Connected, Controller, &cloudletChange{Operation: now.Operation})
	}
	return result
}

// Gathered records that a CRM has gathered its data: InitOk to Ready. The CRM sends
// the state of all its instances before, see [Coordinator.Reconnect]. The new CRM of
// an upgrade reports it after it has ended the old CRM; the same commit then ends the
// upgrade.
//
// If the controller's answer to the start was missed, Gathered acknowledges the start
// first. If the old CRM has started again meanwhile and is the current one, the new
// CRM becomes the current one again, because it has ended the old CRM for good. A report
// that is repeated, because the answer to it was lost, changes nothing and is no error.
//
// Errors: [lifecycle.ErrStale] for a connection that is not the current one, and for
// an upgrade that failed meanwhile: then it may be reported again after the repair;
// [fsm.ErrNotAllowed], those of [lifecycle.Manager.Fire].
func (c *Cloudlets) Gathered(ctx context.Context, id string, notifyID int64) error {
	var err error
	// ErrPrecondition: the upgrade has moved meanwhile.
	for more := true; more && (err == nil || errors.Is(err, lifecycle.ErrPrecondition)); {
		_, err = commit(ctx, func(tx *lifecycle.Tx) (_ *cloudletResult, err error) {
			var result *cloudletResult
			result, more, err = c.gathered(ctx, tx, id, notifyID)
			return result, err
		})
	}
	return err
}

// gathered adds to a transaction the next commit of Gathered, and reports whether there is
// another one.
func (c *Cloudlets) gathered(ctx context.Context, tx *lifecycle.Tx, id string, notifyID int64) (_ *cloudletResult, more bool, _ error) {
	at, now, sender, err := c.sender(ctx, id, notifyID)
	if err != nil {
		return nil, false, c.refused(id, Gathered, CRM, err)
	}
	current := at.Payload.NotifyID == notifyID
	switch {
	case !current && sender == CRMv2 && CloudletUpgrade.Kind(now.State) == fsm.Transitional:
		return c.start.In(tx).Fire(id, StartUp, CRM, &cloudletChange{
			Expect: at.Revision, Edit: makeCurrent(at.State, notifyID),
			Require: []lifecycle.Precondition{c.upgrade.Require(id, now.State)},
		}), true, nil
	case current && at.State == CloudletInit:
		return c.acknowledge(tx, &at, &now, sender, notifyID), true, nil
	case current && at.State == CloudletReady && sender != CRMv2:
		return nil, false, nil // only Gathered leads there
	case sender == CRMv2 && now.State == CloudletUpdateError:
		return nil, false, c.refused(id, Gathered, CRMv2, fmt.Errorf("%w: the upgrade has failed", lifecycle.ErrStale))
	}
	result := c.start.In(tx).Fire(id, Gathered, CRM, &cloudletChange{Expect: at.Revision, Edit: func(at *CloudletSpec) error {
		if sender == CRMv2 {
			at.drop() // the new CRM has ended the old one
		}
		return requireCurrent(notifyID)(at)
	}})
	if sender == CRMv2 {
		c.upgrade.In(tx).Fire(id, Gathered, CRMv2, &cloudletChange{Operation: now.Operation, Edit: func(u *CloudletSpec) error {
			u.OldNotifyID, u.OldVersion = 0, ""
			return nil
		}})
	}
	return result, false, nil
}

// GatherFailed records that a CRM could not gather its data and exits: InitOk to
// Offline. The record keeps 4 KiB of the reason.
//
// Errors: [lifecycle.ErrStale] for a connection that is not the current one,
// those of [lifecycle.Manager.Fire].
func (c *Cloudlets) GatherFailed(ctx context.Context, id string, notifyID int64, reason string) error {
	_, err := c.fire(ctx, id, CRM, func(*CloudletRecord) (CloudletEvent, *cloudletChange) {
		return GatherFailed, &cloudletChange{Edit: requireCurrent(notifyID), Reason: storable.Reason(reason)}
	})
	return err
}

// Disconnected records that a connection has dropped: Ready, Init or InitOk to
// Offline, but only if it is the current one. It reports whether the cloudlet has
// moved: a CRM that has connected under a new notify id is not moved by the end of
// the connection before. If the connection is that of the old CRM of an upgrade, it
// is recorded as ended, in every state of the cloudlet.
//
// Errors: [lifecycle.ErrNotFound], those of [lifecycle.Manager.Fire]. For a cloudlet
// that is Offline there is nothing to do, and no error.
func (c *Cloudlets) Disconnected(ctx context.Context, id string, notifyID int64) (bool, error) {
	moves := true
	_, err := c.fire(ctx, id, Controller, func(now *CloudletRecord) (CloudletEvent, *cloudletChange) {
		if moves = !now.Payload.old(notifyID); moves {
			return Disconnected, &cloudletChange{Edit: requireCurrent(notifyID)}
		}
		return OldDisconnected, &cloudletChange{Force: true, Edit: func(at *CloudletSpec) error { at.drop(); return nil }}
	})
	if errors.Is(err, lifecycle.ErrStale) || errors.Is(err, fsm.ErrNotAllowed) {
		return false, nil
	}
	return moves && err == nil, err
}

// sender returns both records and the actor that sends under a notify id:
// [CRMv1] or [CRMv2] in an upgrade, else [CRM]. The error is [lifecycle.ErrStale] for a
// connection that is not one of the cloudlet's.
func (c *Cloudlets) sender(ctx context.Context, id string, notifyID int64) (at, now CloudletRecord, actor fsm.Actor, err error) {
	if at, err = c.start.Get(ctx, id); err == nil {
		now, err = c.upgrade.Get(ctx, id)
	}
	version := at.Payload.Version
	switch {
	case err != nil:
		return at, now, "", err
	case notifyID == 0:
		return at, now, "", fmt.Errorf("%w: no notify id", lifecycle.ErrInvalid)
	case notifyID == at.Payload.NotifyID:
	case at.Payload.old(notifyID):
		version = at.Payload.OldVersion
	default:
		return at, now, "", errNotConnected(notifyID)
	}
	upgrading := now.Payload.OldVersion != ""
	switch {
	case upgrading && version == now.Payload.Version:
		return at, now, CRMv2, nil
	case upgrading && version == now.Payload.OldVersion:
		return at, now, CRMv1, nil
	}
	return at, now, CRM, nil
}

func (c *Cloudlets) refused(id string, e CloudletEvent, actor fsm.Actor, err error) error {
	return refusal("fire", CloudletCreate.Name(), id, string(e), actor, err)
}
