package ovc

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// The timeouts of every table. The document requires both without figures. [Config]
// changes them for a [Service].
const (
	// StuckAfter is the time in a transition state after which self-healing moves an
	// object back. It must exceed the duration of every action.
	StuckAfter = 30 * time.Minute
	// Retention is the time of an object in the recycle bin.
	Retention = 7 * 24 * time.Hour
)

// The machines of the kinds, without a payload. They are immutable and safe for
// concurrent use.
var (
	VM         = fsm.Must[struct{}](KindVM.spec(StuckAfter, Retention))
	Cloudspace = fsm.Must[struct{}](KindCloudspace.spec(StuckAfter, Retention))
	Account    = fsm.Must[struct{}](KindAccount.spec(StuckAfter, Retention))
	Disk       = fsm.Must[struct{}](KindDisk.spec(StuckAfter, Retention))
	Image      = fsm.Must[struct{}](KindImage.spec(StuckAfter, Retention))
	Node       = fsm.Must[struct{}](KindNode.spec(StuckAfter, Retention))
)

// table is the table of a kind in the document.
type table struct {
	title  string
	static []State // the first one is the initial state
	rows   []row
	docs   map[State]string
}

// row is one row of the document, or several rows with the same action.
type row struct {
	initial    []State
	action     Event
	transition State
	desired    State // empty: the initial state
}

var tables = map[Kind]table{
	KindVM: {
		title:  "virtual machine",
		static: []State{Virtual, Running, Paused, Halted, Deleted, Destroyed},
		rows: []row{
			{[]State{Virtual}, Deploy, Deploying, Running},
			{[]State{Running}, Pause, Pausing, Paused},
			{[]State{Paused}, Resume, Resuming, Running},
			{[]State{Running, Paused}, Stop, Stopping, Halted},
			{[]State{Running, Paused, Halted}, Delete, Deleting, Deleted},
			{[]State{Running, Paused, Halted}, Destroy, Destroying, Destroyed},
			{[]State{Running, Paused}, Reboot, Rebooting, Running},
			{[]State{Running}, Reset, Resetting, Running},
			{[]State{Running, Paused, Halted}, AddDisk, AddingDisk, ""},
			{[]State{Running, Paused, Halted}, AttachDisk, AttachingDisk, ""},
			{[]State{Running, Paused, Halted}, DetachDisk, DetachingDisk, ""},
		},
		docs: map[State]string{Halted: "the document has no action that starts a halted machine"},
	},
	KindCloudspace: {
		title:  "cloudspace",
		static: []State{Virtual, Deployed, Disabled, Deleted, Destroyed, Paused},
		rows: []row{
			{[]State{Virtual}, Deploy, Deploying, Deployed},
			{[]State{Deployed}, Disable, Disabling, Disabled},
			{[]State{Disabled}, Enable, Enabling, Deployed},
			{[]State{Deployed, Disabled}, Delete, Deleting, Deleted},
			{[]State{Deleted}, Destroy, Destroying, Destroyed},
			{[]State{Deleted}, Restore, Restoring, Deployed},
			{[]State{Deployed}, Pause, Pausing, Paused},
			{[]State{Paused}, Resume, Resuming, Deployed},
			{[]State{Deployed}, Reset, Resetting, Deployed},
		},
		docs: map[State]string{Paused: "an administrator stopped the virtual firewall"},
	},
	KindAccount: {
		title:  "account",
		static: []State{Confirmed, Disabled, Destroyed, Deleted},
		rows: []row{
			{[]State{Confirmed}, Disable, Disabling, Disabled},
			{[]State{Disabled}, Enable, Enabling, Confirmed},
			{[]State{Confirmed, Disabled}, Destroy, Destroying, Destroyed},
			{[]State{Confirmed, Disabled}, Delete, Deleting, Deleted},
		},
	},
	KindDisk: {
		title:  "disk",
		static: []State{Modeled, Created, Assigned, Deleted, Destroyed, ToBeDeleted},
		rows: []row{
			{[]State{Modeled}, Create, Creating, Created},
			{[]State{Modeled}, Assign, Assigning, Assigned},
			{[]State{Created}, Attach, Attaching, Assigned},
			{[]State{Assigned}, Detach, Detaching, Created},
			{[]State{Created}, Delete, Deleting, Deleted},
			{[]State{Assigned}, Delete, Deleting, ToBeDeleted},
			{[]State{Created, Assigned}, Destroy, Destroying, Destroyed},
		},
		docs: map[State]string{
			Created: "detached", Assigned: "attached to a machine", ToBeDeleted: "deleted together with its machine",
		},
	},
	KindImage: {
		title:  "image",
		static: []State{Virtual, Created, Disabled, Deleted, Destroyed},
		rows: []row{
			{[]State{Virtual}, Create, Creating, Created},
			{[]State{Created}, Disable, Disabling, Disabled},
			{[]State{Disabled}, Disable, Disabling, Created},
			{[]State{Created, Disabled}, Delete, Deleting, Deleted},
			{[]State{Created, Disabled}, Destroy, Destroying, Destroyed},
		},
	},
	KindNode: {
		title:  "physical node",
		static: []State{Enabled, Maintenance, Decommissioned},
		rows: []row{
			{[]State{Enabled}, PutInMaintenance, PuttingInMaintenance, Maintenance},
			{[]State{Maintenance}, Enable, Enabling, Enabled},
			{[]State{Enabled, Maintenance}, Decommission, Decommissioning, Decommissioned},
		},
	},
}

