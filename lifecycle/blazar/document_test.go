package blazar_test

import (
	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/conform"
)

// The tables of the specification "Define state machines", from its text and, where the
// text has no rows, from its figures in prose. They do not use the package. A method of
// the manager changes a status: an event is the call of the method or its outcome.

var leaseDocument = conform.Document{
	Name: "lease statuses", Initial: "gone",
	States: []conform.State{
		{Name: "gone", Kind: fsm.Absent}, // before the creation and after the delete
		{Name: "PENDING"},
		{Name: "ACTIVE"},
		{Name: "TERMINATED"},
		{Name: "ERROR"},
		{Name: "CREATING", Kind: fsm.Transitional},
		{Name: "STARTING", Kind: fsm.Transitional},
		{Name: "UPDATING", Kind: fsm.Transitional},
		{Name: "TERMINATING", Kind: fsm.Transitional},
		{Name: "DELETING", Kind: fsm.Transitional},
	},
	Rows: conform.Rows(
		"gone --create_lease by manager--> CREATING",
		"CREATING --completed by manager--> PENDING",

		"PENDING --start_lease by manager--> STARTING",
		"STARTING --completed by manager--> ACTIVE",
		"STARTING --failed by manager--> ERROR",

		"ACTIVE --end_lease by manager--> TERMINATING",
		"TERMINATING --completed by manager--> TERMINATED",
		"TERMINATING --failed by manager--> ERROR",
		"ERROR --end_lease by manager--> TERMINATING",

		// Every stable status can change to UPDATING, which leads back.
		"PENDING --update_lease by manager--> UPDATING",
		"ACTIVE --update_lease by manager--> UPDATING",
		"TERMINATED --update_lease by manager--> UPDATING",
		"ERROR --update_lease by manager--> UPDATING",
		"UPDATING --completed by manager--> PENDING if it was PENDING",
		"UPDATING --completed by manager--> ACTIVE if it was ACTIVE",
		"UPDATING --completed by manager--> TERMINATED if it was TERMINATED",
		"UPDATING --completed by manager--> ERROR if it was ERROR",

		// Every status can change to DELETING.
		"PENDING --delete_lease by manager--> DELETING",
		"ACTIVE --delete_lease by manager--> DELETING",
		"TERMINATED --delete_lease by manager--> DELETING",
		"ERROR --delete_lease by manager--> DELETING",
		"CREATING --delete_lease by manager--> DELETING",
		"STARTING --delete_lease by manager--> DELETING",
		"UPDATING --delete_lease by manager--> DELETING",
		"TERMINATING --delete_lease by manager--> DELETING",
		"DELETING --completed by manager--> gone",
		"DELETING --failed by manager--> ERROR",
	),
}

var reservationDocument = conform.Document{
	Name: "reservation statuses", Initial: "pending",
	States: []conform.State{
		{Name: "pending"},
		{Name: "active"},
		{Name: "deleted", Kind: fsm.Final},
		{Name: "error"},
	},
	Rows: conform.Rows(
		"pending --lease starts by manager--> active",
		"pending --resources released by manager--> deleted",
		"pending --failed by manager--> error",
		"active --resources released by manager--> deleted",
		"active --failed by manager--> error",
		"error --resources released by manager--> deleted",
	),
}

var eventDocument = conform.Document{
	Name: "event statuses", Initial: "UNDONE",
	States: []conform.State{
		{Name: "UNDONE"},
		{Name: "IN_PROGRESS", Kind: fsm.Transitional},
		{Name: "DONE", Kind: fsm.Final},
		{Name: "ERROR", Kind: fsm.Final},
	},
	Rows: conform.Rows(
		"UNDONE --becomes due by manager--> IN_PROGRESS",
		"IN_PROGRESS --executed by manager--> DONE",
		"IN_PROGRESS --failed by manager--> ERROR",
	),
}

// relationships is the document's table of that name, and the line for ERROR, which the
// document does not have.
const relationships = `
CREATING    | pending                    | start_lease: UNDONE                 | end_lease: UNDONE
PENDING     | pending                    | start_lease: UNDONE                 | end_lease: UNDONE
STARTING    | pending or active or error | start_lease: IN_PROGRESS            | end_lease: UNDONE
ACTIVE      | active                     | start_lease: DONE                   | end_lease: UNDONE
TERMINATING | active or deleted or error | start_lease: DONE                   | end_lease: IN_PROGRESS
TERMINATED  | deleted                    | start_lease: DONE                   | end_lease: DONE
DELETING    | Any status                 | start_lease: Any status             | end_lease: Any status
UPDATING    | Any status                 | start_lease: other than IN_PROGRESS | end_lease: other than IN_PROGRESS
ERROR       | error                      | start_lease: DONE or ERROR          | end_lease: UNDONE or ERROR
`
