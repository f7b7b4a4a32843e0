package edgecloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	coordinator *Coordinator
	creations   *cloudletManager
	upgrades    *cloudletManager
}

// CloudletRecord is a record of cloudlets.
type CloudletRecord = lifecycle.Record[CloudletState, CloudletSpec]

type (
	cloudletManager = lifecycle.Manager[CloudletState, CloudletEvent, CloudletSpec]
	cloudletChange  = lifecycle.Change[CloudletSpec]
	cloudletResult  = lifecycle.TxResult[CloudletState, CloudletSpec]
)

func creationKey(id string) lifecycle.Key {
	return lifecycle.Key{Machine: CloudletCreate.Name(), ID: id}
}

func upgradeKey(id string) lifecycle.Key {
	return lifecycle.Key{Machine: CloudletUpgrade.Name(), ID: id}
}

// Creation returns the record of the creation: Offline, Init, InitOk or Ready.
func (c *Cloudlets) Creation(ctx context.Context, id string) (CloudletRecord, error) {
	return c.creations.Get(ctx, id)
}

// Upgrading returns the record of the upgrades: Ready, UpdateRequested, Updating,
// InitOk or UpdateError.
func (c *Cloudlets) Upgrading(ctx context.Context, id string) (CloudletRecord, error) {
	return c.upgrades.Get(ctx, id)
}

// add creates both records of a cloudlet, if it has none.
func (c *Cloudlets) add(ctx context.Context, id string, actor fsm.Actor, version string, attributes json.RawMessage) error {
	_, err := c.creations.Get(ctx, id)
	if err == nil || !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	var tx lifecycle.Tx
	c.creations.In(&tx).Add(id, CloudletOffline, actor, CloudletSpec{Attributes: attributes}, nil)
	c.upgrades.In(&tx).Add(id, CloudletReady, Controller, CloudletSpec{Version: version}, nil)
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
		return CloudletRecord{}, refused("fire", creationKey(id), string(Launch), User,
			fmt.Errorf("%w: a cloudlet needs a version", lifecycle.ErrInvalid))
	}
	if err := c.add(ctx, id, User, version, attributes); err != nil {
		return CloudletRecord{}, err
	}
	return c.creations.Fire(ctx, id, Launch, User, &cloudletChange{Edit: func(at *CloudletSpec) error {
		*at = CloudletSpec{OldNotifyID: max(at.NotifyID, at.OldNotifyID), Attributes: attributes} // no CRM is connected
		return nil
	}})
}

// StartUp records that a CRM has started and connects: by hand, after Create, after
// a crash, or as the new CRM of an upgrade. It leads from Offline, Ready, Init or
// InitOk to Init. It starts an operation: later messages of the CRM before are stale.
//
// Errors: [lifecycle.ErrStale] for a notify id that is not greater than those
// before, [lifecycle.ErrInvalid] for one that is not positive, for the greatest int64, which
// no later CRM could exceed, or no version, those of [lifecycle.Manager.Fire].
func (c *Cloudlets) StartUp(ctx context.Context, id string, notifyID int64, version string) (CloudletRecord, error) {
	if notifyID <= 0 || notifyID == math.MaxInt64 || version == "" {
		return CloudletRecord{}, refused("fire", creationKey(id), string(StartUp), CRM,
			fmt.Errorf("%w: a CRM needs a version, and a notify id from 1 to %d", lifecycle.ErrInvalid, int64(math.MaxInt64-1)))
	}
	if err := c.add(ctx, id, CRM, version, nil); err != nil {
		return CloudletRecord{}, err
	}
	return commit(ctx, func(tx *lifecycle.Tx) (*cloudletResult, error) {
		now, err := c.creations.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		return c.creations.In(tx).Fire(id, StartUp, CRM, &cloudletChange{Expect: now.Revision, Edit: func(at *CloudletSpec) error {
			if notifyID <= max(at.NotifyID, at.OldNotifyID) {
				return fmt.Errorf("%w: notify id %d is not new", lifecycle.ErrStale, notifyID)
			}
			at.connect(now.State, notifyID, version)
			return nil
		}}), nil
	})
}

