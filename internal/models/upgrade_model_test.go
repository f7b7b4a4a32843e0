// The upgrade of a cloudlet, from "State Transitions for Cloudlet Upgrade" of the
// document: the controller, the CRM that serves the cloudlet (v1), and the CRM that
// replaces it (v2). At no time do both serve the cloudlet.
//
// The model contains both tables of cloudlets of lifecycle/edgecloud with the decisions
// of internal/decide, and the rules of Cloudlets about connections:
//   - notify ids grow,
//   - the notify id identifies the sender of a message, not its content,
//   - a message of a connection that does not count changes nothing.
//
// A CRM decides by the last notice of the controller, which may be late. It repeats its
// messages until it sees their effect. One CRM starts or ends the other on their host.
// The end of a CRM is final, and the other CRM learns it.
//
// The model omits instances, repairs by an operator, and the content of gathered data.
// KeepOld and Gathered are one step each instead of several commits. A crashed CRM starts
// again under a new notify id; a CRM that was ended does not. Deadlines pass at any time.

package models

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// Upgrade is the upgrade as a model. The zero Upgrade has no request for one.
type Upgrade struct {
	Decisions *Decisions // default: shipped
	Upgrades  uint8      // that the user requests
	Capacity  int        // of each channel from a CRM to the controller; default 2

	Loss, Duplicate    int // budgets, like the next two
	CrashOld, CrashNew int

	// Planted faults.
	Hasty    bool // the new CRM takes over without waiting until the old one has gone
	Trusting bool // every message counts as one of the present connection
}

// message is a message of a CRM, with the notify id of its connection.
type message struct {
	Event  edgecloud.CloudletEvent
	Notify int64
}

func (s message) String() string { return fmt.Sprintf("%s under %d", s.Event, s.Notify) }

// notice is a message of the controller to a connected CRM: the state of its start, and
// the state of the upgrade.
type notice struct {
	Start   edgecloud.CloudletState // Offline for a connection that does not count
	Upgrade edgecloud.CloudletState // empty for the new one
}

func (t notice) String() string {
	if t.Upgrade == "" {
		return string(t.Start)
	}
	return fmt.Sprintf("%s, upgrade %s", t.Start, t.Upgrade)
}

// signal is a signal between the two CRMs on their host.
type signal string

const (
	start signal = "start"
	end   signal = "end"
	gone  signal = "gone" // the CRM has ended
)

// connections is an [edgecloud.CloudletSpec] without Attributes.
type connections struct {
	NotifyID    int64
	Version     string
	OldNotifyID int64
	OldVersion  string
}

// cloudlet is the controller: the two records, the present connections, and the wanted
// versions.
type cloudlet struct {
	Start, Upgrade object
	At, To         connections
	Left           uint8
}

func (c cloudlet) String() string {
	return fmt.Sprintf("%s, upgrade %s, %d counts", c.start(), c.upgrade(), c.At.NotifyID)
}

func (c *cloudlet) start() edgecloud.CloudletState {
	return edgecloud.CloudletCreate.StateAt(c.Start.State)
}

func (c *cloudlet) upgrade() edgecloud.CloudletState {
	return edgecloud.CloudletUpgrade.StateAt(c.Upgrade.State)
}

var (
	creations = edgecloud.CloudletCreate.Table()
	upgrades  = edgecloud.CloudletUpgrade.Table()
)

// The versions of the CRMs.
const oldVersion, newVersion = "v1", "v2"

// fire fires an event at one of the two records. An error is a refusal.
func (u *Upgrade) fire(t *fsm.Table, o *object, ev edgecloud.CloudletEvent, actor fsm.Actor) error {
	e, _ := t.EventIndex(string(ev))
	next, d := orShipped(u.Decisions).Ask(t, *o, decide.Request{Verb: decide.Fire, Event: e, Actor: actor})
	*o = next
	o.Operation = 1 // the model reads and writes it in one step
	return d.Err
}

var errStale = errors.New("a connection that does not count")

