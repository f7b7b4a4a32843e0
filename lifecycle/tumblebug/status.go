package tumblebug

import (
	"context"

	"github.com/interlock-go/interlock/lifecycle"
)

// MciStatus is what the document's request for the status of an MCI answers. It
// is a plain value.
type MciStatus struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Status        string          `json:"status"` // rendered; for decisions there is State
	StatusCount   StatusCountInfo `json:"statusCount"`
	TargetStatus  State           `json:"targetStatus"`
	TargetAction  Action          `json:"targetAction"`
	SystemMessage string          `json:"systemMessage,omitempty"` // why the last operation ended as it did
	Vm            []VmStatus      `json:"vm"`

	State   State  `json:"-"` // of the MCI itself
	Summary Status `json:"-"` // of its VMs
}

// VmStatus is one VM of a [MciStatus].
type VmStatus struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	SubGroupID    string `json:"subGroupId"`
	Provider      string `json:"provider"`
	Region        string `json:"region"`
	Status        State  `json:"status"`
	TargetStatus  State  `json:"targetStatus"`
	TargetAction  Action `json:"targetAction"`
	SystemMessage string `json:"systemMessage,omitempty"`
}

// GetMciStatus says how an MCI is. Providers are asked about the VMs whose status
// is not cached, what they say is written down, and the MCI follows its VMs: its
// action is over as soon as theirs are, and what they shared is released then if they
// were terminated. An MCI that has no VMs so far has a status without counts.
//
// Errors: [lifecycle.ErrInvalid], [lifecycle.ErrNotFound], those of the store and
// of the context. That a provider does not answer is no error, but a VM whose
// status is Undefined, or stays what it was while an action is under way.
func (s *System) GetMciStatus(ctx context.Context, nsID, mciID string) (MciStatus, error) {
	if err := checkNames(nsID, mciID); err != nil {
		return MciStatus{}, err
	}
	id := mciKey(nsID, mciID)
	mci, err := s.mcis.Get(ctx, id)
	if err != nil {
		return MciStatus{}, err
	}
	vms, err := s.members(ctx, id)
	if err == nil {
		_, err = s.refresh(ctx, vms)
	}
	if err == nil && !atRest(mci.State) {
		err = s.finish(ctx, id)
	}
	if err != nil {
		return MciStatus{}, err
	}
	mci, vms, err = s.follow(ctx, id)
	if err != nil {
		return MciStatus{}, err
	}
	return statusOf(&mci, vms)
}

// Wait waits until an MCI and all of its VMs rest, or it is on hold, and returns
// its status as it is recorded: no provider is asked.
//
// Errors: those of [System.GetMciStatus]; [lifecycle.ErrNotFound] also if the MCI
// is withdrawn meanwhile.
func (s *System) Wait(ctx context.Context, nsID, mciID string) (MciStatus, error) {
	if err := checkNames(nsID, mciID); err != nil {
		return MciStatus{}, err
	}
	id := mciKey(nsID, mciID)
	for {
		_, err := s.mcis.Await(ctx, id, func(mci mciRecord) bool { return atRest(mci.State) || onHold(&mci) })
		if err != nil {
			return MciStatus{}, err
		}
		mci, vms, err := s.follow(ctx, id)
		if err != nil {
			return MciStatus{}, err
		}
		var ids []string
		for _, vm := range vms {
			if !atRest(vm.State) {
				ids = append(ids, vm.ID)
			}
		}
		if len(ids) == 0 && (atRest(mci.State) || onHold(&mci)) {
			return statusOf(&mci, vms)
		}
		if err := s.awaitRest(ctx, ids); err != nil {
			return MciStatus{}, err
		}
	}
}

// statusOf renders an MCI and its VMs.
func statusOf(mci *mciRecord, vms []vmRecord) (MciStatus, error) {
	// The total is remembered while members are being created.
	expected := 0
	if under, _ := Doing(mci.State); under == ActionCreate {
		expected = mci.Payload.size()
	}
	now, counts, err := Summarize(states(vms), expected)
	if err != nil {
		return MciStatus{}, err
	}
	status := MciStatus{
		ID: last(mci.ID), Name: mci.Payload.Name, Status: now.String(), StatusCount: counts,
		SystemMessage: mci.Reason, Vm: []VmStatus{}, State: mci.State, Summary: now,
	}
	status.TargetAction, status.TargetStatus = Doing(mci.State)
	if len(vms) == 0 {
		status.Status = string(mci.State)
	}
	for i := range vms {
		status.Vm = append(status.Vm, vmStatus(&vms[i]))
	}
	return status, nil
}

func vmStatus(vm *vmRecord) VmStatus {
	action, target := Doing(vm.State)
	return VmStatus{
		ID: last(vm.ID), Name: last(vm.ID), SubGroupID: vm.Payload.SubGroup, Provider: vm.Payload.Provider, Region: vm.Payload.Region,
		Status: vm.State, TargetStatus: target, TargetAction: action, SystemMessage: vm.Reason,
	}
}

// Explain says about a VM who owes the next move and what is in the way, see
// [lifecycle.Manager.Explain].
func (s *System) Explain(ctx context.Context, nsID, mciID, vmID string) (lifecycle.Explanation, error) {
	if err := checkNames(nsID, mciID, vmID); err != nil {
		return lifecycle.Explanation{}, err
	}
	return s.vms.Explain(ctx, vmKey(nsID, mciID, vmID))
}