// NewNotifyID assigns the notify id of a new connection of a CRM, for [Cloudlets.StartUp].
// It is greater than every one before of the cloudlet: concurrent calls of any number of
// processes get different ids, and a process that has restarted does not repeat any. It
// is at least the time of this process in microseconds since 1970, so it does not go back
// either if the store was restored from a backup. Errors: [lifecycle.ErrInvalid] for the
// id, [lifecycle.ErrStale] if a CRM has started with an id that leaves no greater one, the
// store's, and the context's.
func (c *Cloudlets) NewNotifyID(ctx context.Context, id string) (int64, error) {
	rec, err := commit(ctx, func(tx *lifecycle.Tx) (*lifecycle.TxResult[string, note], error) {
		at, err := c.creations.Get(ctx, id)
		if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			return nil, err
		}
		return c.coordinator.write(ctx, tx, cloudletNote(id), func(n *note) error {
			last := max(n.NotifyID, at.Payload.NotifyID, at.Payload.OldNotifyID)
			if last >= math.MaxInt64-1 {
				return fmt.Errorf("%w: no notify id is left after %d", lifecycle.ErrStale, last)
			}
			n.NotifyID = max(last+1, time.Now().UnixMicro())
			return nil
		})
	})
	return rec.Payload.NotifyID, err
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

// sender is a CRM that sends a message, and the records of its cloudlet.
type sender struct {
	notifyID          int64
	creation, upgrade CloudletRecord
	// actor is CRMv1 or CRMv2 in an upgrade, else CRM.
	actor fsm.Actor
}

// current reports whether the sender is the CRM that has started last.
func (s *sender) current() bool { return s.creation.Payload.NotifyID == s.notifyID }

// sender returns the CRM that has connected under a notify id. The error is
// [lifecycle.ErrStale] for a connection that is not one of the cloudlet's.
func (c *Cloudlets) sender(ctx context.Context, id string, notifyID int64) (*sender, error) {
	s := &sender{notifyID: notifyID, actor: CRM}
	var err error
	if s.creation, err = c.creations.Get(ctx, id); err == nil {
		s.upgrade, err = c.upgrades.Get(ctx, id)
	}
	at, upgrade := &s.creation.Payload, &s.upgrade.Payload
	version := at.Version
	switch {
	case err != nil:
		return nil, err
	case notifyID != 0 && s.current(): // 0: no CRM has connected
	case at.old(notifyID):
		version = at.OldVersion
	default:
		return nil, fmt.Errorf("%w: the cloudlet has no connection with notify id %d", lifecycle.ErrStale, notifyID)
	}
	switch {
	case upgrade.OldVersion == "": // no upgrade
	case version == upgrade.Version:
		s.actor = CRMv2
	case version == upgrade.OldVersion:
		s.actor = CRMv1
	}
	return s, nil
}

// message commits what add adds to a transaction, for an event of a record. It adds again,
// for the present records, while other writers are faster. The error about an unknown
// sender names the actor, if the event has the same one for every sender.
func (c *Cloudlets) message(
	ctx context.Context, key lifecycle.Key, notifyID int64, e CloudletEvent, actor fsm.Actor,
	add func(*lifecycle.Tx, *sender) (*cloudletResult, error),
) error {
	_, err := commit(ctx, func(tx *lifecycle.Tx) (*cloudletResult, error) {
		from, err := c.sender(ctx, key.ID, notifyID)
		if err != nil {
			return nil, refused("fire", key, string(e), actor, err)
		}
		return add(tx, from)
	})
	return err
}

// Acknowledge records the controller's answer to a CRM that has started: Init to
// InitOk. If it is the new CRM of an upgrade, the same commit moves the upgrade to
// InitOk, also from UpdateRequested, if the old CRM's message was missed.
//
// Errors: [lifecycle.ErrStale] for a connection that is not the current one,
// [lifecycle.ErrBusy] or [fsm.ErrNotAllowed] in another state than Init, those of
// [lifecycle.Manager.Fire].
func (c *Cloudlets) Acknowledge(ctx context.Context, id string, notifyID int64) error {
	return c.message(ctx, creationKey(id), notifyID, AckStart, Controller, c.acknowledge)
}

// acknowledge adds to a transaction what Acknowledge commits.
func (c *Cloudlets) acknowledge(tx *lifecycle.Tx, from *sender) (*cloudletResult, error) {
	result := c.creations.In(tx).Fire(from.creation.ID, AckStart, Controller, &cloudletChange{
		Expect: from.creation.Revision, Edit: requireCurrent(from.notifyID),
	})
	if from.actor == CRMv2 && (from.upgrade.State == CloudletUpdateRequested || from.upgrade.State == CloudletUpdating) {
		c.upgrades.In(tx).Fire(from.upgrade.ID, Connected, Controller, &cloudletChange{Operation: from.upgrade.Operation})
	}
	return result, nil
}

