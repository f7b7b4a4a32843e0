package tumblebug_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// This file has tests with two processes on one store, of which the first one stalls
// and continues when the second one has moved the MCI.

// stallingCloud is a cloud as the first process reaches it. Requests of one kind stall.
type stallingCloud struct {
	*cloud
	stalls string // prepare, release, control or validate
	first  atomic.Bool
	resume chan error // an error is the answer to the stalled request
	late   []tumblebug.VMRef
}

func newStallingCloud(stalls string) *stallingCloud {
	return &stallingCloud{cloud: newCloud(), stalls: stalls}
}

// stall waits, if requests of this kind stall. Only the first prepare of a key stalls.
func (c *stallingCloud) stall(kind string) error {
	if kind != c.stalls || kind == "prepare" && !c.first.CompareAndSwap(false, true) {
		return nil
	}
	return <-c.resume
}

func (c *stallingCloud) Prepare(ctx context.Context, r tumblebug.Resource) error {
	if r.Kind == tumblebug.SSHKey {
		if err := c.stall("prepare"); err != nil {
			return err
		}
	}
	return c.cloud.Prepare(ctx, r)
}

func (c *stallingCloud) Release(ctx context.Context, r tumblebug.Resource) error {
	_ = c.stall("release")
	return c.cloud.Release(ctx, r)
}

func (c *stallingCloud) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	if c.stalls == "control" && c.first.CompareAndSwap(false, true) {
		<-c.resume
		c.late = append(c.late, vm)
	}
	return c.cloud.Control(ctx, vm, a)
}

// pair is two processes on one store.
type pair struct {
	*testing.T
	first, second *tumblebug.System
}

// inPair runs a test with two processes, on clouds that may differ.
func inPair(t *testing.T, one, two lifecycle.Store, firstCloud, secondCloud tumblebug.Provider, test func(ctx context.Context, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if c, ok := firstCloud.(*stallingCloud); ok {
			c.resume = make(chan error) // of the bubble
		}
		p := &pair{T: t, first: tumblebug.Must(one, firstCloud, nil), second: tumblebug.Must(two, secondCloud, nil)}
		test(t.Context(), p)
		require.NoError(t, p.first.Close(t.Context()))
		require.NoError(t, p.second.Close(t.Context()))
	})
}

func (p *pair) create(s *tumblebug.System, hold bool, groups ...tumblebug.SubGroup) {
	p.Helper()
	if groups == nil {
		groups = []tumblebug.SubGroup{{Name: "a", Size: 2, Provider: "aws", Region: "r"}}
	}
	_, err := s.CreateMci(p.Context(), "ns", tumblebug.MciReq{Name: "m", Hold: hold, SubGroups: groups})
	require.NoError(p, err)
}

// action starts an action of the MCI in the second process.
func (p *pair) action(action string, force bool) {
	p.Helper()
	_, err := p.second.HandleMciAction(p.Context(), "ns", "m", action, force)
	require.NoError(p, err)
}

func (p *pair) sweep() []lifecycle.SweepResult {
	p.Helper()
	results, err := p.second.Sweep(p.Context())
	require.NoError(p, err)
	synctest.Wait()
	return results
}

// rests waits until the MCI rests, and compares its status.
func (p *pair) rests(want string) {
	p.Helper()
	require.Equal(p, want, wait(p.Context(), p.T, p.second).Status)
}

func (p *pair) delete() {
	p.Helper()
	require.NoError(p, p.second.DelMci(p.Context(), "ns", "m"))
}

// The first process fails to prepare an MCI that the second one has prepared. The
// resources are kept, and the MCI does not fail.
func TestLateFailure(t *testing.T) {
	for name, hold := range map[string]bool{"on hold": true, "running": false} {
		t.Run(name, func(t *testing.T) {
			store, c := lifecycle.NewMemoryStore(), newStallingCloud("prepare")
			inPair(t, store, store, c, c, func(_ context.Context, p *pair) {
				p.create(p.first, hold)
				time.Sleep(2 * time.Minute)
				p.sweep()
				time.Sleep(time.Minute)
				prepared := c.list()
				require.Len(t, prepared, 3)
				c.resume <- errors.New("gateway timeout")
				synctest.Wait()
				require.Equal(t, prepared, c.list())
				if hold {
					p.action("continue", false)
				}
				p.rests("Running:2 (R:2/2)")
			})
		})
	}
}

