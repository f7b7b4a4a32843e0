package tumblebug_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/crashtest"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// token is a provider that takes every operation of a VM once, as the contract of
// providers asks for.
type token struct {
	*cloud
	p    *crashtest.Process
	once *sync.Map
}

func (c *token) Create(ctx context.Context, vm tumblebug.VMRef) error {
	return c.apply(ctx, vm, func() error { return c.cloud.Create(ctx, vm) })
}

func (c *token) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	return c.apply(ctx, vm, func() error { return c.cloud.Control(ctx, vm, a) })
}

func (c *token) apply(ctx context.Context, vm tumblebug.VMRef, do func() error) error {
	id := fmt.Sprintf("%s/%s/%s", vm.NsID, vm.MciID, vm.VMID)
	if _, again := c.once.LoadOrStore(fmt.Sprint(id, "#", vm.Operation), true); again {
		return nil
	}
	var err error
	if lifecycle.TaskOf(ctx) != nil {
		err = c.p.Effect(ctx)
	} else {
		err = c.p.Apply(lifecycle.Key{Machine: "vm", ID: id}, vm.Operation)
	}
	if err != nil {
		return err
	}
	return do()
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

// An MCI from its creation to its end, with a crash, a lost answer or a pause at
// every write.
func TestCrashes(t *testing.T) {
	clouds := sync.Map{} // by world: the clouds outlive every process
	crashtest.Run(t, crashtest.Harness{
		New: func(testing.TB) lifecycle.Store {
			store := &lifecycle.MemoryStore{KeepHistory: -1}
			clouds.Clear()
			return store
		},
		Synctest: true,
	}, crashtest.Scenario[*tumblebug.System]{
		Processes: []string{"alpha", "beta"},
		Start: func(ctx context.Context, p *crashtest.Process) (*tumblebug.System, error) {
			if err := p.Join(ctx, 30*time.Second); err != nil {
				return nil, err
			}
			mirror(p, tumblebug.MCI)
			mirror(p, tumblebug.VM)
			c, _ := clouds.LoadOrStore("cloud", newCloud())
			once, _ := clouds.LoadOrStore("once", &sync.Map{})
			s, err := tumblebug.New(p.Store(), &token{c.(*cloud), p, once.(*sync.Map)}, &tumblebug.Config{Base: ctx, Owner: p.Owner()})
			if err != nil {
				return nil, err
			}
			p.Every(func(ctx context.Context) error { _, err := s.Sweep(ctx); return err })
			return s, nil
		},
		Script: func(_ context.Context, w *crashtest.World[*tumblebug.System]) error {
			const ns, mci = "ns", "m"
			if err := w.Insist("alpha", "create", func(ctx context.Context, s *tumblebug.System) error {
				_, err := s.CreateMci(ctx, ns, tumblebug.MciReq{Name: mci, SubGroups: []tumblebug.SubGroup{{Name: "a", Size: 2, Provider: "aws", Region: "r"}}})
				if err != nil && !errors.Is(err, lifecycle.ErrExists) {
					return err
				}
				_, err = s.Wait(ctx, ns, mci)
				return err
			}); err != nil {
				return err
			}
			for _, a := range []tumblebug.Action{tumblebug.ActionSuspend, tumblebug.ActionTerminate} {
				if err := w.Insist("alpha", string(a), func(ctx context.Context, s *tumblebug.System) error {
					for {
						status, err := s.Wait(ctx, ns, mci)
						if err != nil || status.State == a.Target() || status.State == tumblebug.Terminated {
							return err
						}
						_, err = s.HandleMciAction(ctx, ns, mci, string(a), status.State != tumblebug.Running && status.State != tumblebug.Suspended)
						if err != nil {
							return err
						}
					}
				}); err != nil {
					return err
				}
			}
			return nil
		},
		Ends: map[lifecycle.Key][]string{
			{Machine: "mci", ID: "ns/m"}:    {"Terminated"},
			{Machine: "vm", ID: "ns/m/a-1"}: {"Terminated"},
			{Machine: "vm", ID: "ns/m/a-2"}: {"Terminated"},
		},
	})
}
