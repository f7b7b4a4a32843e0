package tumblebug_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// token is a provider that takes every operation of a VM once, answers a repeated
// request as it did the first time, and takes none that is older than one that it
// has seen.
type token struct {
	*cloud
	p    *crashtest.Process
	seen *requests
}

// requests are what all processes have asked of a cloud.
type requests struct {
	mu      sync.Mutex
	answers map[string]map[lifecycle.OpID]error // by VM
}

func (c *token) Create(ctx context.Context, vm tumblebug.VMRef) error {
	return c.apply(ctx, vm, func() error { return c.cloud.Create(ctx, vm) })
}

func (c *token) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	return c.apply(ctx, vm, func() error { return c.cloud.Control(ctx, vm, a) })
}

func (c *token) apply(ctx context.Context, vm tumblebug.VMRef, do func() error) error {
	id := fmt.Sprintf("%s/%s/%s", vm.NsID, vm.MciID, vm.VMID)
	// A process that is gone asks for nothing any more, and one that stands still
	// asks later. Beyond this the request is on its way.
	if _, err := c.p.Store().Get(ctx, lifecycle.Key{Machine: "vm", ID: id}); err != nil {
		return err
	}
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	answers := c.seen.answers[id]
	if answers == nil {
		answers = map[lifecycle.OpID]error{}
		c.seen.answers[id] = answers
	}
	if err, again := answers[vm.Operation]; again {
		return err
	}
	for other := range answers {
		if other > vm.Operation {
			return fmt.Errorf("%w: %s was asked for operation %d", tumblebug.ErrRejected, id, other)
		}
	}
	answers[vm.Operation] = do()
	return answers[vm.Operation]
}

// mirror makes the table of a manager known to the harness, and leaves to the
// system what is stuck.
func mirror[T any](p *crashtest.Process, m *fsm.Machine[tumblebug.State, tumblebug.Event, T]) {
	crashtest.Manage(p, m, &lifecycle.Config[tumblebug.Event]{
		Observe: func(context.Context, lifecycle.StoredRecord) (tumblebug.Event, fsm.Actor, error) {
			return "", "", errors.New("left to the system")
		},
	})
}

type world = crashtest.Clients[*tumblebug.System]

// story is what users do with the MCI "ns/m" of two VMs, "a-1" and "a-2", and
// what is left of it whatever happens meanwhile.
type story struct {
	name   string
	faults map[string]string // of the cloud, by what it is asked for
	script func(*client) error
	// The states that the MCI and its VMs may have in the end; "" is to be gone.
	mci, vm1, vm2 []string
	kept          bool // what the VMs share is still there
}

// client asks for one thing until it is so. What it asks for is a request of its
// own each time: processes die, and have not said whether they did it.
type client struct{ w *world }

const (
	testNS  = "ns"
	testMCI = "m"
)

// insist asks for one thing in a process that lives, until the error is nil.
func (c *client) insist(what string, f func(ctx context.Context, s *tumblebug.System) error) error {
	return c.w.Insist("alpha", what, f)
}

// create makes the MCI, and waits for it.
func (c *client) create(policy tumblebug.Policy, hold bool) error {
	if err := c.begin(policy, hold); err != nil {
		return err
	}
	return c.rests()
}

func (c *client) begin(policy tumblebug.Policy, hold bool) error {
	return c.insist("create", func(ctx context.Context, s *tumblebug.System) error {
		_, err := s.CreateMci(ctx, testNS, tumblebug.MciReq{
			Name: testMCI, Policy: policy, Hold: hold,
			SubGroups: []tumblebug.SubGroup{{Name: "a", Size: 2, Provider: "aws", Region: "r"}},
		})
		if errors.Is(err, lifecycle.ErrExists) {
			return nil
		}
		return err
	})
}

// rests waits until nothing is under way.
func (c *client) rests() error {
	return c.insist("wait", func(ctx context.Context, s *tumblebug.System) error {
		_, err := s.Wait(ctx, testNS, testMCI)
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		return err
	})
}

// operation returns the operation that a record of the MCI or a VM is in.
func (c *client) operation(vm string) (n lifecycle.OpID, err error) {
	err = c.insist("look", func(ctx context.Context, s *tumblebug.System) error {
		if n, err = lastOperation(ctx, s, vm); errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		return err
	})
	return n, err
}

func lastOperation(ctx context.Context, s *tumblebug.System, vm string) (lifecycle.OpID, error) {
	if vm == "" {
		mci, err := s.MCIs().Get(ctx, testNS+"/"+testMCI)
		return mci.Operation, err
	}
	rec, err := s.VMs().Get(ctx, testNS+"/"+testMCI+"/"+vm)
	return rec.Operation, err
}

