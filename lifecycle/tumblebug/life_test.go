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

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// still is a cloud as one process reaches it that stands still: requests of a kind
// are under way until somebody says that it goes on.
type still struct {
	*cloud
	release, control bool // which one
	first            atomic.Bool
	goOn             chan struct{}
	late             []tumblebug.VMRef // of the control that was asked late
}

// wait reports whether it is the first to do so. All wait for the channel, also two
// at once: who waits for a mutex keeps a bubble from its time.
func (c *still) wait() (first bool) {
	first = c.first.CompareAndSwap(false, true)
	<-c.goOn
	return first
}

func (c *still) Release(ctx context.Context, r tumblebug.Resource) error {
	if c.release {
		c.wait()
	}
	return c.cloud.Release(ctx, r)
}

func (c *still) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	if c.control && c.wait() {
		c.late = append(c.late, vm)
	}
	return c.cloud.Control(ctx, vm, a)
}

func lifeReq(groups ...tumblebug.SubGroup) tumblebug.MciReq {
	if groups == nil {
		groups = []tumblebug.SubGroup{{Name: "a", Size: 2, Provider: "aws", Region: "r"}}
	}
	return tumblebug.MciReq{Name: "m", SubGroups: groups}
}

// A process stands still while it releases what an MCI had. Others go on with it,
// delete it, and make another one of its name: that one keeps what it has, however
// the release began.
func TestLateReleaseSparesTheNextLife(t *testing.T) {
	ask := func(action string) func(ctx context.Context, s *tumblebug.System) error {
		return func(ctx context.Context, s *tumblebug.System) error {
			if _, err := s.Wait(ctx, "ns", "m"); err != nil {
				return err
			}
			_, err := s.HandleMciAction(ctx, "ns", "m", action, false)
			return err
		}
	}
	for _, c := range []struct {
		name   string
		req    tumblebug.MciReq
		faults map[string]string
		then   func(ctx context.Context, s *tumblebug.System) error
	}{
		{name: "terminate", then: ask("terminate")},
		{name: "withdraw", req: tumblebug.MciReq{Hold: true}, then: ask("withdraw")},
		{name: "rollback", req: tumblebug.MciReq{Policy: tumblebug.Rollback}, faults: map[string]string{"create a-1": "reject"}},
		{name: "nothing prepared", faults: map[string]string{"prepare sshKey": "reject"}},
		{name: "delete", faults: map[string]string{"create a-1": "reject", "create a-2": "reject"}, then: func(ctx context.Context, s *tumblebug.System) error {
			if err := ask("refine")(ctx, s); err != nil {
				return err
			}
			return s.DelMci(ctx, "ns", "m")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				store := lifecycle.NewMemoryStore()
				clouds := &still{cloud: newCloud(), release: true, goOn: make(chan struct{})}
				clouds.faults = c.faults
				first, err := tumblebug.New(store, clouds, nil)
				require.NoError(t, err)
				second, err := tumblebug.New(store, clouds.cloud, nil)
				require.NoError(t, err)
				req := lifeReq()
				req.Policy, req.Hold = c.req.Policy, c.req.Hold
				_, err = first.CreateMci(ctx, "ns", req)
				require.NoError(t, err)
				var all sync.WaitGroup
				if c.then != nil {
					all.Go(func() { _ = c.then(ctx, first) })
				}
				time.Sleep(5 * time.Minute)
				require.NotEmpty(t, clouds.list(), "it stands still")
				_, err = second.Sweep(ctx)
				require.NoError(t, err)
				time.Sleep(time.Minute)
				if c.name == "delete" {
					require.NoError(t, second.DelMci(ctx, "ns", "m"))
				} else if _, err := second.GetMciStatus(ctx, "ns", "m"); err == nil {
					require.NoError(t, second.DelMci(ctx, "ns", "m"))
				}
				require.Empty(t, clouds.list())

				clouds.mu.Lock()
				clouds.faults = nil
				clouds.mu.Unlock()
				_, err = second.CreateMci(ctx, "ns", lifeReq())
				require.NoError(t, err)
				status, err := wait(ctx, t, second)
				require.NoError(t, err)
				require.Equal(t, "Running:2 (R:2/2)", status.Status)
				has := clouds.list()
				require.Len(t, has, 3)
				close(clouds.goOn)
				all.Wait()
				time.Sleep(time.Minute)
				require.Equal(t, has, clouds.list())
				status, err = second.GetMciStatus(ctx, "ns", "m")
				require.NoError(t, err)
				require.Equal(t, "Running:2 (R:2/2)", status.Status)
				require.NoError(t, first.Close(ctx))
				require.NoError(t, second.Close(ctx))
			})
		})
	}
}

