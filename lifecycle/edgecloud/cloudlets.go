package edgecloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Cloudlets are the cloudlets of a [Coordinator], which makes them. It is safe
// for concurrent use and must not be copied.
//
// A cloudlet has two records. That of its creation is the document's
// CloudletState: whether a CRM is connected and has gathered its data. That of
// its upgrades is the controller's own state, which alone decides what happens in
// an upgrade: a CRM can crash and reconnect, and is not trusted. Instances are
// changed while both are Ready.
//
// A CRM is known by the notify id of its connection, never by its word: notify
// ids grow, and what is said under one that does not count any more is
// [lifecycle.ErrStale] and changes nothing.
type Cloudlets struct {
	c       *Coordinator
	start   *lifecycle.Manager[CloudletState, CloudletEvent, Cloudlet]
	upgrade *lifecycle.Manager[CloudletState, CloudletEvent, Cloudlet]
}

// CloudletRecord is a record of cloudlets.
type CloudletRecord = lifecycle.Record[CloudletState, Cloudlet]

type cloudletChange = lifecycle.Change[Cloudlet]

// Creation returns the record of the creation: Offline, Init, InitOk or Ready.
func (c *Cloudlets) Creation(ctx context.Context, id string) (CloudletRecord, error) {
	return c.start.Get(ctx, id)
}

// Upgrading returns the record of the upgrades: Ready, UpdateRequested, Updating,
// InitOk or UpdateError.
func (c *Cloudlets) Upgrading(ctx context.Context, id string) (CloudletRecord, error) {
	return c.upgrade.Get(ctx, id)
}

// needs are what a change of an instance needs of its cloudlet.
func (c *Cloudlets) needs(id string) []lifecycle.Precondition {
	return []lifecycle.Precondition{c.upgrade.Require(id, CloudletReady), c.start.Require(id, CloudletReady)}
}

// add makes the records of a cloudlet that has none. They come and go together.
func (c *Cloudlets) add(ctx context.Context, id string, actor fsm.Actor, version string) error {
	_, err := c.start.Get(ctx, id)
	if err == nil || !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	err = lifecycle.Together(ctx,
		c.start.Adding(id, actor, Cloudlet{}, nil),
		c.upgrade.Adding(id, Controller, Cloudlet{Version: version}, nil))
	if errors.Is(err, lifecycle.ErrExists) {
		return nil // somebody has been faster
	}
	return err
}

// Create asks for a cloudlet that runs a CRM of this version: Offline to Init.
// Somebody has to start that CRM.
//
// Errors: [lifecycle.ErrInvalid] without a version, [lifecycle.ErrBusy] or
// [fsm.ErrNotAllowed] for a cloudlet that is not Offline, those of
// [lifecycle.Manager.Fire].
func (c *Cloudlets) Create(ctx context.Context, id, version string) (CloudletRecord, error) {
	if version == "" {
		return CloudletRecord{}, c.refused(id, Launch, User, fmt.Errorf("%w: a cloudlet needs a version", lifecycle.ErrInvalid))
	}
	if err := c.add(ctx, id, User, version); err != nil {
		return CloudletRecord{}, err
	}
	return c.start.Fire(ctx, id, Launch, User, &cloudletChange{Edit: func(at *Cloudlet) error {
		*at = Cloudlet{OldNotifyID: max(at.NotifyID, at.OldNotifyID)} // nobody is connected
		return nil
	}})
}

// StartUp is a CRM that has started and connects, by hand, after Create, after a
// crash, or as the new one of an upgrade: Offline, Ready, Init or InitOk to Init.
// It begins an operation: what its predecessor still says is stale.
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
		return StartUp, &cloudletChange{Edit: func(at *Cloudlet) error {
			if notifyID <= max(at.NotifyID, at.OldNotifyID) {
				return fmt.Errorf("%w: notify id %d is not new", lifecycle.ErrStale, notifyID)
			}
			at.connect(now.State, notifyID, version)
			return nil
		}}
	})
}

// fire fires what is decided on the record, and decides anew if that has moved.
func (c *Cloudlets) fire(ctx context.Context, id string, actor fsm.Actor, decide func(*CloudletRecord) (CloudletEvent, *cloudletChange)) (CloudletRecord, error) {
	for {
		now, err := c.start.Get(ctx, id)
		if err != nil {
			return now, err
		}
		e, change := decide(&now)
		change.Expect = now.Revision
		now, err = c.start.Fire(ctx, id, e, actor, change)
		if !errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrUnknownOutcome) || ctx.Err() != nil {
			return now, err
		}
	}
}

// connect notes a CRM that has started. One of another version may go on beside
// it, as in an upgrade, if its connection is there.
func (at *Cloudlet) connect(now CloudletState, notifyID int64, version string) {
	if at.Version != "" && at.Version != version {
		at.OldNotifyID, at.OldVersion = at.NotifyID, at.Version
	}
	at.NotifyID, at.Version = notifyID, version
	if now == CloudletOffline {
		at.drop()
	}
}

