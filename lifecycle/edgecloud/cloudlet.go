package edgecloud

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// CloudletState is the state of a cloudlet, in its creation as in its upgrade.
// It is a type of its own: a cloudlet that is Ready or Updating has nothing to
// do with an instance that is.
type CloudletState string

// The states of cloudlets. CloudletOffline and CloudletInit belong to the
// creation, CloudletUpdateRequested, CloudletUpdating and CloudletUpdateError
// to the upgrade.
const (
	CloudletOffline         CloudletState = "Offline"
	CloudletInit            CloudletState = "Init"   // a CRM has started and waits for the controller
	CloudletInitOk          CloudletState = "InitOk" // the controller has answered, the CRM gathers data
	CloudletReady           CloudletState = "Ready"
	CloudletUpdateRequested CloudletState = "UpdateRequested"
	CloudletUpdating        CloudletState = "Updating" // the old CRM is starting the new one
	CloudletUpdateError     CloudletState = "UpdateError"
)

// CloudletEvent is a request for a cloudlet, or a report about it.
type CloudletEvent string

// The events of cloudlets.
const (
	Launch       CloudletEvent = "Launch"       // the user requests a cloudlet
	StartUp      CloudletEvent = "StartUp"      // a CRM has started, under a new notify id
	AckStart     CloudletEvent = "AckStart"     // the controller answers it
	Gathered     CloudletEvent = "Gathered"     // the CRM has its data; an upgrade's new CRM has ended the old one too
	GatherFailed CloudletEvent = "GatherFailed" // the CRM could not get its data, and exits
	Disconnected CloudletEvent = "Disconnected" // the connection of the recorded notify id is gone

	// OldDisconnected: the connection of the CRM that another one has replaced is gone.
	OldDisconnected CloudletEvent = "OldDisconnected"

	Upgrade       CloudletEvent = "Upgrade"       // the user requests another version
	Replacing     CloudletEvent = "Replacing"     // the controller, in the same commit: it is this CRM that the upgrade replaces
	AckUpgrade    CloudletEvent = "AckUpgrade"    // the old CRM has begun
	Connected     CloudletEvent = "Connected"     // the new CRM has connected and the controller answered it
	BringUpFailed CloudletEvent = "BringUpFailed" // the old CRM could not bring up the new one, and has removed it
	KeepOld       CloudletEvent = "KeepOld"       // the old CRM goes on and sends all its data again
	Repaired      CloudletEvent = "Repaired"      // an operator has repaired the cloudlet

	NoAnswer CloudletEvent = "NoAnswer" // the deadline has passed
)

// The timeouts of a cloudlet's states.
const (
	StartTimeout   = 10 * time.Minute // Init, InitOk: a CRM that starts
	UpgradeTimeout = 20 * time.Minute // UpdateRequested, Updating, InitOk: a CRM that replaces another
)

// Cloudlet is the content of a cloudlet. The zero value has never been
// connected. A Cloudlet is a plain value.
//
// In the record of its creation it is what connects: NotifyID and Version of the
// CRM that started last, and of the one before it if that has another version and
// may still run: once its connection has dropped there is no OldVersion. In the
// record of its upgrades it is what is to run: Version, and OldVersion while that
// one is being replaced.
type Cloudlet struct {
	NotifyID    int64  // of the CRM connection that counts; a greater one with every start of a CRM
	Version     string // of the CRM
	OldNotifyID int64  // also of one that has dropped, if it is greater
	OldVersion  string
}

// CloudletCreate is the machine of a cloudlet that comes up, from its creation
// or from a crash of its CRM, with the payload [Cloudlet]. It is immutable and
// safe for concurrent use.
var CloudletCreate = fsm.Must[Cloudlet](CloudletCreateTable())

// CloudletUpgrade is the machine of a cloudlet whose CRM is replaced while it
// runs, with the payload [Cloudlet]. It is immutable and safe for concurrent
// use.
var CloudletUpgrade = fsm.Must[Cloudlet](CloudletUpgradeTable())

const oldDisconnected = "beyond the document: nothing is said any more, and no place taken back, under a connection that has dropped"

