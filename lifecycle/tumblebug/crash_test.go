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

// tokenCloud is a provider with request tokens: it performs every operation of a VM
// once, repeats its answer, and refuses an operation that is older than another one.
type tokenCloud struct {
	*cloud
	p    *crashtest.Process
	seen *requests
}

// requests are the operations that a cloud has performed, of all processes.
type requests struct {
	mu      sync.Mutex
	answers map[string]map[lifecycle.OpID]error // by VM
}

func (c *tokenCloud) Create(ctx context.Context, vm tumblebug.VMRef) error {
	return c.once(ctx, vm, func() error { return c.cloud.Create(ctx, vm) })
}

func (c *tokenCloud) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	return c.once(ctx, vm, func() error { return c.cloud.Control(ctx, vm, a) })
}

func (c *tokenCloud) once(ctx context.Context, vm tumblebug.VMRef, do func() error) error {
	id := fmt.Sprintf("%s/%s/%s", vm.NsID, vm.MciID, vm.VMID)
	// A process that has died sends nothing, and one that is paused sends it later.
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
			return fmt.Errorf("%w: %s has operation %d", tumblebug.ErrRejected, id, other)
		}
	}
	answers[vm.Operation] = do()
	return answers[vm.Operation]
}

// mirror registers the table of a manager with the harness. The system handles stuck
// objects itself.
func mirror[T any](p *crashtest.Process, m *fsm.Machine[tumblebug.State, tumblebug.Event, T]) {
	crashtest.Manage(p, m, &lifecycle.Config[tumblebug.Event]{
		Observe: func(context.Context, lifecycle.StoredRecord) (tumblebug.Event, fsm.Actor, error) {
			return "", "", errors.New("the system handles it")
		},
	})
}

type world = crashtest.Clients[*tumblebug.System]

// scenario is what users request of the MCI "ns/m" of two VMs, "a-1" and "a-2", and the
// states that the objects may have in the end; "" is a record that does not exist.
type scenario struct {
	name          string
	faults        map[string]string // of the cloud, by request
	script        func(*client) error
	mci, vm1, vm2 []string
	kept          bool // the resources still exist
}

// client repeats each request until it has an answer: a process that dies gives none.
type client struct{ w *world }

const (
	testNS  = "ns"
	testMCI = "m"
)

// insist repeats a request in a process that is alive, until the error is nil or
// matches one of those that are ignored.
func (c *client) insist(what string, f func(ctx context.Context, s *tumblebug.System) error, ignored ...error) error {
	return c.w.Insist("alpha", what, func(ctx context.Context, s *tumblebug.System) error {
		err := f(ctx, s)
		if slices.ContainsFunc(ignored, func(target error) bool { return errors.Is(err, target) }) {
			return nil
		}
		return err
	})
}

func (c *client) begin(hold bool) error {
	return c.insist("create", func(ctx context.Context, s *tumblebug.System) error {
		_, err := s.CreateMci(ctx, testNS, tumblebug.MciReq{
			Name: testMCI, Hold: hold,
			SubGroups: []tumblebug.SubGroup{{Name: "a", Size: 2, Provider: "aws", Region: "r"}},
		})
		return err
	}, lifecycle.ErrExists)
}

// rests waits until the MCI and its VMs are at rest.
func (c *client) rests() error {
	return c.insist("wait", func(ctx context.Context, s *tumblebug.System) error {
		_, err := s.Wait(ctx, testNS, testMCI)
		return err
	}, lifecycle.ErrNotFound)
}

// operation returns the operation of the MCI, or of a VM.
func operation(ctx context.Context, s *tumblebug.System, vm string) (lifecycle.OpID, error) {
	if vm == "" {
		mci, err := s.MCIs().Get(ctx, testNS+"/"+testMCI)
		return mci.Operation, err
	}
	rec, err := s.VMs().Get(ctx, testNS+"/"+testMCI+"/"+vm)
	return rec.Operation, err
}