// The same of what is asked of a VM: it is said to be about another life than that of
// the VM that has the name now.
func TestLateControlNamesItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := lifecycle.NewMemoryStore()
		clouds := &still{cloud: newCloud(), control: true, goOn: make(chan struct{})}
		first, err := tumblebug.New(store, clouds, nil)
		require.NoError(t, err)
		second, err := tumblebug.New(store, clouds.cloud, nil)
		require.NoError(t, err)
		one := lifeReq(tumblebug.SubGroup{Name: "a", Provider: "aws", Region: "r"})
		_, err = first.CreateMci(ctx, "ns", one)
		require.NoError(t, err)
		_, err = wait(ctx, t, first)
		require.NoError(t, err)
		_, err = first.HandleMciAction(ctx, "ns", "m", "terminate", false)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = second.HandleMciAction(ctx, "ns", "m", "terminate", true)
		require.NoError(t, err)
		_, err = wait(ctx, t, second)
		require.NoError(t, err)
		require.NoError(t, second.DelMci(ctx, "ns", "m"))
		_, err = second.CreateMci(ctx, "ns", one)
		require.NoError(t, err)
		_, err = wait(ctx, t, second)
		require.NoError(t, err)
		close(clouds.goOn)
		synctest.Wait()
		require.Len(t, clouds.late, 1)
		vm, err := second.VMs().Get(ctx, "ns/m/a-1")
		require.NoError(t, err)
		require.NotEmpty(t, vm.Payload.Life)
		require.NotEmpty(t, clouds.late[0].Life)
		require.NotEqual(t, vm.Payload.Life, clouds.late[0].Life)
		require.NoError(t, first.Close(ctx))
		require.NoError(t, second.Close(ctx))
	})
}

// stopped is a store before whose commits something happens.
type stopped struct {
	*lifecycle.MemoryStore
	before func(*lifecycle.Commit)
}

func (s *stopped) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.before(c)
	return s.MemoryStore.Commit(ctx, c)
}

// makes reports whether a commit adds a VM.
func makes(c *lifecycle.Commit) bool {
	return slices.ContainsFunc(c.Changes, func(ch lifecycle.StoredChange) bool {
		return ch.To.Machine == tumblebug.VM.Name() && ch.To.State == string(tumblebug.Creating)
	})
}

// A process stands still just before it adds a VM. Its MCI is terminated and deleted,
// and another one of the name is being made when the process goes on, so that the
// commit holds. No such VM is made, neither under the name of another one nor under
// its own, and the new MCI has what it was asked for.
func TestLateVMIsNotMade(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				store := lifecycle.NewMemoryStore()
				goOn, gone := make(chan struct{}), make(chan struct{})
				var stop, resume sync.Once
				clouds := newCloud()
				first, err := tumblebug.New(&stopped{store, func(c *lifecycle.Commit) {
					if makes(c) {
						stop.Do(func() { <-goOn })
					}
				}}, clouds, nil)
				require.NoError(t, err)
				second, err := tumblebug.New(&stopped{store, func(c *lifecycle.Commit) {
					if makes(c) {
						resume.Do(func() { close(goOn); <-gone; time.Sleep(time.Second) })
					}
				}}, clouds, nil)
				require.NoError(t, err)
				_, err = first.CreateMci(ctx, "ns", lifeReq(tumblebug.SubGroup{Name: name, Provider: "aws", Region: "old"}))
				require.NoError(t, err)
				synctest.Wait()
				_, err = second.HandleMciAction(ctx, "ns", "m", "terminate", true)
				require.NoError(t, err)
				_, err = wait(ctx, t, second)
				require.NoError(t, err)
				require.NoError(t, second.DelMci(ctx, "ns", "m"))
				_, err = second.CreateMci(ctx, "ns", lifeReq(tumblebug.SubGroup{Name: "a", Size: 2, Provider: "gcp", Region: "new"}))
				require.NoError(t, err)
				synctest.Wait()
				close(gone)
				status, err := wait(ctx, t, second)
				require.NoError(t, err)
				require.Equal(t, "Running:2 (R:2/2)", status.Status)
				for _, vm := range status.Vm {
					require.Equal(t, "new", vm.Region)
				}
				calls := slices.DeleteFunc(clouds.told(), func(c string) bool { return c != "create a-1" && c != "create b-1" })
				require.Equal(t, []string{"create a-1"}, calls)
				require.NoError(t, first.Close(ctx))
				require.NoError(t, second.Close(ctx))
			})
		})
	}
}

