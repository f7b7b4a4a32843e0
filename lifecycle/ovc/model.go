package ovc

import (
	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Model is what a [Service] keeps of an object besides its status. When an action
// does not succeed, the model is again what it was before. VM and Disks are the
// service's own: it changes them together with the status.
type Model struct {
	// VM is the machine that a disk is attached to, from the beginning of the
	// attachment to that of the detachment. A disk that was deleted with its
	// machine keeps it.
	VM string `json:"vm,omitempty"`
	// Disks are those that were attached to a machine and not detached.
	Disks []string `json:"disks,omitempty"`
	// Labels are the user's.
	Labels map[string]string `json:"labels,omitempty"`
}

type (
	// Manager is the manager of the objects of one kind.
	Manager = lifecycle.Manager[State, Event, Model]
	// Record is an object with its status and model. ChangedAt is when it last
	// changed.
	Record = lifecycle.Record[State, Model]
	// Handle is an action that was accepted.
	Handle = lifecycle.Handle[State, Model]

	change  = lifecycle.Change[Model]
	machine = fsm.Machine[State, Event, Model]
)
