package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Version 2 of the table calls the state stopped off, and its VMs have memory. The steps
// from version 1 to 2, as in the documentation of package lifecycle:
//
//  1. Start replicas with -v2 beside those without. All write version 1.
//  2. End the replicas without -v2. Until now every step can be taken back.
//  3. Start the replicas again, one by one, with -v2 -switch. New VMs are of version 2,
//     and every start migrates the others.
//  4. When all replicas have -switch, start one of them again. It migrates the rest.
//
// In a release of your own the table in vm.go is version 2, and flag -v2 is not needed.
const off State = "off"

var vmTable2 = newTable(off)

// memoryPerCPU is the memory of a VM whose user has named none, in MB.
const memoryPerCPU = 2048

// version1 is version 1 for replicas with version 2. Command "fsm diff -format go" prints
// the states.
var version1 = lifecycle.Version{
	Name: "1",
	States: map[string]string{
		"absent":   "absent",
		"creating": "creating",
		"running":  "running",
		"stopping": "stopping",
		"stopped":  "off",
		"starting": "starting",
		"deleting": "deleting",
		"failed":   "failed",
	},
	Upgrade:   convert(func(vm *VM) { vm.Memory = memoryPerCPU * vm.CPUs }),
	Downgrade: convert(func(vm *VM) { vm.Memory = 0 }),
}

// convert returns a function that changes the JSON of a VM.
func convert(change func(*VM)) func([]byte) ([]byte, error) {
	return func(payload []byte) ([]byte, error) {
		var vm VM
		if err := json.Unmarshal(payload, &vm); err != nil {
			return nil, err
		}
		change(&vm)
		return json.Marshal(vm)
	}
}

// setVersion returns the table, and sets its version in the configuration.
func setVersion(config *lifecycle.Config[Event]) *fsm.Machine[State, Event, VM] {
	config.Version, config.Switch = "1", *doSwitch
	if !*v2 {
		return vmTable
	}
	config.Version, config.Older = "2", []lifecycle.Version{version1}
	return vmTable2
}

// migrateAll writes all VMs in the version of the manager. It logs what has failed, and the
// next start with -switch tries that again.
func migrateAll(ctx context.Context, vms *manager) {
	for after := ""; ; {
		page, err := lifecycle.Migrate(ctx, vms, Operator, after, 0)
		slog.Info("VMs were migrated", "migrated", page.Migrated, "current", page.Current,
			"error", errors.Join(append(page.Failed, err)...))
		if after = page.Next; after == "" || err != nil {
			return
		}
	}
}