// The first process prepares an MCI that the second one has ended. It releases what it
// has created last.
func TestLatePreparation(t *testing.T) {
	for name, end := range map[string]func(p *pair){
		"timed out": func(p *pair) {
			time.Sleep(tumblebug.MCIPrepareTimeout + time.Minute)
			results := p.sweep()
			require.Len(p, results, 1)
			require.Equal(p, lifecycle.Moved, results[0].Resolution)
		},
		"terminated": func(p *pair) {
			p.action("terminate", true)
			p.rests("Terminated")
		},
		"deleted": func(p *pair) {
			p.action("terminate", true)
			p.rests("Terminated")
			p.delete()
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, c := lifecycle.NewMemoryStore(), newStallingCloud("prepare")
			inPair(t, store, store, c, c.cloud, func(_ context.Context, p *pair) {
				p.create(p.first, false)
				synctest.Wait()
				require.Len(t, c.list(), 2)
				end(p)
				require.Empty(t, c.list())
				c.resume <- nil
				synctest.Wait()
				require.Empty(t, c.list())
			})
		})
	}
}

// The first process stalls while it releases resources. The second one deletes the MCI
// and creates another one of the same name, which keeps its resources.
func TestLateReleaseSparesTheNextMCI(t *testing.T) {
	for _, c := range []struct {
		name, action string
		hold         bool
		faults       map[string]string
	}{
		{name: "terminate", action: "terminate"},
		{name: "withdraw", action: "withdraw", hold: true},
		{name: "nothing prepared", faults: map[string]string{"prepare sshKey": "reject"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, clouds := lifecycle.NewMemoryStore(), newStallingCloud("release")
			clouds.faults = c.faults
			inPair(t, store, store, clouds, clouds.cloud, func(ctx context.Context, p *pair) {
				p.create(p.first, c.hold)
				var group sync.WaitGroup
				if c.action != "" {
					group.Go(func() {
						wait(ctx, t, p.first)
						_, _ = p.first.HandleMciAction(ctx, "ns", "m", c.action, false)
					})
				}
				time.Sleep(5 * time.Minute)
				require.NotEmpty(t, clouds.list(), "the release stalls")
				p.sweep()
				time.Sleep(time.Minute)
				p.delete()
				require.Empty(t, clouds.list())

				clouds.change(func() { clouds.faults = nil })
				p.create(p.second, false)
				p.rests("Running:2 (R:2/2)")
				resources := clouds.list()
				require.Len(t, resources, 3)
				close(clouds.resume)
				group.Wait()
				time.Sleep(time.Minute)
				require.Equal(t, resources, clouds.list())
				p.rests("Running:2 (R:2/2)")
			})
		})
	}
}

// A late request about a VM carries the life of its own MCI.
func TestLateControlNamesItsLife(t *testing.T) {
	store, clouds := lifecycle.NewMemoryStore(), newStallingCloud("control")
	inPair(t, store, store, clouds, clouds.cloud, func(ctx context.Context, p *pair) {
		one := tumblebug.SubGroup{Name: "a", Provider: "aws", Region: "r"}
		p.create(p.first, false, one)
		p.rests("Running:1 (R:1/1)")
		_, err := p.first.HandleMciAction(ctx, "ns", "m", "terminate", false)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		p.action("terminate", true)
		p.rests("Terminated:1 (R:0/1)")
		p.delete()
		p.create(p.second, false, one)
		p.rests("Running:1 (R:1/1)")
		close(clouds.resume)
		synctest.Wait()
		require.Len(t, clouds.late, 1)
		vm, err := p.second.VMs().Get(ctx, "ns/m/a-1")
		require.NoError(t, err)
		require.NotEmpty(t, vm.Payload.Life)
		require.NotEqual(t, vm.Payload.Life, clouds.late[0].Life)
	})
}

// creating is a commit that adds a VM.
var creating = scripttest.Call{Method: "Commit", Machine: tumblebug.VM.Name(), State: string(tumblebug.Creating)}

// secondRead is the read of the second VM.
var secondRead = scripttest.Call{Method: "Get", Machine: tumblebug.VM.Name(), ID: "ns/m/a-2"}

// The first process stalls before it adds a VM, until another MCI of the same name is
// being created. The provider is not requested to create the VM.
func TestLateVMIsNotCreated(t *testing.T) {
	clouds, one := newCloud(), scripttest.NewStore()
	two := &scripttest.Store{MemoryStore: one.MemoryStore}
	synctest.Test(t, func(t *testing.T) {
		resume, deleted := make(chan struct{}), make(chan struct{})
		one.OnceBefore(creating, func() { <-resume })
		two.OnceBefore(creating, func() { close(resume); <-deleted; time.Sleep(time.Second) })
		p := &pair{T: t, first: tumblebug.Must(one, clouds, nil), second: tumblebug.Must(two, clouds, nil)}
		p.create(p.first, false, tumblebug.SubGroup{Name: "b", Provider: "aws", Region: "old"})
		synctest.Wait()
		p.action("terminate", true)
		p.rests("Terminated")
		p.delete()
		p.create(p.second, false, tumblebug.SubGroup{Name: "a", Size: 2, Provider: "gcp", Region: "new"})
		synctest.Wait()
		close(deleted)
		p.rests("Partial-Running:2 (R:2/3)")
		vm, err := p.second.VMs().Get(t.Context(), "ns/m/b-1")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Failed, vm.State)
		require.NotContains(t, clouds.newCalls(), "create b-1")
		require.NoError(t, p.first.Close(t.Context()))
		require.NoError(t, p.second.Close(t.Context()))
	})
}