// sender returns the actor of a notify id.
func (u *Upgrade) sender(c *cloudlet, notify int64) (fsm.Actor, error) {
	version := ""
	switch {
	case notify == c.At.NotifyID:
		version = c.At.Version
	case old(c, notify):
		version = c.At.OldVersion
	default:
		return "", errStale
	}
	switch {
	case c.To.OldVersion == "":
		return edgecloud.CRM, nil
	case version == c.To.Version:
		return edgecloud.CRMv2, nil
	case version == c.To.OldVersion:
		return edgecloud.CRMv1, nil
	}
	return edgecloud.CRM, nil
}

// old reports whether a connection is that of the previous CRM and has not dropped.
func old(c *cloudlet, notify int64) bool {
	return c.At.OldVersion != "" && c.At.OldNotifyID == notify
}

// drop records that the previous CRM does not count any more.
func drop(c *cloudlet) {
	c.At.OldVersion = ""
	if c.At.OldNotifyID < c.At.NotifyID {
		c.At.OldNotifyID = 0
	}
}

// connect is a CRM that becomes the present one.
func (u *Upgrade) connect(c *cloudlet, version string, notify int64) error {
	replaced := c.At.Version != version
	if replaced {
		c.At.OldNotifyID, c.At.OldVersion = c.At.NotifyID, c.At.Version
	}
	c.At.NotifyID, c.At.Version = notify, version
	if replaced && c.start() == edgecloud.CloudletOffline {
		drop(c)
	}
	return u.fire(creations, &c.Start, edgecloud.StartUp, edgecloud.CRM)
}

// of refuses a message of another connection than the present one.
func (u *Upgrade) of(c *cloudlet, notify int64) error {
	if c.At.NotifyID != notify {
		return errStale
	}
	return nil
}

// asks is the request of the user to upgrade a Ready cloudlet.
func (u *Upgrade) asks(c cloudlet, step func(string, cloudlet)) {
	if c.Left == 0 || c.start() != edgecloud.CloudletReady || c.At.Version == newVersion {
		return
	}
	if u.fire(upgrades, &c.Upgrade, edgecloud.Upgrade, edgecloud.User) == nil {
		c.Left--
		c.To.Version, c.To.OldVersion = newVersion, c.At.Version
		step("Upgrade", c)
	}
}

// commit is one commit. A refused change changes nothing.
func commit(c *cloudlet, change func(*cloudlet) error) error {
	next := *c
	err := change(&next)
	if err == nil {
		*c = next
	}
	return err
}

// acknowledge is the acknowledgement of a started CRM by the controller.
func (u *Upgrade) acknowledge(c *cloudlet) error {
	return commit(c, func(c *cloudlet) error {
		if err := u.fire(creations, &c.Start, edgecloud.AckStart, edgecloud.Controller); err != nil {
			return err
		}
		sender, err := u.sender(c, c.At.NotifyID)
		if err == nil && sender == edgecloud.CRMv2 &&
			(c.upgrade() == edgecloud.CloudletUpdateRequested || c.upgrade() == edgecloud.CloudletUpdating) {
			err = u.fire(upgrades, &c.Upgrade, edgecloud.Connected, edgecloud.Controller)
		}
		return err
	})
}

// acknowledges is acknowledge as a step.
func (u *Upgrade) acknowledges(c cloudlet, step func(string, cloudlet)) {
	if u.acknowledge(&c) == nil {
		step("AckStart", c)
	}
}

// sweeps is the sweeper after a deadline.
func (u *Upgrade) sweeps(c cloudlet, step func(string, cloudlet)) {
	for _, r := range []struct {
		table *fsm.Table
		at    *object
		label string
	}{{creations, &c.Start, "NoAnswer"}, {upgrades, &c.Upgrade, "NoAnswer to the upgrade"}} {
		was := *r.at
		if q, care := orShipped(u.Decisions).Sweep(r.table, &was.Record, decide.Cause{Overdue: true}); care == decide.FireEvent {
			var d decide.Decision
			if *r.at, d = orShipped(u.Decisions).Ask(r.table, was, q); d.Write {
				step(r.label, c)
			}
		}
		*r.at = was
	}
}