// spec returns the specification of the machine of this kind.
func (k Kind) spec(stuckAfter, retention time.Duration) fsm.Spec[State, Event] {
	t := tables[k]
	spec := fsm.Spec[State, Event]{
		Name: "ovc-" + string(k), Title: "OpenvCloud: " + t.title, Initial: t.static[0],
		Actors: []fsm.Actor{API, Worker, Observer},
	}
	for _, s := range t.static {
		kind := fsm.Stable
		if s == Destroyed || s == Decommissioned {
			kind = fsm.Final
		}
		spec.States = append(spec.States, fsm.State[State]{Name: s, Kind: kind, Doc: t.docs[s]})
	}
	transitions := TransitionStates(k)
	for _, s := range transitions {
		spec.States = append(spec.States, fsm.State[State]{Name: s, Kind: fsm.Transitional})
	}
	for _, r := range t.rows {
		note := ""
		if r.transition == Disabling && r.desired == Created {
			note = "kept as the document prints it; ENABLING is probably meant"
		}
		start := fsm.Row[State, Event]{From: r.initial, Event: r.action, To: r.transition}
		done := fsm.Move(r.transition, Done, r.desired)
		elsewhere := func(o row) bool { return o.transition == r.transition && o.desired != r.desired }
		switch {
		case r.desired == "":
			done = fsm.Return(r.transition, Done)
		case slices.ContainsFunc(t.rows, elsewhere):
			done = done.Of(r.initial...) // the origin decides
		}
		spec.Rows = append(spec.Rows, start.By(API).Note(note), done.By(Worker).Note(note))
	}
	// Expire leads to DESTROYING, like every row into DESTROYED of the document. If the
	// destruction fails, the object stays in the bin for another retention period.
	if bin := k.bin(); len(bin) > 0 {
		spec.Rows = append(spec.Rows, fsm.Row[State, Event]{From: bin, Event: Expire, To: Destroying}.By(Observer).After(retention).
			Note("beyond the document's rows, in its text: permanently deleted after the retention period"))
	}
	spec.Rows = append(spec.Rows, fsm.Return(transitions[0], Stuck).AlsoFrom(transitions[1:]...).By(Observer).After(stuckAfter).
		Note("beyond the document's rows, in its notes: self-healing recovers the previous state"))
	return spec
}

// bin returns the states of the objects of this kind in the recycle bin.
func (k Kind) bin() []State {
	return slices.DeleteFunc(slices.Clone(tables[k].static), func(s State) bool { return s != Deleted && s != ToBeDeleted })
}
