package tumblebug

import (
	"context"
	"path"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// MciStatus is the document's answer to the request for the status of an MCI. It is a
// plain value.
type MciStatus struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Status        string          `json:"status"` // rendered; decisions use State
	StatusCount   StatusCountInfo `json:"statusCount"`
	TargetStatus  State           `json:"targetStatus"`
	TargetAction  Action          `json:"targetAction"`
	SystemMessage string          `json:"systemMessage,omitempty"` // reason of the last change
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

// GetMciStatus returns the status of an MCI. It requests the state of the VMs that are
// not cached from their providers and records what they show. Then it moves the MCI to
// the state that follows from its VMs: an action ends with that of its last VM. The
// status of an MCI that has no VMs yet has no counts.
//
// Errors: [lifecycle.ErrInvalid], [lifecycle.ErrNotFound], those of the store and of
// the context. A provider that does not answer is not an error: the VM keeps its state
// during an action. At rest it is Undefined after three requests without an answer, one
// in each [Config].Poll.
func (s *System) GetMciStatus(ctx context.Context, nsID, mciID string) (MciStatus, error) {
	if err := checkNames("namespace", nsID, "MCI", mciID); err != nil {
		return MciStatus{}, err
	}
	id := mciKey(nsID, mciID)
	vms, err := s.members(ctx, id)
	if err == nil {
		err = s.refresh(ctx, vms)
	}
	if err != nil {
		return MciStatus{}, err
	}
	mci, vms, err := s.follow(ctx, id)
	if err != nil {
		return MciStatus{}, err
	}
	return statusOf(&mci, vms), nil
}

// Wait waits until an MCI and all of its VMs are at rest, or the MCI is on hold. It
// returns the recorded status, without a request to a provider.
//
// Errors: those of [System.GetMciStatus]; [lifecycle.ErrNotFound] also if the MCI is
// removed meanwhile.
func (s *System) Wait(ctx context.Context, nsID, mciID string) (MciStatus, error) {
	if err := checkNames("namespace", nsID, "MCI", mciID); err != nil {
		return MciStatus{}, err
	}
	rests := func(mci mciRecord) bool { return atRest(mci.State) || onHold(&mci) }
	for {
		if _, err := lifecycle.Await(ctx, s.mcis, mciKey(nsID, mciID), rests); err != nil {
			return MciStatus{}, err
		}
		mci, vms, err := s.follow(ctx, mciKey(nsID, mciID))
		if err != nil {
			return MciStatus{}, err
		}
		if rests(mci) && !slices.ContainsFunc(vms, restless) {
			return statusOf(&mci, vms), nil
		}
		if err := s.awaitRest(ctx, vms); err != nil {
			return MciStatus{}, err
		}
	}
}

// statusOf renders an MCI and its VMs.
func statusOf(mci *mciRecord, vms []vmRecord) MciStatus {
	action, target := Doing(mci.State)
	expected := 0
	if action == ActionCreate {
		for i := range mci.Payload.SubGroups {
			expected += mci.Payload.SubGroups[i].size()
		}
	}
	now, counts, _ := Summarize(states(vms), expected) // a record has no other states
	status := MciStatus{
		ID: path.Base(mci.ID), Name: mci.Payload.Name, Status: now.String(), StatusCount: counts,
		TargetStatus: target, TargetAction: action, SystemMessage: mci.Reason,
		Vm: []VmStatus{}, State: mci.State, Summary: now,
	}
	if len(vms) == 0 {
		status.Status = string(mci.State)
	}
	for i := range vms {
		vm := &vms[i]
		action, target := Doing(vm.State)
		status.Vm = append(status.Vm, VmStatus{
			ID: path.Base(vm.ID), Name: path.Base(vm.ID), SubGroupID: vm.Payload.SubGroup,
			Provider: vm.Payload.Provider, Region: vm.Payload.Region,
			Status: vm.State, TargetStatus: target, TargetAction: action, SystemMessage: vm.Reason,
		})
	}
	return status
}