// notifies is the controller that sends a notice to the CRM of a version: the state of
// its start, and to the old CRM the state of the upgrade.
func (u *Upgrade) notifies(version string) func(cloudlet, func(string, notice, cloudlet)) {
	return func(c cloudlet, send func(string, notice, cloudlet)) {
		t := notice{Upgrade: c.upgrade()}
		switch version {
		case c.At.Version:
			t.Start = c.start()
		case c.At.OldVersion:
			t.Start = edgecloud.CloudletOffline // it does not count any more
		default:
			return
		}
		if version == newVersion {
			t.Upgrade = ""
		}
		send("", t, c)
	}
}

// receives is the controller that receives a message of the CRM of a version.
func (u *Upgrade) receives(version string) func(cloudlet, message, func(string, cloudlet)) {
	return func(c cloudlet, s message, next func(string, cloudlet)) {
		was := c
		if _ = u.receive(&c, version, s); c != was { // an error may come after a first commit
			next("", c)
		}
	}
}

func (u *Upgrade) receive(c *cloudlet, version string, s message) error {
	if u.Trusting && s.Event != edgecloud.StartUp {
		s.Notify = c.At.NotifyID
	}
	switch s.Event {
	case edgecloud.StartUp:
		return commit(c, func(c *cloudlet) error { return u.startUp(c, version, s.Notify) })
	case edgecloud.Gathered:
		if err := u.finishes(c, s.Notify); err != nil {
			return err
		}
		if c.start() == edgecloud.CloudletInit && u.of(c, s.Notify) == nil {
			if err := u.acknowledge(c); err != nil {
				return err
			}
		}
		return commit(c, func(c *cloudlet) error { return u.gathered(c, s.Notify) })
	case edgecloud.KeepOld:
		return u.keepOld(c, s.Notify)
	case edgecloud.Disconnected:
		if old(c, s.Notify) {
			drop(c)
			return nil
		}
		if err := u.of(c, s.Notify); err != nil {
			return err
		}
		return u.fire(creations, &c.Start, edgecloud.Disconnected, edgecloud.Controller)
	}
	sender, err := u.sender(c, s.Notify)
	if err != nil {
		return err
	}
	return u.fire(upgrades, &c.Upgrade, s.Event, sender)
}

// startUp is a CRM that has started. A CRM of another version may continue beside it.
func (u *Upgrade) startUp(c *cloudlet, version string, notify int64) error {
	if notify <= max(c.At.NotifyID, c.At.OldNotifyID) {
		return errStale
	}
	return u.connect(c, version, notify)
}

// finishes makes the new CRM of an upgrade the present one again, after the old one has
// started again.
func (u *Upgrade) finishes(c *cloudlet, notify int64) error {
	if sender, err := u.sender(c, notify); err != nil || sender != edgecloud.CRMv2 || !old(c, notify) ||
		upgrades.States[c.Upgrade.State].Kind != fsm.Transitional {
		return nil // the caller refuses it
	}
	return commit(c, func(c *cloudlet) error { return u.connect(c, c.At.OldVersion, notify) })
}

// gathered is a CRM that has its data. A new CRM has also ended the old one.
func (u *Upgrade) gathered(c *cloudlet, notify int64) error {
	sender, err := u.sender(c, notify)
	if err == nil {
		err = u.of(c, notify)
	}
	if err != nil {
		return err
	}
	if sender == edgecloud.CRMv2 {
		if c.upgrade() == edgecloud.CloudletUpdateError {
			return errStale
		}
		if err := u.fire(upgrades, &c.Upgrade, edgecloud.Gathered, sender); err != nil {
			return err
		}
		c.To.OldVersion = ""
		drop(c)
	}
	return u.fire(creations, &c.Start, edgecloud.Gathered, edgecloud.CRM)
}

// keepOld is the old CRM that continues after a failed upgrade. It becomes the present
// one again.
func (u *Upgrade) keepOld(c *cloudlet, notify int64) error {
	if c.start() == edgecloud.CloudletOffline && c.At.NotifyID == notify {
		return errStale
	}
	sender, err := u.sender(c, notify)
	if err == nil {
		err = u.fire(upgrades, &c.Upgrade, edgecloud.KeepOld, sender)
	}
	if err == nil && c.At.NotifyID != notify {
		err = commit(c, func(c *cloudlet) error {
			if !old(c, notify) {
				return errStale
			}
			return u.connect(c, c.At.OldVersion, notify)
		})
	}
	if err == nil && c.start() == edgecloud.CloudletInit {
		err = u.fire(creations, &c.Start, edgecloud.AckStart, edgecloud.Controller)
	}
	if err == nil && c.start() == edgecloud.CloudletInitOk {
		err = u.fire(creations, &c.Start, edgecloud.Gathered, edgecloud.CRM)
	}
	return err
}

