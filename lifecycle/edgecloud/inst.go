package edgecloud

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// State is the tracked state of a ClusterInst or AppInst.
type State string

// The states of ClusterInsts and AppInsts. The document writes Deleted for the
// target of one row; it is NotPresent: the record is gone.
const (
	NotPresent      State = "NotPresent"
	CreateRequested State = "CreateRequested"
	Creating        State = "Creating"
	CreateError     State = "CreateError"
	Ready           State = "Ready"
	UpdateRequested State = "UpdateRequested"
	Updating        State = "Updating"
	UpdateError     State = "UpdateError"
	DeletePrepare   State = "DeletePrepare"
	DeleteRequested State = "DeleteRequested"
	Deleting        State = "Deleting"
	DeleteError     State = "DeleteError"
)

// Event is a request for a ClusterInst or AppInst, or a report about it.
type Event string

// The events of ClusterInsts and AppInsts. The document identifies the CRM's reports
// by the state that they lead to; here each has a name.
const (
	Create Event = "Create" // by the user
	Update Event = "Update" // by the user
	Delete Event = "Delete" // by the user

	Working Event = "Working" // the CRM has started the work
	Done    Event = "Done"    // the CRM has completed the work
	Fail    Event = "Fail"    // the work of the CRM has failed

	Prepared      Event = "Prepared"      // the controller has found no object that needs this one
	PrepareFailed Event = "PrepareFailed" // the controller has found one, or could not read them
	Undo          Event = "Undo"          // the controller takes the failed operation back

	TimedOut Event = "TimedOut" // the deadline has passed
)

// The timeouts of the states of an operation. The CRM's message that it has started
// may be lost, so the state before that message has the same timeout as the one after.
const (
	CreateTimeout  = 30 * time.Minute
	UpdateTimeout  = 20 * time.Minute
	DeleteTimeout  = 20 * time.Minute
	PrepareTimeout = time.Minute // DeletePrepare: a look-up in the controller's own data
)

// ClusterSpec is the content of a ClusterInst, as the user requests it. It is a plain
// value.
type ClusterSpec struct {
	Cloudlet string // key of the cloudlet on which the cluster runs
	Flavor   string // size of its nodes
	Nodes    int    // how many
}

// AppSpec is the content of an AppInst, as the user requests it. It is a plain value.
type AppSpec struct {
	ClusterInst string // key of the ClusterInst in which the app runs
	Image       string // what runs
	Replicas    int    // how often
}

// ManagerConfig returns the configuration of a manager of ClusterInsts or AppInsts
// without a [Coordinator]: [Undo] restores the previous content, as in the document,
// and [lifecycle.Manager.Do] does the work of the CRM. The caller may modify it, for
// example to add an owner or an observer.
//
//	clusters := lifecycle.Must(edgecloud.ClusterInst, store, edgecloud.ManagerConfig())
func ManagerConfig() *lifecycle.Config[Event] {
	return &lifecycle.Config[Event]{WorkerActor: CRM, Done: []Event{Done}, Failed: []Event{Fail}, Undo: []Event{Undo}}
}

// ClusterInst is the machine of ClusterInsts with the payload [ClusterSpec]. Use
// [ManagerConfig] for a manager of it. It is immutable and safe for concurrent use.
var ClusterInst = fsm.Must[ClusterSpec](ClusterInstTable())

// AppInst is the machine of AppInsts with the payload [AppSpec]. Its rows are
// those of [ClusterInst]. Use [ManagerConfig] for a manager of it. It is immutable and
// safe for concurrent use.
var AppInst = fsm.Must[AppSpec](AppInstTable())

// ClusterInstTable returns the specification of [ClusterInst], for a machine
// with a payload of your own:
//
//	var clusters = fsm.Must[MyCluster](edgecloud.ClusterInstTable())
func ClusterInstTable() fsm.Spec[State, Event] {
	return instTable("clusterinst", "Edge cloud: ClusterInst")
}

// AppInstTable returns the specification of [AppInst], for a machine with a
// payload of your own.
func AppInstTable() fsm.Spec[State, Event] {
	return instTable("appinst", "Edge cloud: AppInst")
}

