// The upgrade of a cloudlet, as the document's "State Transitions for Cloudlet
// Upgrade" has it: the controller, the CRM that serves the cloudlet (v1), and the
// one that is to replace it (v2). There is never a moment with two in charge.
//
// What is there: both tables of cloudlets of lifecycle/edgecloud, decided about by
// internal/decide, and the rules of its Cloudlets about connections: notify ids
// grow, who speaks is known by the notify id and not by what it says, what does
// not come under the connection that counts changes nothing. CRMs decide by what
// the controller told them last, which may be late; what they say is said again
// until they see that it was heard. One CRM starts or ends the other on their host:
// what it ends is that CRM for good, and not one process of it, and it knows when
// that has gone.
//
// What is not: instances; a person who repairs; the content of what is gathered;
// the several commits of KeepOld and of Gathered, which are one step each. A CRM
// that crashed is started again under a new notify id; one that was ended is not.
// Deadlines may pass at any time.

package models

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// Upgrade is the upgrade as a model. The zero Upgrade is one that nobody asks for.
type Upgrade struct {
	Decisions *Decisions // default: Shipped
	Upgrades  uint8      // that the user asks for
	Capacity  int        // of the channels from a CRM to the controller; default 2

	Loss, Duplicate    int // budgets, also of the next
	CrashOld, CrashNew int

	// Faults that can be planted.
	Hasty    bool // the new CRM takes over without waiting until the old one has gone
	Trusting bool // whoever speaks is taken for the CRM whose connection counts
}

// said is what a CRM says, under the notify id of its connection.
type said struct {
	Event  edgecloud.CloudletEvent
	Notify int64
}

func (s said) String() string { return fmt.Sprintf("%s under %d", s.Event, s.Notify) }

// told is what the controller tells a CRM that has connected: its own state, which
// alone counts.
type told struct {
	Start   edgecloud.CloudletState // Offline for a connection that does not count
	Upgrade edgecloud.CloudletState // empty for the new one
}

func (t told) String() string {
	if t.Upgrade == "" {
		return string(t.Start)
	}
	return fmt.Sprintf("%s, upgrade %s", t.Start, t.Upgrade)
}

// signal is what happens on the host of the two CRMs.
type signal string

const (
	start signal = "start"
	end   signal = "end"
	gone  signal = "gone" // it was ended, and is
)