// begin returns a Ready cloudlet with its CRM.
func (u *Upgrade) begin() cloudlet {
	ready := func(t *fsm.Table) object {
		s, _ := t.StateIndex(string(edgecloud.CloudletReady))
		return object{Record: decide.Record{Exists: true, State: s, Origin: s, Operation: 1}}
	}
	return cloudlet{
		Start: ready(creations), Upgrade: ready(upgrades), Left: u.Upgrades,
		At: connections{NotifyID: 1, Version: oldVersion}, To: connections{Version: oldVersion},
	}
}

// System returns the model.
func (u Upgrade) System() *explore.System {
	sys := explore.New("cloudlet upgrade")
	ctl := explore.NewActor(sys, "controller", u.begin())
	sees := notice{edgecloud.CloudletReady, edgecloud.CloudletReady}
	v1 := explore.NewActor(sys, "crm-v1", manager{Life: alive, Notify: 1, Serves: true, Sees: sees})
	v2 := explore.NewActor(sys, "crm-v2", manager{})
	ctl.Acts(u.asks)
	ctl.Acts(u.acknowledges).Fair()
	ctl.Acts(u.sweeps).Fair()

	lose, twice := sys.Budget("loss", u.Loss), sys.Budget("duplicate", u.Duplicate)
	for _, side := range []struct {
		crm, other *explore.Actor[manager]
		name       string
		version    string
		isNew      bool
		crashes    int
	}{{v1, v2, "crm-v1", oldVersion, false, u.CrashOld}, {v2, v1, "crm-v2", newVersion, true, u.CrashNew}} {
		side.crm.Acts(restart).Fair()
		up := explore.NewChannel[message](sys, side.name+" to controller", explore.ChannelSpec{Capacity: cmp.Or(u.Capacity, 2), Lose: lose, Duplicate: twice})
		explore.Sends(side.crm, up, u.sends(side.isNew)).Fair()
		explore.Receives(ctl, up, u.receives(side.version)).Fair()
		down := explore.NewChannel[notice](sys, "controller to "+side.name, explore.ChannelSpec{Capacity: 1, Lose: lose})
		explore.Sends(ctl, down, u.notifies(side.version)).Fair()
		explore.Receives(side.crm, down, u.learns(side.isNew)).Fair()
		host := explore.NewChannel[signal](sys, side.name+" on the host", explore.ChannelSpec{Capacity: 1, Ordered: true})
		explore.Sends(side.crm, host, u.does(side.isNew)).Fair()
		explore.Receives(side.other, host, u.suffers(!side.isNew)).Fair()
		crashes := sys.Budget("crashes of "+side.name, side.crashes)
		explore.Strikes(sys.Fault(side.name+" crashes", crashes, up, down), side.crm, crash)
	}

	sys.Always("never two in charge", func(v *explore.View) error {
		if v1.In(v).Serves && v2.In(v).Serves {
			return errors.New("both CRMs are in charge")
		}
		return nil
	})
	sys.Always("what the controller counts on is in charge", func(v *explore.View) error {
		c, other := ctl.In(v), v1.In(v)
		if c.start() != edgecloud.CloudletReady || c.upgrade() != edgecloud.CloudletReady {
			return nil // nothing is asked of any CRM
		}
		if c.At.Version == oldVersion {
			other = v2.In(v)
		}
		if other.Serves {
			return fmt.Errorf("the controller counts on %s, and the other is in charge", c.At.Version)
		}
		return nil
	})
	rests := func(v *explore.View) bool {
		c := ctl.In(v)
		return c.Start.Rests(creations) && c.Upgrade.Rests(upgrades)
	}
	sys.Rests(rests)
	sys.LeadsTo("every operation ends", nil, rests)
	return sys
}