// act asks for an action of the MCI, or of one VM, until it is done, by force
// where an earlier attempt has left it in a state that needs that.
func (c *client) act(vm string, a tumblebug.Action) error {
	before, err := c.operation(vm)
	if err != nil {
		return err
	}
	return c.insist(strings.TrimSpace(string(a)+" "+vm), func(ctx context.Context, s *tumblebug.System) error {
		for {
			status, err := s.Wait(ctx, testNS, testMCI)
			if err != nil {
				return err
			}
			at := status.State
			if i := slices.IndexFunc(status.Vm, func(v tumblebug.VmStatus) bool { return v.ID == vm }); i >= 0 {
				at = status.Vm[i].Status
			}
			now, err := lastOperation(ctx, s, vm)
			if err != nil || at == a.Target() && now > before || at == tumblebug.Terminated {
				return err
			}
			force := tumblebug.Allowed(at, a, false) != nil
			if vm == "" {
				_, err = s.HandleMciAction(ctx, testNS, testMCI, string(a), force)
			} else {
				_, err = s.HandleMciVmAction(ctx, testNS, testMCI, vm, string(a), force)
			}
			if err != nil {
				return err
			}
		}
	})
}

// answer says continue or withdraw, until it was heard.
func (c *client) answer(a tumblebug.Action) error {
	return c.insist(string(a), func(ctx context.Context, s *tumblebug.System) error {
		status, err := s.Wait(ctx, testNS, testMCI)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound) && a == tumblebug.ActionWithdraw:
			return nil
		case err != nil:
			return err
		case status.State != tumblebug.Prepared:
			return nil // it was heard, but the answer was lost
		}
		_, err = s.HandleMciAction(ctx, testNS, testMCI, string(a), false)
		return err
	})
}

// delete forgets the MCI.
func (c *client) delete() error {
	return c.insist("delete", func(ctx context.Context, s *tumblebug.System) error {
		err := s.DelMci(ctx, testNS, testMCI)
		if errors.Is(err, lifecycle.ErrNotFound) {
			return nil
		}
		return err
	})
}

// refine removes the VMs that have failed, and looks whether they are gone.
func (c *client) refine() error {
	return c.insist("refine", func(ctx context.Context, s *tumblebug.System) error {
		if _, err := s.HandleMciAction(ctx, testNS, testMCI, "refine", false); err != nil {
			return err
		}
		status, err := s.GetMciStatus(ctx, testNS, testMCI)
		if n := status.StatusCount; err == nil && n.CountFailed+n.CountUndefined > 0 {
			err = errors.New("refined, and there are failed VMs")
		}
		return err
	})
}