func instTable(name, title string) fsm.Spec[State, Event] {
	working := func(s, target State) fsm.State[State] {
		return fsm.State[State]{Name: s, Kind: fsm.Transitional, Target: &target}
	}
	return fsm.Spec[State, Event]{
		Name: name, Title: title, Initial: NotPresent,
		Actors: []fsm.Actor{User, CRM, Controller},
		States: []fsm.State[State]{
			{Name: NotPresent, Kind: fsm.Absent},
			working(CreateRequested, Ready),
			working(Creating, Ready),
			{Name: CreateError, Kind: fsm.Failed},
			{Name: Ready},
			working(UpdateRequested, Ready),
			working(Updating, Ready),
			{Name: UpdateError, Kind: fsm.Failed},
			working(DeletePrepare, NotPresent),
			working(DeleteRequested, NotPresent),
			working(Deleting, NotPresent),
			{Name: DeleteError, Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			// Create.
			fsm.Move(NotPresent, Create, CreateRequested).By(User),
			fsm.Move(CreateRequested, Working, Creating).By(CRM),
			fsm.Move(CreateRequested, Done, Ready).By(CRM).Note("the message Creating was missed"),
			fsm.Move(CreateRequested, Fail, CreateError).By(CRM),
			fsm.Move(Creating, Done, Ready).By(CRM),
			fsm.Move(Creating, Fail, CreateError).By(CRM),
			fsm.Move(CreateError, Undo, NotPresent).By(Controller),
			// Update.
			fsm.Move(Ready, Update, UpdateRequested).By(User),
			fsm.Move(UpdateRequested, Working, Updating).By(CRM),
			fsm.Move(UpdateRequested, Done, Ready).By(CRM).Note("the message Updating was missed"),
			fsm.Move(UpdateRequested, Fail, UpdateError).By(CRM),
			fsm.Move(Updating, Done, Ready).By(CRM),
			fsm.Move(Updating, Fail, UpdateError).By(CRM),
			fsm.Move(UpdateError, Undo, Ready).By(Controller).Note("the previous content comes back"),
			// Delete.
			fsm.Move(Ready, Delete, DeletePrepare).By(User),
			fsm.Move(DeletePrepare, Prepared, DeleteRequested).By(Controller),
			fsm.Move(DeleteRequested, Working, Deleting).By(CRM),
			fsm.Move(DeleteRequested, Done, NotPresent).By(CRM).Note("the message Deleting was missed"),
			fsm.Move(DeleteRequested, Fail, DeleteError).By(CRM),
			fsm.Move(Deleting, Done, NotPresent).By(CRM),
			fsm.Move(Deleting, Fail, DeleteError).By(CRM),
			fsm.Move(DeleteError, Undo, Ready).By(Controller),

			// Beyond the document: deadlines, preparation that fails, forced ways out of
			// the error states.
			fsm.Move(CreateRequested, TimedOut, CreateError).AlsoFrom(Creating).After(CreateTimeout).
				Note("beyond the document: the CRM is silent"),
			fsm.Move(UpdateRequested, TimedOut, UpdateError).AlsoFrom(Updating).After(UpdateTimeout).
				Note("beyond the document: the CRM is silent"),
			fsm.Move(DeleteRequested, TimedOut, DeleteError).AlsoFrom(Deleting).After(DeleteTimeout).
				Note("beyond the document: the CRM is silent"),
			fsm.Return(DeletePrepare, PrepareFailed).By(Controller).
				Note("beyond the document: something still needs the object, and nothing was asked of the CRM"),
			fsm.Return(DeletePrepare, TimedOut).After(PrepareTimeout).
				Note("beyond the document: the controller died; nothing was asked of the CRM"),
			fsm.Move(UpdateError, Update, UpdateRequested).By(User).OnlyForced().
				Note("beyond the document: try again instead of undoing"),
			fsm.Move(CreateError, Delete, DeletePrepare).AlsoFrom(UpdateError, DeleteError).By(User).OnlyForced().
				Note("beyond the document: give the object up instead of undoing"),
		),
	}
}