// CloudletCreateTable returns the specification of [CloudletCreate], for a
// machine with a payload of your own.
func CloudletCreateTable() fsm.Spec[CloudletState, CloudletEvent] {
	return fsm.Spec[CloudletState, CloudletEvent]{
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
			fsm.Move(CloudletOffline, StartUp, CloudletInit).By(CRM).Note("started by hand"),
			fsm.Move(CloudletReady, StartUp, CloudletInit).AlsoFrom(CloudletInit, CloudletInitOk).By(CRM).Superseding().
				Note("a new notify id: the CRM crashed, and what its predecessor still says is stale"),
			fsm.Move(CloudletInit, AckStart, CloudletInitOk).By(Controller),
			fsm.Move(CloudletInitOk, Gathered, CloudletReady).By(CRM),
			fsm.Move(CloudletInitOk, GatherFailed, CloudletOffline).By(CRM),

			// Beyond the document's rows.
			fsm.Move(CloudletReady, Replacing, CloudletReady).By(Controller).OnlyForced().
				Note("beyond the document: an upgrade begins in the same commit, of the CRM that runs at that moment"),
			fsm.Move(CloudletReady, Disconnected, CloudletOffline).AlsoFrom(CloudletInit, CloudletInitOk).By(Controller).
				Note("beyond the document's rows, in its text: reported under the operation of the connection that dropped; a CRM that has reconnected has made it stale"),
			fsm.Move(CloudletOffline, OldDisconnected, CloudletOffline).By(Controller).OnlyForced().Note(oldDisconnected),
			fsm.Move(CloudletInit, OldDisconnected, CloudletInit).By(Controller).OnlyForced().Note(oldDisconnected),
			fsm.Move(CloudletInitOk, OldDisconnected, CloudletInitOk).By(Controller).OnlyForced().Note(oldDisconnected),
			fsm.Move(CloudletReady, OldDisconnected, CloudletReady).By(Controller).OnlyForced().Note(oldDisconnected),
			fsm.Move(CloudletInit, NoAnswer, CloudletOffline).AlsoFrom(CloudletInitOk).After(StartTimeout).
				Note("beyond the document: CRM or controller is silent"),
		),
	}
}

// CloudletUpgradeTable returns the specification of [CloudletUpgrade], for a
// machine with a payload of your own.
func CloudletUpgradeTable() fsm.Spec[CloudletState, CloudletEvent] {
	return fsm.Spec[CloudletState, CloudletEvent]{
		Name: "cloudlet-upgrade", Title: "Edge cloud: upgrade of a cloudlet", Initial: CloudletReady,
		Actors: []fsm.Actor{User, Controller, CRMv1, CRMv2},
		States: []fsm.State[CloudletState]{
			{Name: CloudletReady},
			{Name: CloudletUpdateRequested, Kind: fsm.Transitional, Target: new(CloudletReady)},
			{Name: CloudletUpdating, Kind: fsm.Transitional, Target: new(CloudletReady)},
			{Name: CloudletInitOk, Kind: fsm.Transitional, Target: new(CloudletReady)},
			{Name: CloudletUpdateError, Kind: fsm.Failed, Doc: "left as it is for a person to look at"},
		},
		Rows: fsm.Rows(
			fsm.Move(CloudletReady, Upgrade, CloudletUpdateRequested).By(User),
			fsm.Move(CloudletUpdateRequested, AckUpgrade, CloudletUpdating).By(CRMv1),
			fsm.Move(CloudletUpdateRequested, Connected, CloudletInitOk).By(Controller).
				Note("the old CRM's acknowledgement was missed"),
			fsm.Move(CloudletUpdateRequested, BringUpFailed, CloudletUpdateError).By(CRMv1),
			fsm.Move(CloudletUpdating, Connected, CloudletInitOk).By(Controller),
			fsm.Move(CloudletUpdating, Gathered, CloudletReady).By(CRMv2).
				Note("the controller's acknowledgement was missed; all data is sent"),
			fsm.Move(CloudletUpdating, BringUpFailed, CloudletUpdateError).By(CRMv1),
			fsm.Move(CloudletInitOk, Gathered, CloudletReady).By(CRMv2).Note("all data is sent"),
			fsm.Move(CloudletInitOk, BringUpFailed, CloudletUpdateError).By(CRMv1),
			fsm.Move(CloudletUpdateError, KeepOld, CloudletUpdateError).By(CRMv1).
				Note("the old CRM serves on; the error stays until a person has looked"),

			// Beyond the document.
			fsm.Move(CloudletUpdateRequested, NoAnswer, CloudletUpdateError).AlsoFrom(CloudletUpdating, CloudletInitOk).
				After(UpgradeTimeout).Note("beyond the document: both CRMs are silent"),
			fsm.Move(CloudletUpdateError, Repaired, CloudletReady).By(User).OnlyForced().
				Note("the document's manual repair, which has no row there"),
		),
	}
}