// frozen is a store of a process that stands still before it reads a VM.
type frozen struct {
	*lifecycle.MemoryStore
	vm   string
	once sync.Once
	goOn chan struct{}
}

func (s *frozen) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if k.Machine == tumblebug.VM.Name() && k.ID == s.vm {
		s.once.Do(func() { <-s.goOn })
	}
	return s.MemoryStore.Get(ctx, k)
}

// A process stands still while it asks the VMs of an MCI for a reboot. Another one has
// finished that and asks for the next reboot when it goes on: the VM that has done
// both is not rebooted once more.
func TestLateAskIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := lifecycle.NewMemoryStore()
		clouds := newCloud()
		cold := &frozen{MemoryStore: store, vm: "ns/m/a-2", goOn: make(chan struct{})}
		first, err := tumblebug.New(cold, clouds, nil)
		require.NoError(t, err)
		second, err := tumblebug.New(store, clouds, nil)
		require.NoError(t, err)
		_, err = second.CreateMci(ctx, "ns", lifeReq())
		require.NoError(t, err)
		_, err = wait(ctx, t, second)
		require.NoError(t, err)
		_, err = first.HandleMciAction(ctx, "ns", "m", "reboot", false)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, err = second.Sweep(ctx)
		require.NoError(t, err)
		_, err = wait(ctx, t, second)
		require.NoError(t, err)
		clouds.mu.Lock()
		clouds.faults["reboot a-1"] = "hang"
		clouds.mu.Unlock()
		_, err = second.HandleMciAction(ctx, "ns", "m", "reboot", false)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		close(cold.goOn)
		time.Sleep(time.Minute)
		reboots := slices.DeleteFunc(clouds.told(), func(c string) bool { return c != "reboot a-2" })
		require.Len(t, reboots, 2)
		_, err = second.HandleMciAction(ctx, "ns", "m", "terminate", true)
		require.NoError(t, err)
		_, err = wait(ctx, t, second)
		require.NoError(t, err)
		require.NoError(t, first.Close(ctx))
		require.NoError(t, second.Close(ctx))
	})
}

// flaky is a store that fails once when it is told to.
type flaky struct {
	*lifecycle.MemoryStore
	fails atomic.Int32 // so many times from now on
}

func (s *flaky) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.fails.Add(-1) >= 0 {
		return lifecycle.StoredRecord{}, errors.New("out of reach")
	}
	return s.MemoryStore.Get(ctx, k)
}

// A process stands still while it prepares an MCI that is terminated and deleted
// meanwhile. What it makes then it releases, and tries that again where the provider
// or the store fails: nobody else knows of it.
func TestLatePreparationLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		cloud  string // fault
		store  int32  // failures
		answer error  // to what was asked for when it stood still
		own    bool   // it is told itself that the MCI is terminated
	}{
		{name: "cloud", cloud: "drop"},
		{name: "store", store: 2},
		{name: "failure", store: 2, answer: errNoAnswer},
		{name: "interrupted", own: true},
		{name: "interrupted failure", own: true, answer: errNoAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				store := &flaky{MemoryStore: lifecycle.NewMemoryStore()}
				clouds := &slow{cloud: newCloud(), answer: make(chan error)}
				first, err := tumblebug.New(store, clouds, nil)
				require.NoError(t, err)
				second, err := tumblebug.New(store.MemoryStore, clouds.cloud, nil)
				require.NoError(t, err)
				_, err = first.CreateMci(ctx, "ns", lifeReq())
				require.NoError(t, err)
				synctest.Wait()
				who := second
				if c.own {
					who = first
				}
				_, err = who.HandleMciAction(ctx, "ns", "m", "terminate", true)
				require.NoError(t, err)
				time.Sleep(2 * time.Minute)
				_, err = second.Sweep(ctx)
				require.NoError(t, err)
				_, err = wait(ctx, t, second)
				require.NoError(t, err)
				require.NoError(t, second.DelMci(ctx, "ns", "m"))
				require.Empty(t, clouds.list())
				clouds.mu.Lock()
				clouds.faults["release sshKey"] = c.cloud
				clouds.mu.Unlock()
				store.fails.Store(c.store)
				clouds.late = c.answer
				clouds.answer <- nil
				synctest.Wait()
				if c.cloud != "" || c.store > 0 {
					require.NotEmpty(t, clouds.list())
				}
				time.Sleep(7 * time.Second)
				clouds.mu.Lock()
				clear(clouds.faults)
				clouds.mu.Unlock()
				time.Sleep(time.Minute)
				require.Empty(t, clouds.list())
				require.NoError(t, first.Close(ctx))
				require.NoError(t, second.Close(ctx))
			})
		})
	}
}