// back is an edit by which the CRM that another one has taken the place of takes it
// back.
func back(now CloudletState, notifyID int64) func(*Cloudlet) error {
	return func(at *Cloudlet) error {
		if !at.old(notifyID) {
			return fmt.Errorf("%w: notify id %d is none of the cloudlet's", lifecycle.ErrStale, notifyID)
		}
		at.connect(now, at.OldNotifyID, at.OldVersion)
		return nil
	}
}

// old reports whether a connection is that of the CRM that was there before, and
// may still run.
func (at *Cloudlet) old(notifyID int64) bool {
	return at.OldVersion != "" && at.OldNotifyID == notifyID
}

// drop notes that the CRM that was there before has ended, or its connection. Its
// notify id stays while no greater one is there: it is not new a second time.
func (at *Cloudlet) drop() {
	at.OldVersion = ""
	if at.OldNotifyID < at.NotifyID {
		at.OldNotifyID = 0
	}
}

// of is an edit that changes nothing, and is refused unless this connection is
// the one that counts.
func of(notifyID int64) func(*Cloudlet) error {
	return func(at *Cloudlet) error {
		if at.NotifyID != notifyID {
			return fmt.Errorf("%w: notify id %d is not that of the cloudlet's CRM, which is %d", lifecycle.ErrStale, notifyID, at.NotifyID)
		}
		return nil
	}
}

// Acknowledge is the controller's answer to a CRM that has started: Init to
// InitOk. If it is the new CRM of an upgrade, the upgrade goes to InitOk in the
// same commit, also from UpdateRequested, if the old CRM's message was missed.
//
// Errors: [lifecycle.ErrStale] for a connection that does not count any more,
// [lifecycle.ErrBusy] or [fsm.ErrNotAllowed] in another state than Init, those of
// [lifecycle.Manager.Fire].
func (c *Cloudlets) Acknowledge(ctx context.Context, id string, notifyID int64) error {
	return c.retry(ctx, func() ([]lifecycle.AnyPart, error) {
		parts := []lifecycle.AnyPart{c.start.Firing(id, AckStart, Controller, &cloudletChange{Edit: of(notifyID)})}
		now, speaker, err := c.speaker(ctx, id, notifyID)
		if err != nil {
			return nil, c.refused(id, AckStart, Controller, err)
		}
		if speaker == CRMv2 && (now.State == CloudletUpdateRequested || now.State == CloudletUpdating) {
			parts = append(parts, c.upgrade.Firing(id, Connected, Controller, &cloudletChange{Operation: now.Operation}))
		}
		return parts, nil
	})
}

// Gathered is a CRM that has its data: InitOk to Ready. It sends the state of all
// that it has, see [Coordinator.Reconnect]. Said by the new CRM of an upgrade,
// which has ended the old one, the upgrade is done in the same commit.
//
// If the controller's answer to its start was missed, it is given now. If the old
// CRM has started again meanwhile and has taken its place, it gets that back: what
// it has ended is the old CRM for good, and not one process of it.
//
// Errors: [lifecycle.ErrStale] for a connection that does not count any more, or
// an upgrade that failed meanwhile, when it may be said again once a person has
// repaired that; [fsm.ErrNotAllowed], those of [lifecycle.Manager.Fire].
func (c *Cloudlets) Gathered(ctx context.Context, id string, notifyID int64) error {
	if err := c.finishes(ctx, id, notifyID); err != nil {
		return err
	}
	rec, err := c.start.Get(ctx, id)
	if err != nil {
		return err
	}
	if rec.State == CloudletInit && rec.Payload.NotifyID == notifyID {
		// Whoever else answers in this moment has done what is to be done.
		if err := c.Acknowledge(ctx, id, notifyID); err != nil && !errors.Is(err, fsm.ErrNotAllowed) {
			return err
		}
	}
	return c.retry(ctx, func() ([]lifecycle.AnyPart, error) {
		now, speaker, err := c.speaker(ctx, id, notifyID)
		if err != nil {
			return nil, c.refused(id, Gathered, CRM, err)
		}
		after := of(notifyID)
		var done lifecycle.AnyPart
		if speaker == CRMv2 {
			if now.State == CloudletUpdateError {
				return nil, c.refused(id, Gathered, CRMv2, fmt.Errorf("%w: the upgrade has failed", lifecycle.ErrStale))
			}
			done = c.upgrade.Firing(id, Gathered, CRMv2, &cloudletChange{Operation: now.Operation, Edit: func(u *Cloudlet) error {
				u.OldNotifyID, u.OldVersion = 0, ""
				return nil
			}})
			after = func(at *Cloudlet) error {
				if err := of(notifyID)(at); err != nil {
					return err
				}
				at.drop() // it is ended
				return nil
			}
		}
		parts := []lifecycle.AnyPart{c.start.Firing(id, Gathered, CRM, &cloudletChange{Edit: after})}
		if done != nil {
			parts = append(parts, done)
		}
		return parts, nil
	})
}

