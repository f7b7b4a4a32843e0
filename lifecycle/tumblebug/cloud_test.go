package tumblebug_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// cloud is a simulated provider. Every action takes its delay. The kinds of faults:
//
//	reject: refuses the request          drop: no answer, no effect
//	break:  accepts, and the VM fails    lose: no answer, and the effect
//	hang:   accepts, and never ends      gone: has no such VM
type cloud struct {
	mu        sync.Mutex
	delay     time.Duration
	vms       map[string]*machine
	resources map[tumblebug.Resource]bool
	lives     map[string][]string          // by MCI, in the order of their first request
	faults    map[string]string            // by "create web-1", "prepare vNet", "validate web"
	shows     map[string][]tumblebug.State // answers about a VM before the true ones
	calls     []string                     // all requests except those for a status
	statuses  int                          // requests for a status
}

// machine is a VM at the provider.
type machine struct {
	during, then tumblebug.State
	at           time.Time // end of the action; zero: never
}

func newCloud() *cloud {
	return &cloud{
		delay: 10 * time.Second, vms: map[string]*machine{}, resources: map[tumblebug.Resource]bool{}, lives: map[string][]string{},
		faults: map[string]string{}, shows: map[string][]tumblebug.State{},
	}
}

// newFastCloud returns a cloud for examples, which run in real time.
func newFastCloud() *cloud {
	c := newCloud()
	c.delay = 5 * time.Millisecond
	return c
}

// change changes how the cloud behaves.
func (c *cloud) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

var errNoAnswer = errors.New("no answer")

func (c *cloud) Validate(_ context.Context, g tumblebug.SubGroup) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault("validate " + g.Name)
}

func (c *cloud) Prepare(_ context.Context, r tumblebug.Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name(r)
	if err := c.fault("prepare " + string(r.Kind)); err != nil {
		return err
	}
	c.resources[r] = true
	return nil
}

func (c *cloud) Release(_ context.Context, r tumblebug.Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fault("release " + string(r.Kind)); err != nil {
		return err
	}
	delete(c.resources, r)
	return nil
}

// name returns the name of a resource, with the number of the life of its MCI after the
// first. REQUIRES: c.mu.
func (c *cloud) name(r tumblebug.Resource) string {
	mci := r.NsID + "/" + r.MciID
	life := slices.Index(c.lives[mci], r.Life)
	if life < 0 {
		life = len(c.lives[mci])
		c.lives[mci] = append(c.lives[mci], r.Life)
	}
	if life > 0 {
		mci += fmt.Sprintf("#%d", life+1)
	}
	return fmt.Sprintf("%s %s %s/%s", mci, r.Kind, r.Provider, r.Region)
}

// fault records a request and returns the error of its fault. REQUIRES: c.mu.
func (c *cloud) fault(request string) error {
	c.calls = append(c.calls, request)
	switch c.faults[request] {
	case "reject":
		return fmt.Errorf("%w: %s", tumblebug.ErrRejected, request)
	case "drop":
		return errNoAnswer
	case "gone":
		return tumblebug.ErrNoVM
	}
	return nil
}

func (c *cloud) Create(_ context.Context, vm tumblebug.VMRef) error {
	return c.act(vm, tumblebug.ActionCreate, tumblebug.Creating)
}

func (c *cloud) Control(_ context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	during := map[tumblebug.Action]tumblebug.State{
		tumblebug.ActionSuspend: tumblebug.Suspending, tumblebug.ActionResume: tumblebug.Creating,
		tumblebug.ActionReboot: tumblebug.Suspending, tumblebug.ActionTerminate: tumblebug.Terminating,
	}
	return c.act(vm, a, during[a])
}

func (c *cloud) act(vm tumblebug.VMRef, a tumblebug.Action, during tumblebug.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := strings.ToLower(string(a)) + " " + vm.VMID
	if err := c.fault(request); err != nil {
		return err
	}
	m := &machine{during: during, then: a.Target(), at: time.Now().Add(c.delay)}
	c.vms[vm.VMID] = m
	switch c.faults[request] {
	case "hang":
		m.at = time.Time{}
	case "break":
		m.then = tumblebug.Failed
	case "lose":
		return errNoAnswer
	}
	return nil
}

func (c *cloud) Status(_ context.Context, vm tumblebug.VMRef) (tumblebug.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses++
	if shows := c.shows[vm.VMID]; len(shows) > 0 {
		c.shows[vm.VMID] = shows[1:]
		switch shows[0] {
		case "silence":
			return "", errNoAnswer
		case "nothing":
			return "", tumblebug.ErrNoVM
		}
		return shows[0], nil
	}
	m := c.vms[vm.VMID]
	switch {
	case m == nil:
		return "", tumblebug.ErrNoVM
	case !m.at.IsZero() && !time.Now().Before(m.at):
		return m.then, nil
	}
	return m.during, nil
}

// list returns the names of the resources that exist.
func (c *cloud) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for r := range c.resources {
		names = append(names, c.name(r))
	}
	slices.Sort(names)
	return names
}

// newCalls returns the requests since its last call, sorted because VMs are requested
// concurrently.
func (c *cloud) newCalls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	slices.Sort(calls)
	return calls
}

// newStatuses returns the number of requests for a status since its last call.
func (c *cloud) newStatuses() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.statuses
	c.statuses = 0
	return fmt.Sprintf("%d requests for a status", n)
}
