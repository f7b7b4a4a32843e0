package ovc

import "github.com/interlock-go/interlock/lifecycle"

// Model is the content of an object besides its status. If an action does not succeed, the
// model is restored. The service changes VM and Disks together with the status.
type Model struct {
	// VM is the machine that a disk is attached to, from the start of the attachment to
	// the start of the detachment. A disk that was deleted with its machine keeps it.
	VM string `json:"vm,omitempty"`
	// Disks are the disks that are attached to a machine.
	Disks []string `json:"disks,omitempty"`
	// Labels belong to the user.
	Labels map[string]string `json:"labels,omitempty"`
}

type (
	// Manager is the manager of the objects of one kind.
	Manager = lifecycle.Manager[State, Event, Model]
	// Record is an object with its status and model. ChangedAt is the time of its last
	// change.
	Record = lifecycle.Record[State, Model]
	// Handle is an accepted action.
	Handle = lifecycle.Handle[State, Model]

	change = lifecycle.Change[Model]
)