// The first process stalls before it adds the first of five VMs. The second one terminates
// the MCI: the first process does not try to add the others.
func TestLateCreationStops(t *testing.T) {
	clouds, one := newCloud(), scripttest.NewStore()
	inPair(t, one, one.MemoryStore, clouds, clouds, func(_ context.Context, p *pair) {
		resume, adds := make(chan struct{}), 0
		one.Before(func(c scripttest.Call) error {
			if c.Is(creating) {
				adds++
				<-resume
			}
			return nil
		})
		p.create(p.first, false, tumblebug.SubGroup{Name: "a", Size: 5, Provider: "aws", Region: "r"})
		synctest.Wait()
		p.action("terminate", true)
		p.rests("Terminated")
		close(resume)
		synctest.Wait()
		require.Equal(t, 1, adds)
	})
}

// The first process stalls while it requests a reboot of the VMs. The second one has
// finished that and started the next reboot when the first one continues: a VM that was
// rebooted twice is not rebooted again.
func TestLateRequestIsRefused(t *testing.T) {
	clouds, one := newCloud(), scripttest.NewStore()
	inPair(t, one, one.MemoryStore, clouds, clouds, func(ctx context.Context, p *pair) {
		resume := make(chan struct{})
		stalled := one.OnceBefore(secondRead, func() { <-resume })
		p.create(p.second, false)
		p.rests("Running:2 (R:2/2)")
		_, err := p.first.HandleMciAction(ctx, "ns", "m", "reboot", false)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		p.sweep()
		p.rests("Running:2 (R:2/2)")
		clouds.change(func() { clouds.faults["reboot a-1"] = "hang" })
		p.action("reboot", false)
		time.Sleep(time.Minute)
		require.True(t, stalled())
		close(resume)
		time.Sleep(time.Minute)
		reboots := slices.DeleteFunc(clouds.newCalls(), func(c string) bool { return c != "reboot a-2" })
		require.Len(t, reboots, 2)
		p.action("terminate", true)
		p.rests("Terminated:2 (R:0/2)")
	})
}

// The first process stalls while it requests a forced reboot of the VMs. The second one has
// requested it meanwhile: each VM is requested once.
func TestLateRequestIsNotRepeated(t *testing.T) {
	clouds, one := newCloud(), scripttest.NewStore()
	inPair(t, one, one.MemoryStore, clouds, clouds, func(ctx context.Context, p *pair) {
		resume := make(chan struct{})
		stalled := one.OnceBefore(secondRead, func() { <-resume })
		p.create(p.second, false)
		p.rests("Running:2 (R:2/2)")
		clouds.change(func() { clouds.delay = 5 * time.Minute })
		_, err := p.first.HandleMciAction(ctx, "ns", "m", "reboot", true)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		p.sweep()
		require.True(t, stalled())
		close(resume)
		p.rests("Running:2 (R:2/2)")
		reboots := slices.DeleteFunc(clouds.newCalls(), func(c string) bool { return c != "reboot a-2" })
		require.Len(t, reboots, 1)
	})
}

// The content of a VM changes after the action of its MCI has read the VM, and before it
// requests the action of the VM. The change is kept.
func TestRequestKeepsContent(t *testing.T) {
	clouds, one := newCloud(), scripttest.NewStore()
	inPair(t, one, one.MemoryStore, clouds, clouds, func(ctx context.Context, p *pair) {
		one.OnceBefore(secondRead, func() {
			_, err := p.second.VMs().Override(ctx, "ns/m/a-2", tumblebug.Running, "admin", "new label", &lifecycle.Change[tumblebug.VMSpec]{
				Edit: func(vm *tumblebug.VMSpec) error { vm.Attributes = []byte(`"label"`); return nil },
			})
			require.NoError(t, err)
		})
		p.create(p.second, false)
		p.rests("Running:2 (R:2/2)")
		_, err := p.first.HandleMciAction(ctx, "ns", "m", "suspend", false)
		require.NoError(t, err)
		p.rests("Suspended:2 (R:0/2)")
		vm, err := p.second.VMs().Get(ctx, "ns/m/a-2")
		require.NoError(t, err)
		require.Equal(t, `"label"`, string(vm.Payload.Attributes))
	})
}