// makeCurrent adds to a transaction that the old CRM becomes the current one again.
func (c *Cloudlets) makeCurrent(tx *lifecycle.Tx, from *sender, require ...lifecycle.Precondition) *cloudletResult {
	return c.creations.In(tx).Fire(from.creation.ID, StartUp, CRM, &cloudletChange{
		Expect: from.creation.Revision, Require: require, Edit: func(at *CloudletSpec) error {
			at.connect(from.creation.State, at.OldNotifyID, at.OldVersion)
			return nil
		},
	})
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
	for {
		last := false
		err := c.message(ctx, creationKey(id), notifyID, Gathered, CRM, func(tx *lifecycle.Tx, from *sender) (*cloudletResult, error) {
			upgrades := CloudletUpgrade.Kind(from.upgrade.State) == fsm.Transitional
			last = false // of an earlier attempt
			switch {
			case !from.current() && from.actor == CRMv2 && upgrades:
				return c.makeCurrent(tx, from, c.upgrades.Require(id, from.upgrade.State)), nil
			case from.current() && from.creation.State == CloudletInit:
				return c.acknowledge(tx, from)
			}
			last = true
			return c.gathered(tx, from)
		})
		upgradeMoved := errors.Is(err, lifecycle.ErrPrecondition)
		if last || err != nil && !upgradeMoved {
			return err
		}
	}
}

// gathered adds to a transaction that a CRM has gathered its data.
func (c *Cloudlets) gathered(tx *lifecycle.Tx, from *sender) (*cloudletResult, error) {
	id, isNew := from.creation.ID, from.actor == CRMv2
	switch {
	case !isNew && from.current() && from.creation.State == CloudletReady:
		return nil, nil // only Gathered leads there
	case isNew && from.upgrade.State == CloudletUpdateError:
		return nil, refused("fire", creationKey(id), string(Gathered), CRMv2,
			fmt.Errorf("%w: the upgrade has failed", lifecycle.ErrStale))
	}
	start := &cloudletChange{Expect: from.creation.Revision, Edit: requireCurrent(from.notifyID)}
	if !isNew {
		return c.creations.In(tx).Fire(id, Gathered, CRM, start), nil
	}
	start.Edit = func(at *CloudletSpec) error {
		at.drop() // the new CRM has ended the old one
		return requireCurrent(from.notifyID)(at)
	}
	upgrade := &cloudletChange{Operation: from.upgrade.Operation, Edit: func(u *CloudletSpec) error {
		u.OldVersion = ""
		return nil
	}}
	result := c.creations.In(tx).Fire(id, Gathered, CRM, start)
	c.upgrades.In(tx).Fire(id, Gathered, CRMv2, upgrade)
	return result, nil
}

// GatherFailed records that a CRM could not gather its data and exits: InitOk to
// Offline. The record keeps 4 KiB of the reason.
//
// Errors: [lifecycle.ErrStale] for a connection that is not the current one,
// those of [lifecycle.Manager.Fire].
func (c *Cloudlets) GatherFailed(ctx context.Context, id string, notifyID int64, reason string) error {
	_, err := commit(ctx, func(tx *lifecycle.Tx) (*cloudletResult, error) {
		return c.creations.In(tx).Fire(id, GatherFailed, CRM, &cloudletChange{
			Edit: requireCurrent(notifyID), Reason: storable.Reason(reason),
		}), nil
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
	isOld := false
	_, err := commit(ctx, func(tx *lifecycle.Tx) (*cloudletResult, error) {
		now, err := c.creations.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		change := &cloudletChange{Expect: now.Revision, Edit: requireCurrent(notifyID)}
		if isOld = now.Payload.old(notifyID); !isOld {
			return c.creations.In(tx).Fire(id, Disconnected, Controller, change), nil
		}
		change.Force, change.Edit = true, func(at *CloudletSpec) error { at.drop(); return nil }
		return c.creations.In(tx).Fire(id, OldDisconnected, Controller, change), nil
	})
	if errors.Is(err, lifecycle.ErrStale) || errors.Is(err, fsm.ErrNotAllowed) {
		return false, nil
	}
	return !isOld && err == nil, err
}
