package edgecloud

import (
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The actors of the document. During an upgrade a cloudlet has two CRMs.
const (
	User       fsm.Actor = "user"       // requests changes: an operator or a program
	CRM        fsm.Actor = "crm"        // the cloudlet resource manager: does the work and reports its progress
	Controller fsm.Actor = "controller" // the coordinator: prepares, acknowledges, undoes
	Observer   fsm.Actor = "observer"   // the coordinator, if the CRM has not answered in time
	CRMv1      fsm.Actor = "crm-v1"     // the CRM that an upgrade replaces
	CRMv2      fsm.Actor = "crm-v2"     // the CRM that an upgrade starts
)

// State is the tracked state of a ClusterInst or AppInst.
type State string

// The states of ClusterInsts and AppInsts. In NotPresent the record does not exist.
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

// Deleted is what a CRM may report instead of [NotPresent]. It is not a state of the
// machine. The outcome is the same: the record is removed.
const Deleted State = "Deleted"

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

	Prepared      Event = "Prepared"      // no object needs this one: the controller orders the delete
	PrepareFailed Event = "PrepareFailed" // an object needs this one, or the controller could not order the delete
	Undo          Event = "Undo"          // the controller undoes the failed operation

	TimedOut Event = "TimedOut" // the deadline has passed
)

// The timeouts of the states of an operation. The CRM's message that it has started
// may be lost, so the state before that message has the same timeout as the one after.
const (
	CreateTimeout  = 30 * time.Minute
	UpdateTimeout  = 20 * time.Minute
	DeleteTimeout  = 20 * time.Minute
	PrepareTimeout = time.Minute // DeletePrepare: the controller reads its own records
)

// ClusterSpec is the content of a ClusterInst, as the user requests it, with the results
// of the CRM. It is a plain value; copies share Results and Attributes.
type ClusterSpec struct {
	Cloudlet string // key of the cloudlet on which the cluster runs
	Flavor   string // size of the nodes
	Nodes    int    // number of nodes
	// Results are those of the CRM's last report of success that had any, see [Report].
	Results json.RawMessage `json:",omitempty"`
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	Attributes json.RawMessage `json:",omitempty"`
}

// AppSpec is the content of an AppInst, as the user requests it, with the results of the
// CRM. It is a plain value; copies share Results and Attributes.
type AppSpec struct {
	ClusterInst string // key of the ClusterInst in which the app runs
	Image       string // container image
	Replicas    int    // number of replicas
	// Results are those of the CRM's last report of success that had any, see [Report].
	Results json.RawMessage `json:",omitempty"`
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	Attributes json.RawMessage `json:",omitempty"`
}

// ManagerConfig returns the configuration of a manager of ClusterInsts or AppInsts
// without a [Coordinator]: [Undo] restores the previous content, as in the document,
// and [lifecycle.Manager.Do] does the work of the CRM. The caller may modify it, for
// example to add an owner or an observer.
//
//	clusters, err := lifecycle.New(edgecloud.ClusterInst, store, edgecloud.ManagerConfig())
func ManagerConfig() *lifecycle.Config[Event] {
	return &lifecycle.Config[Event]{WorkerActor: CRM, Done: []Event{Done}, Failed: []Event{Fail}, Undo: []Event{Undo}}
}

// ClusterInst is the machine of ClusterInsts with the payload [ClusterSpec]. Use
// [ManagerConfig] for a manager of it. It is immutable and safe for concurrent use.
var ClusterInst = fsm.Must[ClusterSpec](instTable("clusterinst", "Edge cloud: ClusterInst"))

// AppInst is the machine of AppInsts with the payload [AppSpec]. Its rows are
// those of [ClusterInst]. Use [ManagerConfig] for a manager of it. It is immutable and
// safe for concurrent use.
var AppInst = fsm.Must[AppSpec](instTable("appinst", "Edge cloud: AppInst"))

func instTable(name, title string) fsm.Spec[State, Event] {
	working := func(s, target State) fsm.State[State] {
		return fsm.State[State]{Name: s, Kind: fsm.Transitional, Target: &target}
	}
	return fsm.Spec[State, Event]{
		Name: name, Title: title, Initial: NotPresent,
		Actors: []fsm.Actor{User, CRM, Controller, Observer},
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
			fsm.Move(UpdateError, Undo, Ready).By(Controller).Note("restores the previous content"),
			// Delete.
			fsm.Move(Ready, Delete, DeletePrepare).By(User),
			fsm.Move(DeletePrepare, Prepared, DeleteRequested).By(Controller),
			fsm.Move(DeleteRequested, Working, Deleting).By(CRM),
			fsm.Move(DeleteRequested, Done, NotPresent).By(CRM).Note("the message Deleting was missed"),
			fsm.Move(DeleteRequested, Fail, DeleteError).By(CRM),
			fsm.Move(Deleting, Done, NotPresent).By(CRM),
			fsm.Move(Deleting, Fail, DeleteError).By(CRM),
			fsm.Move(DeleteError, Undo, Ready).By(Controller),

			// Beyond the document: deadlines, a failed preparation, forced rows out of the
			// error states.
			fsm.Move(CreateRequested, TimedOut, CreateError).AlsoFrom(Creating).By(Observer).After(CreateTimeout).
				Note("beyond the document: the CRM does not answer"),
			fsm.Move(UpdateRequested, TimedOut, UpdateError).AlsoFrom(Updating).By(Observer).After(UpdateTimeout).
				Note("beyond the document: the CRM does not answer"),
			fsm.Move(DeleteRequested, TimedOut, DeleteError).AlsoFrom(Deleting).By(Observer).After(DeleteTimeout).
				Note("beyond the document: the CRM does not answer"),
			fsm.Return(DeletePrepare, PrepareFailed).By(Controller).OnlyForced().
				Note("beyond the document: another object needs this one; the CRM has no order yet"),
			fsm.Return(DeletePrepare, TimedOut).After(PrepareTimeout).
				Note("beyond the document: the controller died; the CRM has no order yet"),
			fsm.Move(UpdateError, Update, UpdateRequested).By(User).OnlyForced().
				Note("beyond the document: update again instead of an undo"),
			fsm.Move(CreateError, Delete, DeleteRequested).AlsoFrom(UpdateError, DeleteError).By(User).OnlyForced().
				Note("beyond the document: delete instead of an undo"),
		),
	}
}

func inTransition(s State) bool { return !ClusterInst.Kind(s).Resting() }

func isError(s State) bool { return ClusterInst.Kind(s) == fsm.Failed }
