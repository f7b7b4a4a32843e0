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

// cloud is a provider for scripts. Everything takes its delay, and goes wrong
// where a fault says so:
//
//	reject: it says no                   drop: no answer, nothing happens
//	break: it agrees, and the VM breaks  lose: no answer, and it happens
//	hang: it agrees, and never gets there
type cloud struct {
	mu        sync.Mutex
	delay     time.Duration
	vms       map[string]*machine
	resources map[tumblebug.Resource]bool
	lives     map[string][]string          // by MCI, in the order in which they were seen
	faults    map[string]string            // by "create web-1", "prepare vNet", "validate web"
	lies      map[string][]tumblebug.State // answers about a VM before the true ones
	calls     []string                     // all but those for a status
	asked     int                          // and the number of these
}

// machine is a VM as the provider has it.
type machine struct {
	during, then tumblebug.State
	at           time.Time // when it gets there; zero: never
}

func newCloud() *cloud {
	return &cloud{
		delay: 10 * time.Second, vms: map[string]*machine{}, resources: map[tumblebug.Resource]bool{}, lives: map[string][]string{},
		faults: map[string]string{}, lies: map[string][]tumblebug.State{},
	}
}

// quickCloud is one for examples, in which nobody waits long.
func quickCloud() *cloud {
	c := newCloud()
	c.delay = 5 * time.Millisecond
	return c
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

// name is the name of a resource: a life of its MCI is told by its number, after the
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

// fault is the answer of what is simple. REQUIRES: c.mu.
func (c *cloud) fault(what string) error {
	c.calls = append(c.calls, what)
	switch c.faults[what] {
	case "reject":
		return fmt.Errorf("%w: %s", tumblebug.ErrRejected, what)
	case "drop":
		return errNoAnswer
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
	what := strings.ToLower(string(a)) + " " + vm.VMID
	if err := c.fault(what); err != nil {
		return err
	}
	m := &machine{during: during, then: a.Target()}
	switch c.faults[what] {
	case "hang":
	case "break":
		m.then = tumblebug.Failed
		fallthrough
	default:
		m.at = time.Now().Add(c.delay)
	}
	c.vms[vm.VMID] = m
	if c.faults[what] == "lose" {
		return errNoAnswer
	}
	return nil
}

func (c *cloud) Status(_ context.Context, vm tumblebug.VMRef) (tumblebug.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if lies := c.lies[vm.VMID]; len(lies) > 0 {
		c.lies[vm.VMID] = lies[1:]
		switch lies[0] {
		case "silence":
			return "", errNoAnswer
		case "nothing":
			return "", tumblebug.ErrNoVM
		}
		return lies[0], nil
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

// set makes the VM so, behind everybody's back.
func (c *cloud) set(vm string, s tumblebug.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[vm] = &machine{then: s, at: time.Now()}
}

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

// told returns what the cloud was asked for since the last time.
func (c *cloud) told() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	slices.Sort(calls) // VMs are asked side by side
	return calls
}