// finishes gives the new CRM of an upgrade the place back that the old one has taken
// since, as long as the upgrade goes on.
func (c *Cloudlets) finishes(ctx context.Context, id string, notifyID int64) error {
	for {
		at, err := c.start.Get(ctx, id)
		if err != nil || !at.Payload.old(notifyID) {
			return err
		}
		now, speaker, err := c.speaker(ctx, id, notifyID)
		if err != nil || speaker != CRMv2 || c.upgrade.Machine().Kind(now.State) != fsm.Transitional {
			return nil // it is refused as what it is
		}
		_, err = c.start.Fire(ctx, id, StartUp, CRM, &cloudletChange{
			Expect: at.Revision, Edit: back(at.State, notifyID),
			Require: []lifecycle.Precondition{c.upgrade.Require(id, now.State)},
		})
		overtaken := errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrPrecondition)
		if !overtaken || errors.Is(err, lifecycle.ErrUnknownOutcome) || ctx.Err() != nil {
			return err
		}
	}
}

// GatherFailed is a CRM that could not get its data and exits: InitOk to Offline.
//
// Errors: [lifecycle.ErrStale] for a connection that does not count any more,
// those of [lifecycle.Manager.Fire].
func (c *Cloudlets) GatherFailed(ctx context.Context, id string, notifyID int64, reason string) error {
	_, err := c.fire(ctx, id, CRM, func(*CloudletRecord) (CloudletEvent, *cloudletChange) {
		return GatherFailed, &cloudletChange{Edit: of(notifyID), Reason: reason}
	})
	return err
}

// Disconnected is a connection that has dropped: Ready, Init or InitOk to
// Offline, but only if it is the one that counts. It reports whether it was: a
// new CRM that has connected under a new notify id is not moved by the end of its
// predecessor. If the predecessor is the other CRM of an upgrade, it is noted that
// its connection counts no more, in whatever state the cloudlet is.
//
// Errors: [lifecycle.ErrNotFound], those of [lifecycle.Manager.Fire]. A cloudlet
// that is Offline stays so, which is none.
func (c *Cloudlets) Disconnected(ctx context.Context, id string, notifyID int64) (bool, error) {
	moves := true
	_, err := c.fire(ctx, id, Controller, func(now *CloudletRecord) (CloudletEvent, *cloudletChange) {
		if moves = !now.Payload.old(notifyID); moves {
			return Disconnected, &cloudletChange{Edit: of(notifyID)}
		}
		return OldDisconnected, &cloudletChange{Force: true, Edit: func(at *Cloudlet) error { at.drop(); return nil }}
	})
	if errors.Is(err, lifecycle.ErrStale) || errors.Is(err, fsm.ErrNotAllowed) {
		return false, nil
	}
	return moves && err == nil, err
}

// speaker returns the record of the upgrades and who, in an upgrade, speaks under
// a notify id: [CRMv1], [CRMv2], or [CRM] where no upgrade is. The error is
// [lifecycle.ErrStale] for a connection that is none of the cloudlet's.
func (c *Cloudlets) speaker(ctx context.Context, id string, notifyID int64) (CloudletRecord, fsm.Actor, error) {
	at, err := c.start.Get(ctx, id)
	if err != nil {
		return CloudletRecord{}, "", err
	}
	now, err := c.upgrade.Get(ctx, id)
	if err != nil {
		return now, "", err
	}
	var version string
	switch {
	case notifyID == 0:
		return now, "", fmt.Errorf("%w: no notify id", lifecycle.ErrInvalid)
	case notifyID == at.Payload.NotifyID:
		version = at.Payload.Version
	case at.Payload.old(notifyID):
		version = at.Payload.OldVersion
	default:
		return now, "", fmt.Errorf("%w: notify id %d is none of the cloudlet's", lifecycle.ErrStale, notifyID)
	}
	switch {
	case now.Payload.OldVersion == "":
		return now, CRM, nil
	case version == now.Payload.Version:
		return now, CRMv2, nil
	case version == now.Payload.OldVersion:
		return now, CRMv1, nil
	}
	return now, CRM, nil
}

// retry commits parts again while somebody else moves one of the two records.
// What was decided on a record that has moved is decided anew.
func (c *Cloudlets) retry(ctx context.Context, parts func() ([]lifecycle.AnyPart, error)) error {
	for {
		list, err := parts()
		if err == nil {
			err = lifecycle.Together(ctx, list...)
		}
		if !errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrUnknownOutcome) || ctx.Err() != nil {
			return err
		}
	}
}

func (c *Cloudlets) refused(id string, e CloudletEvent, actor fsm.Actor, err error) error {
	if _, ok := errors.AsType[*lifecycle.Error](err); ok {
		return err
	}
	return &lifecycle.Error{
		Verb: "fire", Machine: c.start.Machine().Table().Name, ID: id, Event: string(e), Actor: actor, Err: err,
	}
}