func (c *client) operation(vm string) (n lifecycle.OpID, err error) {
	err = c.insist("operation", func(ctx context.Context, s *tumblebug.System) (err error) {
		n, err = operation(ctx, s, vm)
		return err
	}, lifecycle.ErrNotFound)
	return n, err
}

// act requests an action of the MCI, or of one VM, until it is done: by force if an
// earlier attempt has left a state that requires that.
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
			now, err := operation(ctx, s, vm)
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

// force requests an action of the MCI by force, once.
func (c *client) force(a tumblebug.Action) error {
	before, err := c.operation("")
	if err != nil {
		return err
	}
	return c.insist(string(a)+" by force", func(ctx context.Context, s *tumblebug.System) error {
		if now, err := operation(ctx, s, ""); err != nil || now > before {
			return err
		}
		_, err := s.HandleMciAction(ctx, testNS, testMCI, string(a), true)
		return err
	})
}

// answer requests continue or withdraw until the MCI is not on hold any more.
func (c *client) answer(a tumblebug.Action) error {
	return c.insist(string(a), func(ctx context.Context, s *tumblebug.System) error {
		status, err := s.Wait(ctx, testNS, testMCI)
		if err != nil || status.State != tumblebug.Prepared {
			return err
		}
		_, err = s.HandleMciAction(ctx, testNS, testMCI, string(a), false)
		return err
	}, lifecycle.ErrNotFound)
}

func (c *client) delete() error {
	return c.insist("delete", func(ctx context.Context, s *tumblebug.System) error {
		return s.DelMci(ctx, testNS, testMCI)
	}, lifecycle.ErrNotFound)
}

// refine removes the failed VMs, and checks that none is left.
func (c *client) refine() error {
	return c.insist("refine", func(ctx context.Context, s *tumblebug.System) error {
		if _, err := s.HandleMciAction(ctx, testNS, testMCI, "refine", false); err != nil {
			return err
		}
		status, err := s.GetMciStatus(ctx, testNS, testMCI)
		if n := status.StatusCount; err == nil && n.CountFailed+n.CountUndefined > 0 {
			err = errors.New("failed VMs are left after refine")
		}
		return err
	})
}

// The steps of scenarios.
func create(c *client) error   { return errors.Join(c.begin(false), c.rests()) }
func rests(c *client) error    { return c.rests() }
func remove(c *client) error   { return c.delete() }
func refine(c *client) error   { return c.refine() }
func pass3s(c *client) error   { c.w.Pass(3 * time.Second); return nil }
func hold(c *client) error     { return errors.Join(c.begin(true), c.rests()) }
func start(c *client) error    { return c.begin(false) }
func resumed(c *client) error  { return c.answer(tumblebug.ActionContinue) }
func withdraw(c *client) error { return c.answer(tumblebug.ActionWithdraw) }

func act(vm string, actions ...tumblebug.Action) func(*client) error {
	return func(c *client) error {
		for _, a := range actions {
			if err := c.act(vm, a); err != nil {
				return err
			}
		}
		return nil
	}
}

func forced(a tumblebug.Action) func(*client) error {
	return func(c *client) error { return c.force(a) }
}

func steps(list ...func(*client) error) func(*client) error {
	return func(c *client) error {
		for _, step := range list {
			if err := step(c); err != nil {
				return err
			}
		}
		return nil
	}
}

const (
	suspend, resume   = tumblebug.ActionSuspend, tumblebug.ActionResume
	reboot, terminate = tumblebug.ActionReboot, tumblebug.ActionTerminate
)

