package tumblebug

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// ExistingMci is an MCI that exists already, see [System.AddMci]. It is a value; copies
// share the VMs and the attributes.
type ExistingMci struct {
	Name       string
	VMs        []ExistingVM
	Attributes json.RawMessage // as those of [MciReq]
}

// ExistingVM is a VM that exists already at its provider. It is a value; copies share the
// attributes.
type ExistingVM struct {
	Name  string
	State State // at rest, such as Running, Suspended, Failed
	// VMSpec is the content of the VM. [System.AddMci] sets Life, Asked and Continues.
	// The limit of Attributes is 2 MiB.
	VMSpec
}

// AddMci records an MCI that exists already, with its VMs. They have the given states,
// and the MCI has the state that follows from them. AddMci sends no request to a
// provider; the next [System.GetMciStatus] requests the status.
//
// The names of these VMs at the provider do not contain their Life. If the provider cannot
// find them by the names in a [VMRef], put what identifies them into Attributes. Their
// networks, security groups and keys are not those of the package: it does not release
// them.
//
// Errors: [lifecycle.ErrInvalid] for names, numbers and attributes as those of
// [System.CreateMci], and for a state that is not at rest; [fsm.ErrUnknownState] for a
// state that VMs do not have; [lifecycle.ErrExists]; [queue.ErrTerminated] after
// [System.Close]; [errors.ErrUnsupported] if the store cannot add so many VMs in one
// commit; those of the store. Nothing is added then.
func (s *System) AddMci(ctx context.Context, nsID string, mci ExistingMci) (MciStatus, error) {
	if err := checkMembers(mci.Name, mci.members); err != nil {
		return MciStatus{}, err
	}
	if err := s.checkRequest("namespace", nsID); err != nil {
		return MciStatus{}, err
	}
	id, life := mciKey(nsID, mci.Name), newLife()
	var tx lifecycle.Tx
	var given []State
	var added []*lifecycle.TxResult[State, VMSpec]
	for _, vm := range mci.VMs {
		if VM.Kind(vm.State) == fsm.Transitional { // a manager adds VMs in Creating
			return MciStatus{}, fmt.Errorf("%w: VM %q: state %q is transitional: only an object at rest can be added",
				lifecycle.ErrInvalid, vm.Name, vm.State)
		}
		vm.Life, vm.Asked, vm.Continues = life, 0, 0
		given = append(given, vm.State)
		added = append(added, s.vms.In(&tx).Add(id+"/"+vm.Name, vm.State, User, vm.VMSpec, nil))
	}
	state, _ := settled(given) // there is one if all VMs are at rest, which the commit checks
	result := s.mcis.In(&tx).Add(id, state, User, MCISpec{
		MciReq: MciReq{Name: mci.Name, Attributes: mci.Attributes}, Life: life,
	}, nil)
	if err := tx.Commit(ctx); err != nil {
		return MciStatus{}, err
	}
	var vms []vmRecord
	for _, vm := range added {
		vms = append(vms, vm.Record())
	}
	record := result.Record()
	return statusOf(&record, vms), nil
}

// members calls yield for each VM. It is an [iter.Seq2].
func (m *ExistingMci) members(yield func(string, VMSpec) bool) {
	for _, vm := range m.VMs {
		if !yield(vm.Name, vm.VMSpec) {
			return
		}
	}
}

// newLife returns the Life of a new MCI.
func newLife() string { return strings.ToLower(rand.Text()) }