// cloudlet is the controller: the two records, with what connects and what is to
// run.
type cloudlet struct {
	Start, Upgrade object
	At, To         edgecloud.Cloudlet
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

type upgrade struct {
	Upgrade
	decisions Decisions
}

// fire fires an event at one of the two records. An error is a refusal.
func (u *upgrade) fire(t *fsm.Table, o *object, ev edgecloud.CloudletEvent, actor fsm.Actor) error {
	e, _ := t.EventIndex(string(ev))
	next, d := u.decisions.Ask(t, *o, decide.Request{Verb: decide.Fire, Event: e, Actor: actor}, 0)
	*o = next
	o.Operation = 1 // it is read and written in one step: nobody names another one
	return d.Err
}

var errStale = errors.New("a connection that does not count")

// speaker is who speaks under a notify id.
func (u *upgrade) speaker(c *cloudlet, notify int64) (fsm.Actor, error) {
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

// old reports whether a connection is that of the CRM that was there before, and has
// not dropped.
func old(c *cloudlet, notify int64) bool {
	return c.At.OldVersion != "" && c.At.OldNotifyID == notify
}

// drop notes that the CRM that was there before counts no more.
func drop(c *cloudlet) {
	c.At.OldVersion = ""
	if c.At.OldNotifyID < c.At.NotifyID {
		c.At.OldNotifyID = 0
	}
}

// connect is a CRM that takes the place, or takes it back.
func (u *upgrade) connect(c *cloudlet, version string, notify int64) error {
	if c.At.Version != version {
		c.At.OldNotifyID, c.At.OldVersion = c.At.NotifyID, c.At.Version
	}
	c.At.NotifyID, c.At.Version = notify, version
	if c.start() == edgecloud.CloudletOffline {
		drop(c)
	}
	return u.fire(creations, &c.Start, edgecloud.StartUp, edgecloud.CRM)
}

// of refuses what is not said under the connection that counts.
func (u *upgrade) of(c *cloudlet, notify int64) error {
	if c.At.NotifyID != notify {
		return errStale
	}
	return nil
}

// asks is the user who asks for the upgrade, of a cloudlet that is Ready.
func (u *upgrade) asks(c cloudlet, step func(string, cloudlet)) {
	if c.Left == 0 || c.start() != edgecloud.CloudletReady || c.At.Version == newVersion {
		return
	}
	if u.fire(upgrades, &c.Upgrade, edgecloud.Upgrade, edgecloud.User) == nil {
		c.Left--
		c.To.Version, c.To.OldVersion = newVersion, c.At.Version
		step("Upgrade", c)
	}
}

// commit is one commit: what is refused has changed nothing.
func commit(c *cloudlet, change func(*cloudlet) error) error {
	next := *c
	err := change(&next)
	if err == nil {
		*c = next
	}
	return err
}

// acknowledge is the controller that answers a CRM that has started.
func (u *upgrade) acknowledge(c *cloudlet) error {
	return commit(c, func(c *cloudlet) error {
		if err := u.fire(creations, &c.Start, edgecloud.AckStart, edgecloud.Controller); err != nil {
			return err
		}
		speaker, err := u.speaker(c, c.At.NotifyID)
		if err == nil && speaker == edgecloud.CRMv2 &&
			(c.upgrade() == edgecloud.CloudletUpdateRequested || c.upgrade() == edgecloud.CloudletUpdating) {
			err = u.fire(upgrades, &c.Upgrade, edgecloud.Connected, edgecloud.Controller)
		}
		return err
	})
}

func (u *upgrade) acknowledges(c cloudlet, step func(string, cloudlet)) {
	if u.acknowledge(&c) == nil {
		step("AckStart", c)
	}
}

// sweeps is the sweeper that finds a deadline over.
func (u *upgrade) sweeps(c cloudlet, step func(string, cloudlet)) {
	for _, r := range []struct {
		table *fsm.Table
		at    *object
		label string
	}{{creations, &c.Start, "NoAnswer"}, {upgrades, &c.Upgrade, "NoAnswer to the upgrade"}} {
		was := *r.at
		if q, care := u.decisions.Sweep(r.table, &was.Record, decide.Cause{Overdue: true}); care == decide.FireEvent {
			var d decide.Decision
			if *r.at, d = u.decisions.Ask(r.table, was, q, 0); d.Write {
				step(r.label, c)
			}
		}
		*r.at = was
	}
}

// tells is the controller that tells the CRM of a version what that one looks at:
// the old one the state of the upgrade, both the state of their own start.
func (u *upgrade) tells(version string) func(cloudlet, func(string, told, cloudlet)) {
	return func(c cloudlet, send func(string, told, cloudlet)) {
		t := told{Upgrade: c.upgrade()}
		switch version {
		case c.At.Version:
			t.Start = c.start()
		case c.At.OldVersion:
			t.Start = edgecloud.CloudletOffline // it counts no more
		default:
			return
		}
		if version == newVersion {
			t.Upgrade = ""
		}
		send("", t, c)
	}
}

// hears is the controller that gets what a CRM of a version says.
func (u *upgrade) hears(version string) func(cloudlet, said, func(string, cloudlet)) {
	return func(c cloudlet, s said, next func(string, cloudlet)) {
		was := c
		if _ = u.hear(&c, version, s); c != was { // an error may come after a first commit
			next("", c)
		}
	}
}

func (u *upgrade) hear(c *cloudlet, version string, s said) error {
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
	speaker, err := u.speaker(c, s.Notify)
	if err != nil {
		return err
	}
	return u.fire(upgrades, &c.Upgrade, s.Event, speaker)
}

// startUp is a CRM that has started. One of another version may go on beside it.
func (u *upgrade) startUp(c *cloudlet, version string, notify int64) error {
	if notify <= max(c.At.NotifyID, c.At.OldNotifyID) {
		return errStale
	}
	return u.connect(c, version, notify)
}

// finishes gives the new CRM of an upgrade the place back that the old one has taken
// by starting again.
func (u *upgrade) finishes(c *cloudlet, notify int64) error {
	if speaker, err := u.speaker(c, notify); err != nil || speaker != edgecloud.CRMv2 || !old(c, notify) ||
		upgrades.States[c.Upgrade.State].Kind != fsm.Transitional {
		return nil // it is refused as what it is
	}
	return commit(c, func(c *cloudlet) error { return u.connect(c, c.At.OldVersion, notify) })
}

// gathered is a CRM that has its data, and a new one that has ended the old.
func (u *upgrade) gathered(c *cloudlet, notify int64) error {
	speaker, err := u.speaker(c, notify)
	if err == nil {
		err = u.of(c, notify)
	}
	if err != nil {
		return err
	}
	if speaker == edgecloud.CRMv2 {
		if c.upgrade() == edgecloud.CloudletUpdateError {
			return errStale
		}
		if err := u.fire(upgrades, &c.Upgrade, edgecloud.Gathered, speaker); err != nil {
			return err
		}
		c.To.OldVersion = ""
		drop(c)
	}
	return u.fire(creations, &c.Start, edgecloud.Gathered, edgecloud.CRM)
}

// keepOld is the old CRM that goes on after a failed upgrade, and takes its place
// back if the new one had it.
func (u *upgrade) keepOld(c *cloudlet, notify int64) error {
	if c.start() == edgecloud.CloudletOffline && c.At.NotifyID == notify {
		return errStale
	}
	speaker, err := u.speaker(c, notify)
	if err == nil {
		err = u.fire(upgrades, &c.Upgrade, edgecloud.KeepOld, speaker)
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

// upgrade returns it with its defaults.
func (p Upgrade) upgrade() *upgrade {
	u := &upgrade{Upgrade: p, decisions: Shipped()}
	if p.Decisions != nil {
		u.decisions = *p.Decisions
	}
	if u.Capacity == 0 {
		u.Capacity = 2
	}
	return u
}

// begin is a cloudlet that is Ready, with its CRM.
func (u *upgrade) begin() cloudlet {
	ready := func(t *fsm.Table) object {
		s, _ := t.StateIndex(string(edgecloud.CloudletReady))
		return object{Record: decide.Record{Exists: true, State: s, Origin: s, Operation: 1}}
	}
	return cloudlet{
		Start: ready(creations), Upgrade: ready(upgrades), Left: u.Upgrades,
		At: edgecloud.Cloudlet{NotifyID: 1, Version: oldVersion}, To: edgecloud.Cloudlet{Version: oldVersion},
	}
}

// System returns the model for package check.
func (p Upgrade) System() *explore.System {
	u := p.upgrade()
	sys := explore.New("cloudlet upgrade")
	ctl := explore.NewActor(sys, "controller", u.begin())
	sees := told{edgecloud.CloudletReady, edgecloud.CloudletReady}
	v1 := explore.NewActor(sys, "crm-v1", manager{Life: alive, Notify: 1, Serves: true, Sees: sees})
	v2 := explore.NewActor(sys, "crm-v2", manager{})
	ctl.Acts(u.asks)
	ctl.Acts(u.acknowledges)
	ctl.Acts(u.sweeps)

	lose, twice := sys.Budget("loss", p.Loss), sys.Budget("duplicate", p.Duplicate)
	for _, side := range []struct {
		crm, other *explore.Actor[manager]
		name       string
		version    string
		isNew      bool
		crashes    int
	}{{v1, v2, "crm-v1", oldVersion, false, p.CrashOld}, {v2, v1, "crm-v2", newVersion, true, p.CrashNew}} {
		side.crm.Acts(restart)
		up := explore.NewChannel[said](sys, side.name+" says", explore.Channel{Capacity: u.Capacity, Lose: lose, Duplicate: twice})
		explore.Sends(side.crm, up, u.says(side.isNew))
		explore.Receives(ctl, up, u.hears(side.version))
		down := explore.NewChannel[told](sys, side.name+" is told", explore.Channel{Capacity: 1, Lose: lose})
		explore.Sends(ctl, down, u.tells(side.version))
		explore.Receives(side.crm, down, u.learns(side.isNew))
		host := explore.NewChannel[signal](sys, side.name+" on the host", explore.Channel{Capacity: 1, Ordered: true})
		explore.Sends(side.crm, host, u.does(side.isNew))
		explore.Receives(side.other, host, u.suffers(!side.isNew))
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
	sys.Rests(func(v *explore.View) bool {
		c := ctl.In(v)
		return c.Start.Rests(creations) && c.Upgrade.Rests(upgrades)
	})
	return sys
}