var scenarios = []scenario{
	{
		name:   "every action",
		script: steps(create, act("", suspend, resume, reboot, terminate)),
		mci:    []string{"Terminated"}, vm1: []string{"Terminated"}, vm2: []string{"Terminated"},
	},
	{
		name:   "hold and continue, then terminate and delete",
		script: steps(hold, resumed, rests, act("", terminate), remove),
		mci:    []string{""}, vm1: []string{""}, vm2: []string{""},
	},
	{
		name:   "a name is used again",
		script: steps(create, act("", terminate), remove, create),
		mci:    []string{"Running"}, vm1: []string{"Running"}, vm2: []string{"Running"}, kept: true,
	},
	{
		name:   "hold and withdraw",
		script: steps(hold, withdraw, remove), // after a crash the MCI is Failed
		mci:    []string{""}, vm1: []string{""}, vm2: []string{""},
	},
	{
		name:   "one VM fails, and is refined",
		faults: map[string]string{"create a-1": "reject"},
		script: steps(create, refine),
		mci:    []string{"Running"}, vm1: []string{""}, vm2: []string{"Running"}, kept: true,
	},
	{
		name:   "nothing can be prepared",
		faults: map[string]string{"prepare sshKey": "reject"},
		script: steps(create, remove),
		mci:    []string{""}, vm1: []string{""}, vm2: []string{""},
	},
	{
		name:   "one VM alone",
		script: steps(create, act("a-1", suspend, resume, reboot, terminate)),
		mci:    []string{"Running"}, vm1: []string{"Terminated"}, vm2: []string{"Running"}, kept: true,
	},
	{
		name:   "force during an action",
		script: steps(start, pass3s, forced(reboot), pass3s, forced(terminate), rests, act("", terminate)),
		mci:    []string{"Terminated"}, vm1: []string{"Terminated", ""}, vm2: []string{"Terminated", ""},
	},
}

// Every scenario runs with a fault at every commit: the process dies and restarts, or
// another one continues; the store fails, loses requests and answers; or the process is
// paused and considered dead. All objects come to rest in an allowed state, the provider
// performs every request once, and nothing is left behind there. INTERLOCK_LONG=1 adds
// the faults after which the same process continues.
func TestCrashes(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) { sc.run(t) })
	}
}

func (sc *scenario) run(t *testing.T) {
	var c *cloud // of all processes at one point
	var seen *requests
	h := crashtest.Harness{
		New: func(testing.TB) lifecycle.Store {
			c, seen = newCloud(), &requests{answers: map[string]map[lifecycle.OpID]error{}}
			for what, kind := range sc.faults {
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
			s, err := tumblebug.New(p.Store(), &tokenCloud{c, p, seen}, &tumblebug.Config{Base: ctx, Owner: p.Owner()})
			if err != nil {
				return nil, err
			}
			p.Every(func(ctx context.Context) error { _, err := s.Sweep(ctx); return err })
			_, err = s.Recover(ctx)
			return s, err
		},
		Script: func(_ context.Context, w *world) error { return sc.script(&client{w}) },
		Ends: map[lifecycle.Key][]string{
			{Machine: "mci", ID: "ns/m"}:    sc.mci,
			{Machine: "vm", ID: "ns/m/a-1"}: sc.vm1,
			{Machine: "vm", ID: "ns/m/a-2"}: sc.vm2,
		},
		Check: func(ctx context.Context, s *tumblebug.System) error { return sc.check(ctx, c, s) },
	})
}

// check compares the provider with the records.
func (sc *scenario) check(ctx context.Context, c *cloud, s *tumblebug.System) error {
	var wrong []error
	if left := c.list(); (len(left) > 0) != sc.kept {
		wrong = append(wrong, fmt.Errorf("the cloud has %v", left))
	}
	mci, err := s.MCIs().Get(ctx, testNS+"/"+testMCI)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.resources {
		if r.Life != mci.Payload.Life {
			wrong = append(wrong, fmt.Errorf("the cloud has %s of an earlier MCI", r.Kind))
		}
	}
	for name, m := range c.vms {
		rec, err := s.VMs().Get(ctx, testNS+"/"+testMCI+"/"+name)
		runs := m.then != tumblebug.Terminated && m.then != tumblebug.Failed
		if known := err == nil && rec.State != tumblebug.Terminated; runs && !known {
			wrong = append(wrong, fmt.Errorf("%s is %s at its provider, and %q in its record", name, m.then, rec.State))
		}
	}
	return errors.Join(wrong...)
}
