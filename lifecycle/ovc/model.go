package ovc

import (
	"encoding/json"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// Model is the content of an object besides its status. If an action does not succeed, the
// model is restored. The service changes VM and Disks together with the status. A copy
// shares Disks, Attributes and Args.
type Model struct {
	// VM is the machine that a disk is attached to, from the start of the attachment to
	// the start of the detachment. A disk that was deleted with its machine keeps it.
	VM string `json:"vm,omitempty"`
	// Disks are the disks that are attached to a machine.
	Disks []string `json:"disks,omitempty"`
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them. [Options].Attributes replaces them.
	Attributes json.RawMessage `json:"attributes,omitempty"`
	// Args are [Options].Args of the action that [Service.Do] has begun last; nil if it
	// had none, or was requested for another object that takes this one along.
	Args json.RawMessage `json:"args,omitempty"`
}

// check refuses the model of an object that is to be added in a state.
func (m *Model) check(kind Kind, state State) error {
	attached := kind == KindDisk && slices.Contains([]State{Assigned, ToBeDeleted}, state)
	holds := kind == KindVM && !slices.Contains([]State{Virtual, Destroyed}, state)
	switch {
	case m.VM != "" && !attached:
		return invalid("%s in %s is attached to no machine, such as %q", kind, state, m.VM)
	case len(m.Disks) > 0 && !holds:
		return invalid("%s in %s has no disks, such as %q", kind, state, m.Disks[0])
	case m.Args != nil:
		return invalid("arguments belong to an action")
	}
	if m.VM != "" {
		return checkID(m.VM)
	}
	for i, disk := range m.Disks {
		if slices.Contains(m.Disks[:i], disk) {
			return invalid("disk %q is attached twice", disk)
		}
		if err := checkID(disk); err != nil {
			return err
		}
	}
	return nil
}

// checkID refuses what cannot be the id of an object. A machine could not be deleted with such
// a disk, and a disk of such a machine would stay in the recycle bin.
func checkID(id string) error {
	if id == "" {
		return invalid("empty id of an attached disk")
	}
	return (&lifecycle.Query{After: id, Limit: 1}).Check() // that After can be an id
}

type (
	// Manager is the manager of the objects of one kind.
	Manager = lifecycle.Manager[State, Event, Model]
	// Record is an object with its status and model. ChangedAt is the time of its last
	// change.
	Record = lifecycle.Record[State, Model]
	// Ticket is an accepted action.
	Ticket = lifecycle.Ticket[State, Model]

	change = lifecycle.Change[Model]
)
