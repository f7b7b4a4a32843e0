package ovc

import "github.com/interlock-go/interlock/fsm"

// State is a state of an object of any kind, written as the document writes it.
// The machine of a kind has the states of its objects.
type State string

// The static states: an object has them until an action starts.
const (
	Virtual        State = "VIRTUAL"   // a machine, cloudspace or image that is only described
	Modeled        State = "MODELED"   // a disk that is only described
	Confirmed      State = "CONFIRMED" // an account in use
	Enabled        State = "ENABLED"   // a node in use
	Created        State = "CREATED"   // of a disk: detached from any machine
	Assigned       State = "ASSIGNED"  // of a disk: attached to a machine
	Deployed       State = "DEPLOYED"
	Running        State = "RUNNING"
	Paused         State = "PAUSED"
	Halted         State = "HALTED"
	Disabled       State = "DISABLED"
	Maintenance    State = "MAINTENANCE"
	Deleted        State = "DELETED"     // in the recycle bin; of a disk: detached when it was deleted
	ToBeDeleted    State = "TOBEDELETED" // a disk in the recycle bin that went there with its machine
	Destroyed      State = "DESTROYED"   // permanently deleted
	Decommissioned State = "DECOMMISSIONED"
)

// The transition states: an action is under way.
const (
	Deploying            State = "DEPLOYING"
	Creating             State = "CREATING"
	Pausing              State = "PAUSING"
	Resuming             State = "RESUMING"
	Stopping             State = "STOPPING"
	Rebooting            State = "REBOOTING"
	Resetting            State = "RESETTING"
	AddingDisk           State = "ADDING_DISK"
	AttachingDisk        State = "ATTACHING_DISK"
	DetachingDisk        State = "DETACHING_DISK"
	Assigning            State = "ASSIGNING"
	Attaching            State = "ATTACHING"
	Detaching            State = "DETACHING"
	Disabling            State = "DISABLING"
	Enabling             State = "ENABLING"
	Deleting             State = "DELETING"
	Restoring            State = "RESTORING"
	Destroying           State = "DESTROYING"
	PuttingInMaintenance State = "PUTTING_IN_MAINTENANCE"
	Decommissioning      State = "DECOMMISSIONING"
)

// Event is a request to an object, or a report about it. Every action of the document
// is one event, which starts it; [Done] ends all of them.
type Event string

// The actions, by [API].
const (
	Deploy           Event = "deploy"
	Create           Event = "create"
	Pause            Event = "pause"
	Resume           Event = "resume"
	Stop             Event = "stop"
	Reboot           Event = "reboot"
	Reset            Event = "reset"
	AddDisk          Event = "add_disk"
	AttachDisk       Event = "attach_disk"
	DetachDisk       Event = "detach_disk"
	Assign           Event = "assign"
	Attach           Event = "attach"
	Detach           Event = "detach"
	Disable          Event = "disable"
	Enable           Event = "enable"
	Delete           Event = "delete" // into the recycle bin
	Restore          Event = "restore"
	Destroy          Event = "destroy" // permanently
	PutInMaintenance Event = "put_in_maintenance"
	Decommission     Event = "decommission"
)

// The events that no user requests.
const (
	Done   Event = "done"   // by [Worker]: the action succeeded
	Stuck  Event = "stuck"  // by [Observer] or [fsm.Sweeper]: the action has not ended in time
	Expire Event = "expire" // by [Observer]: the object has been in the recycle bin long enough
)

// The actors.
const (
	API    fsm.Actor = "api"    // starts actions for users and administrators
	Worker fsm.Actor = "worker" // performs them
	// Observer moves objects that no action moves: it heals, and empties the recycle bin.
	Observer fsm.Actor = "observer"
)
