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
	Name       string
	State      State // at rest, such as Running, Suspended, Failed
	SubGroup   string
	Provider   string
	Region     string
	Spec       string
	Image      string
	Attributes json.RawMessage // as those of [SubGroup]; the limit is 2 MiB
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
	if err := mci.check(); err != nil {
		return MciStatus{}, err
	}
	if err := s.admits("namespace", nsID); err != nil {
		return MciStatus{}, err
	}
	id, life := mciKey(nsID, mci.Name), newLife()
	var tx lifecycle.Tx
	var given []State
	var added []*lifecycle.TxResult[State, VMSpec]
	for _, vm := range mci.VMs {
		if VM.Kind(vm.State) == fsm.Transitional { // a manager adds VMs in Creating
			err := fmt.Errorf("%w: state %q is transitional: only an object at rest can be added", lifecycle.ErrInvalid, vm.State)
			return MciStatus{}, &lifecycle.Error{Verb: "add", Machine: VM.Name(), ID: id + "/" + vm.Name, Actor: User, Err: err}
		}
		given = append(given, vm.State)
		added = append(added, s.vms.In(&tx).Add(id+"/"+vm.Name, vm.State, User, VMSpec{
			MCI: id, Life: life, SubGroup: vm.SubGroup, Provider: vm.Provider, Region: vm.Region,
			Spec: vm.Spec, Image: vm.Image, Attributes: vm.Attributes,
		}, nil))
	}
	state, _ := settled(given) // there is one if all VMs are at rest, which the commit checks
	result := s.mcis.In(&tx).Add(id, state, User, MCISpec{
		Name: mci.Name, Life: life, Attributes: mci.Attributes,
	}, nil)
	if err := tx.Commit(ctx); err != nil {
		return MciStatus{}, err
	}
	var vms []vmRecord
	for _, vm := range added {
		vms = append(vms, vm.Record())
	}
	record := result.Record()
	return statusOf(&record, vms)
}

// check returns [lifecycle.ErrInvalid] for names and numbers.
func (m *ExistingMci) check() error {
	if err := checkNames("MCI", m.Name); err != nil {
		return err
	}
	vms := vmNames{}
	for _, vm := range m.VMs {
		if err := checkNames("SubGroup", vm.SubGroup, "provider", vm.Provider, "region", vm.Region); err != nil {
			return err
		}
		if err := vms.add(vm.Name); err != nil {
			return err
		}
	}
	return vms.check(m.Name)
}

// newLife returns the Life of a new MCI.
func newLife() string { return strings.ToLower(rand.Text()) }
