package tumblebug

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Limit bounds the concurrent requests to one provider, by all MCIs of the process
// together, or of all processes with [Config].Shared. 0 means no bound.
type Limit struct {
	Regions int // regions with a running request
	VMs     int // running requests in one region
}

// DefaultLimits returns the document's table of limits, by provider in lower case.
func DefaultLimits() map[string]Limit {
	return map[string]Limit{
		"aws":     {Regions: 10, VMs: 30},
		"azure":   {Regions: 8, VMs: 25},
		"gcp":     {Regions: 12, VMs: 35},
		"ncp":     {Regions: 3, VMs: 15},
		"alibaba": {Regions: 6, VMs: 20},
	}
}

// maxRunning bounds requests to providers without a limit.
const maxRunning = 1 << 20

// classesOf returns the limits of the queue in which VMs wait for their turn, by class: the
// name of a provider in lower case, and its regions below it. The default is
// [DefaultLimits].
func classesOf(limits map[string]Limit) (map[string]queue.Limit, error) {
	if limits == nil {
		limits = DefaultLimits()
	}
	classes := map[string]queue.Limit{}
	for provider, limit := range limits {
		if err := checkNames("provider", provider); err != nil {
			return nil, err
		}
		name := strings.ToLower(provider)
		if _, twice := classes[name]; twice {
			return nil, fmt.Errorf("%w: two limits of provider %q", lifecycle.ErrInvalid, name)
		}
		classes[name] = queue.Limit{MaxChildren: limit.Regions}
		classes[name+"/*"] = queue.Limit{MaxRunning: limit.VMs}
	}
	return classes, nil
}

// work returns the work of an action on a VM, in the class of its region if the provider
// has limits.
func (s *System) work(vm *VMSpec, force bool) lifecycle.Work {
	w := lifecycle.Named(handler, nil)
	w.Preempt = preempt(force)
	provider := strings.ToLower(vm.Provider)
	if _, limited := s.classes[provider]; limited {
		w.Class = provider + "/" + vm.Region
	}
	return w
}

// preempt returns what an action does to the one before it: a forced one does not wait for
// what it supersedes.
func preempt(force bool) queue.Preempt {
	if force {
		return queue.PreemptRunning
	}
	return queue.NoPreempt
}