// each does one thing after the other.
func each(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

var stories = []story{
	{
		name: "life",
		script: func(c *client) error {
			return each(
				func() error { return c.create("", false) },
				func() error { return c.act("", tumblebug.ActionSuspend) },
				func() error { return c.act("", tumblebug.ActionResume) },
				func() error { return c.act("", tumblebug.ActionReboot) },
				func() error { return c.act("", tumblebug.ActionTerminate) },
			)
		},
		mci: []string{"Terminated"}, vm1: []string{"Terminated"}, vm2: []string{"Terminated"},
	},
	{
		name: "hold and continue, and a name that is free again",
		script: func(c *client) error {
			return each(
				func() error { return c.create("", true) },
				func() error { return c.answer(tumblebug.ActionContinue) },
				c.rests,
				func() error { return c.act("", tumblebug.ActionTerminate) },
				c.delete,
			)
		},
		mci: []string{""}, vm1: []string{""}, vm2: []string{""},
	},
	{
		name: "a name that is used again",
		script: func(c *client) error {
			return each(
				func() error { return c.create("", false) },
				func() error { return c.act("", tumblebug.ActionTerminate) },
				c.delete,
				func() error { return c.create("", false) },
			)
		},
		mci: []string{"Running"}, vm1: []string{"Running"}, vm2: []string{"Running"}, kept: true,
	},
	{
		name: "hold and withdraw",
		script: func(c *client) error {
			return each(
				func() error { return c.create("", true) },
				func() error { return c.answer(tumblebug.ActionWithdraw) },
			)
		},
		mci: []string{""}, vm1: []string{""}, vm2: []string{""},
	},
	{
		name:   "one VM fails, and the creation goes on",
		faults: map[string]string{"create a-1": "reject"},
		script: func(c *client) error {
			return each(func() error { return c.create(tumblebug.Continue, false) }, c.refine)
		},
		mci: []string{"Running"}, vm1: []string{""}, vm2: []string{"Running"}, kept: true,
	},
	{
		name:   "one VM fails, and is refined away",
		faults: map[string]string{"create a-1": "break"},
		script: func(c *client) error { return c.create(tumblebug.RefineFailed, false) },
		mci:    []string{"Running"}, vm1: []string{""}, vm2: []string{"Running"}, kept: true,
	},
	{
		name:   "one VM fails, and the creation is rolled back",
		faults: map[string]string{"create a-1": "reject"},
		script: func(c *client) error { return c.create(tumblebug.Rollback, false) },
		mci:    []string{"Failed"}, vm1: []string{""}, vm2: []string{""},
	},
	{
		name:   "nothing can be prepared",
		faults: map[string]string{"prepare sshKey": "reject"},
		script: func(c *client) error { return each(func() error { return c.create("", false) }, c.delete) },
		mci:    []string{""}, vm1: []string{""}, vm2: []string{""},
	},
	{
		name: "one VM alone",
		script: func(c *client) error {
			return each(
				func() error { return c.create("", false) },
				func() error { return c.act("a-1", tumblebug.ActionSuspend) },
				func() error { return c.act("a-1", tumblebug.ActionResume) },
				func() error { return c.act("a-1", tumblebug.ActionReboot) },
				func() error { return c.act("a-1", tumblebug.ActionTerminate) },
			)
		},
		mci: []string{"Running"}, vm1: []string{"Terminated"}, vm2: []string{"Running"}, kept: true,
	},
	{
		name: "force in the middle",
		script: func(c *client) error {
			force := func(a tumblebug.Action) func() error {
				return func() error {
					before, err := c.operation("")
					if err != nil {
						return err
					}
					return c.insist(string(a)+" by force", func(ctx context.Context, s *tumblebug.System) error {
						if now, err := lastOperation(ctx, s, ""); err != nil || now > before {
							return err
						}
						_, err := s.HandleMciAction(ctx, testNS, testMCI, string(a), true)
						return err
					})
				}
			}
			return each(
				func() error { return c.begin("", false) },
				func() error { c.w.Pass(3 * time.Second); return nil },
				force(tumblebug.ActionReboot),
				func() error { c.w.Pass(3 * time.Second); return nil },
				force(tumblebug.ActionTerminate),
				c.rests,
				func() error { return c.act("", tumblebug.ActionTerminate) },
			)
		},
		mci: []string{"Terminated"}, vm1: []string{"Terminated", ""}, vm2: []string{"Terminated", ""},
	},
}

// Everything that users do, with a fault at every durable write of it: the process
// dies and comes back, or another one takes over; the store fails, loses requests
// and answers; or the process stands still while others take it for dead. All
// comes to rest where it should, providers are asked once, and nothing is left
// behind there. All faults are tried with INTERLOCK_LONG=1, otherwise those after
// which somebody else has to clean up.
func TestCrashes(t *testing.T) {
	for _, st := range stories {
		t.Run(strings.ReplaceAll(st.name, " ", "-"), func(t *testing.T) { st.run(t) })
	}
}

func (st *story) run(t *testing.T) {
	var c *cloud // outlives every process; of one point at a time
	var seen *requests
	h := crashtest.Harness{
		New: func(testing.TB) lifecycle.Store {
			c, seen = newCloud(), &requests{answers: map[string]map[lifecycle.OpID]error{}}
			for what, kind := range st.faults {
				c.faults[what] = kind
			}
			return &lifecycle.MemoryStore{KeepHistory: -1}
		},
	}
	if os.Getenv("INTERLOCK_LONG") == "" {
		h.Kinds = []crashtest.Kind{crashtest.CrashBefore, crashtest.CrashAfter, crashtest.NoAnswer, crashtest.Paused}
	}
	crashtest.Run(t, h, crashtest.Scenario[*tumblebug.System]{
		Processes: []string{"alpha", "beta"},
		Start: func(ctx context.Context, p *crashtest.Process) (*tumblebug.System, error) {
			if err := p.Join(ctx, 30*time.Second); err != nil {
				return nil, err
			}
			mirror(p, tumblebug.MCI)
			mirror(p, tumblebug.VM)
			s, err := tumblebug.New(p.Store(), &token{c, p, seen}, &tumblebug.Config{Base: ctx, Owner: p.Owner()})
			if err != nil {
				return nil, err
			}
			p.Every(func(ctx context.Context) error { _, err := s.Sweep(ctx); return err })
			_, err = s.Recover(ctx)
			return s, err
		},
		Script: func(_ context.Context, w *world) error { return st.script(&client{w}) },
		Ends: map[lifecycle.Key][]string{
			{Machine: "mci", ID: "ns/m"}:    st.mci,
			{Machine: "vm", ID: "ns/m/a-1"}: st.vm1,
			{Machine: "vm", ID: "ns/m/a-2"}: st.vm2,
		},
		Check: func(ctx context.Context, s *tumblebug.System) error { return st.leaves(ctx, c, s) },
	})
}

// leaves says whether the providers have what the records say, and nothing else.
func (st *story) leaves(ctx context.Context, c *cloud, s *tumblebug.System) error {
	var wrong []error
	if left := c.list(); (len(left) > 0) != st.kept {
		wrong = append(wrong, fmt.Errorf("the clouds have %v", left))
	}
	mci, err := s.MCIs().Get(ctx, testNS+"/"+testMCI)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.resources {
		if r.Life != mci.Payload.Life {
			wrong = append(wrong, fmt.Errorf("the clouds have %s of an earlier life", r.Kind))
		}
	}
	for name, m := range c.vms {
		rec, err := s.VMs().Get(ctx, testNS+"/"+testMCI+"/"+name)
		runs := m.then != tumblebug.Terminated && m.then != tumblebug.Failed
		if known := err == nil && rec.State != tumblebug.Terminated; runs && !known {
			wrong = append(wrong, fmt.Errorf("%s is %s at its provider, and %q here", name, m.then, rec.State))
		}
	}
	return errors.Join(wrong...)
}
