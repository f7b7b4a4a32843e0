package tumblebug

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Limit bounds what is asked of one provider at a time, by all requests of the
// process together. 0: no bound.
type Limit struct {
	Regions int // regions in which something is under way
	VMs     int // VMs of one region about which something is under way
}

// DefaultLimits returns the document's table of limits, by provider in lower
// case.
func DefaultLimits() map[string]Limit {
	return map[string]Limit{
		"aws":     {Regions: 10, VMs: 30},
		"azure":   {Regions: 8, VMs: 25},
		"gcp":     {Regions: 12, VMs: 35},
		"ncp":     {Regions: 3, VMs: 15},
		"alibaba": {Regions: 6, VMs: 20},
	}
}

// maxRunning bounds what no limit of a provider bounds.
const maxRunning = 1 << 20

// limited makes the queue in which VMs wait for their turn.
func limited(limits map[string]Limit) (*queue.Config[lifecycle.Key], error) {
	config := &queue.Config[lifecycle.Key]{MaxRunning: maxRunning, Classes: map[string]queue.Limit{}}
	for provider, limit := range limits {
		if err := checkName("provider", provider); err != nil {
			return nil, err
		}
		if limit.Regions < 0 || limit.VMs < 0 {
			return nil, fmt.Errorf("%w: a negative limit of %s", lifecycle.ErrInvalid, provider)
		}
		name := strings.ToLower(provider)
		if _, twice := config.Classes[name]; twice {
			return nil, fmt.Errorf("%w: two limits of %s", lifecycle.ErrInvalid, name)
		}
		config.Classes[name] = queue.Limit{MaxChildren: limit.Regions}
		config.Classes[name+"/*"] = queue.Limit{MaxRunning: limit.VMs}
	}
	return config, nil
}

// class returns the class of the queue for a VM: its region, or none if its
// provider has no limits.
func (s *System) class(vm *VMSpec) string {
	provider := strings.ToLower(vm.Provider)
	if !s.limited[provider] {
		return ""
	}
	return provider + "/" + vm.Region
}
