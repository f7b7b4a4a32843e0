package edgecloud

import (
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// CloudletState is the state of a cloudlet, in its creation and in its upgrade. It is
// a type of its own, because some of its names are those of instance states.
type CloudletState string

// The states of cloudlets. CloudletOffline and CloudletInit belong to the
// creation, CloudletUpdateRequested, CloudletUpdating and CloudletUpdateError
// to the upgrade.
const (
	CloudletOffline         CloudletState = "Offline"
	CloudletInit            CloudletState = "Init"   // a CRM has started and waits for the controller
	CloudletInitOk          CloudletState = "InitOk" // the controller has acknowledged, the CRM gathers data
	CloudletReady           CloudletState = "Ready"
	CloudletUpdateRequested CloudletState = "UpdateRequested"
	CloudletUpdating        CloudletState = "Updating" // the old CRM starts the new one
	CloudletUpdateError     CloudletState = "UpdateError"
)

// CloudletEvent is a request for a cloudlet, or a report about it.
type CloudletEvent string

// The events of cloudlets.
const (
	Launch       CloudletEvent = "Launch"       // the user requests a cloudlet
	StartUp      CloudletEvent = "StartUp"      // a CRM has started, under a new notify id
	AckStart     CloudletEvent = "AckStart"     // the controller acknowledges the start
	Gathered     CloudletEvent = "Gathered"     // the CRM has its data; the new CRM of an upgrade has ended the old one
	GatherFailed CloudletEvent = "GatherFailed" // the CRM could not gather its data, and exits
	Disconnected CloudletEvent = "Disconnected" // the connection of the recorded notify id has dropped

	// OldDisconnected: the connection of the CRM before the current one has dropped.
	OldDisconnected CloudletEvent = "OldDisconnected"

	Upgrade       CloudletEvent = "Upgrade"       // the user requests another version
	Replacing     CloudletEvent = "Replacing"     // the same commit fixes which CRM the upgrade replaces
	AckUpgrade    CloudletEvent = "AckUpgrade"    // the old CRM has started the upgrade
	Connected     CloudletEvent = "Connected"     // the new CRM has connected, and the controller has acknowledged
	BringUpFailed CloudletEvent = "BringUpFailed" // the old CRM could not start the new one, and has removed it
	KeepOld       CloudletEvent = "KeepOld"       // the old CRM continues and sends all its data again
	Repaired      CloudletEvent = "Repaired"      // an operator has repaired the cloudlet

	NoAnswer CloudletEvent = "NoAnswer" // the deadline has passed
)

// The timeouts of a cloudlet's states.
const (
	StartTimeout   = 10 * time.Minute // Init, InitOk: a CRM that starts
	UpgradeTimeout = 20 * time.Minute // UpdateRequested, Updating, InitOk: a CRM that replaces another
)

// CloudletSpec is the content of a cloudlet. The zero value has never been
// connected. A CloudletSpec is a plain value; copies share Attributes.
//
// The record of the creation has the CRM that started last, and the CRM before it if
// that one has another version and may still run. The record of the upgrades has the
// Version that is requested, and OldVersion while an upgrade replaces that one.
type CloudletSpec struct {
	NotifyID    int64  // of the current connection; it grows with every start of a CRM
	Version     string // of the CRM
	OldNotifyID int64  // of the connection before, or of a dropped one that is greater than NotifyID
	OldVersion  string // empty once the connection before has dropped

	// Attributes are content of the program that uses the package, such as the location: a
	// JSON value, in the record of the creation. nil: none.
	Attributes json.RawMessage `json:",omitempty"`
}

const oldDisconnected = "beyond the document: messages of a dropped connection are refused"

// CloudletCreate is the machine of a cloudlet that starts, after its creation or after
// a crash of its CRM, with the payload [CloudletSpec]. It is immutable and safe for
// concurrent use.
var CloudletCreate = fsm.Must[CloudletSpec](fsm.Spec[CloudletState, CloudletEvent]{
	Name: "cloudlet-create", Title: "Edge cloud: creation of a cloudlet", Initial: CloudletOffline,
	Actors: []fsm.Actor{User, CRM, Controller},
	States: []fsm.State[CloudletState]{
		{Name: CloudletOffline},
		{Name: CloudletInit, Kind: fsm.Transitional, Target: new(CloudletReady)},
		{Name: CloudletInitOk, Kind: fsm.Transitional, Target: new(CloudletReady)},
		{Name: CloudletReady},
	},
	Rows: fsm.Rows(
		fsm.Move(CloudletOffline, Launch, CloudletInit).By(User),
		fsm.Move(CloudletOffline, StartUp, CloudletInit).By(CRM).Note("an operator started the CRM"),
		fsm.Move(CloudletReady, StartUp, CloudletInit).AlsoFrom(CloudletInit, CloudletInitOk).By(CRM).Superseding().
			Note("a new notify id: the CRM crashed, and later messages of the CRM before are stale"),
		fsm.Move(CloudletInit, AckStart, CloudletInitOk).By(Controller),
		fsm.Move(CloudletInitOk, Gathered, CloudletReady).By(CRM),
		fsm.Move(CloudletInitOk, GatherFailed, CloudletOffline).By(CRM),

		// Beyond the document's rows.
		fsm.Move(CloudletReady, Replacing, CloudletReady).By(Controller).OnlyForced().
			Note("beyond the document: the same commit starts an upgrade of the CRM that runs now"),
		fsm.Move(CloudletReady, Disconnected, CloudletOffline).AlsoFrom(CloudletInit, CloudletInitOk).By(Controller).
			Note("beyond the document's rows, in its text: only if the dropped notify id is still the recorded one"),
		fsm.Move(CloudletOffline, OldDisconnected, CloudletOffline).By(Controller).OnlyForced().Note(oldDisconnected),
		fsm.Move(CloudletInit, OldDisconnected, CloudletInit).By(Controller).OnlyForced().Note(oldDisconnected),
		fsm.Move(CloudletInitOk, OldDisconnected, CloudletInitOk).By(Controller).OnlyForced().Note(oldDisconnected),
		fsm.Move(CloudletReady, OldDisconnected, CloudletReady).By(Controller).OnlyForced().Note(oldDisconnected),
		fsm.Move(CloudletInit, NoAnswer, CloudletOffline).AlsoFrom(CloudletInitOk).After(StartTimeout).
			Note("beyond the document: the CRM or the controller does not answer"),
	),
})

// CloudletUpgrade is the machine of a cloudlet whose CRM is replaced while it
// runs, with the payload [CloudletSpec]. It is immutable and safe for concurrent
// use.
var CloudletUpgrade = fsm.Must[CloudletSpec](fsm.Spec[CloudletState, CloudletEvent]{
	Name: "cloudlet-upgrade", Title: "Edge cloud: upgrade of a cloudlet", Initial: CloudletReady,
	Actors: []fsm.Actor{User, Controller, CRMv1, CRMv2},
	States: []fsm.State[CloudletState]{
		{Name: CloudletReady},
		{Name: CloudletUpdateRequested, Kind: fsm.Transitional, Target: new(CloudletReady)},
		{Name: CloudletUpdating, Kind: fsm.Transitional, Target: new(CloudletReady)},
		{Name: CloudletInitOk, Kind: fsm.Transitional, Target: new(CloudletReady)},
		{Name: CloudletUpdateError, Kind: fsm.Failed, Doc: "stays until an operator repairs the cloudlet"},
	},
	Rows: fsm.Rows(
		fsm.Move(CloudletReady, Upgrade, CloudletUpdateRequested).By(User),
		fsm.Move(CloudletUpdateRequested, AckUpgrade, CloudletUpdating).By(CRMv1),
		fsm.Move(CloudletUpdateRequested, Connected, CloudletInitOk).By(Controller).
			Note("the acknowledgement of the old CRM was missed"),
		fsm.Move(CloudletUpdateRequested, BringUpFailed, CloudletUpdateError).By(CRMv1),
		fsm.Move(CloudletUpdating, Connected, CloudletInitOk).By(Controller),
		fsm.Move(CloudletUpdating, Gathered, CloudletReady).By(CRMv2).
			Note("the acknowledgement of the controller was missed; the CRM sends all data"),
		fsm.Move(CloudletUpdating, BringUpFailed, CloudletUpdateError).By(CRMv1),
		fsm.Move(CloudletInitOk, Gathered, CloudletReady).By(CRMv2).Note("the CRM sends all data"),
		fsm.Move(CloudletInitOk, BringUpFailed, CloudletUpdateError).By(CRMv1),
		fsm.Move(CloudletUpdateError, KeepOld, CloudletUpdateError).By(CRMv1).
			Note("the old CRM continues; the error stays until an operator repairs the cloudlet"),

		// Beyond the document.
		fsm.Move(CloudletUpdateRequested, NoAnswer, CloudletUpdateError).AlsoFrom(CloudletUpdating, CloudletInitOk).
			After(UpgradeTimeout).Note("beyond the document: neither CRM answers"),
		fsm.Move(CloudletUpdateError, Repaired, CloudletReady).By(User).OnlyForced().
			Note("beyond the document's rows, in its text: the manual repair"),
	),
})
