package tumblebug_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
	"github.com/interlock-go/interlock/queue"
)

// requestMci requests the MCI ns/m with VMs a-1, a-2 and so on.
func requestMci(t *testing.T, s *tumblebug.System, size int) {
	t.Helper()
	_, err := s.CreateMci(t.Context(), "ns", tumblebug.MciReq{Name: "m", SubGroups: []tumblebug.SubGroup{
		{Name: "a", Size: size, Provider: "aws", Region: "r"},
	}})
	require.NoError(t, err)
}

// createOne is requestMci that waits for the MCI.
func createOne(t *testing.T, s *tumblebug.System, size int) tumblebug.MciStatus {
	t.Helper()
	requestMci(t, s, size)
	status := wait(t.Context(), t, s)
	// The last turn still reads the store after its status is seen. The test changes the
	// hooks of the store next.
	synctest.Wait()
	return status
}

// The last VM of an MCI is removed after an action is admitted by it, and before the
// action starts. The action is refused.
func TestActionStartsOnWhatItDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		store := scripttest.NewStore()
		clouds.faults["create a-1"] = "reject"
		s, other := tumblebug.Must(store, clouds, nil), tumblebug.Must(store.MemoryStore, clouds, nil)
		require.Equal(t, tumblebug.Failed, createOne(t, s, 1).State)
		resuming := scripttest.Call{Method: "Commit", Machine: "mci", State: string(tumblebug.Resuming)}
		overtaken := store.OnceBefore(resuming, func() {
			_, err := other.HandleMciAction(ctx, "ns", "m", "refine", false)
			require.NoError(t, err)
		})
		_, err := s.HandleMciAction(ctx, "ns", "m", "resume", true)
		require.True(t, overtaken())
		status := wait(ctx, t, s)
		require.Equal(t, tumblebug.Failed, status.State)
		require.Empty(t, status.Vm)
		require.ErrorIs(t, err, fsm.ErrNotAllowed)
		require.NoError(t, s.Close(ctx))
	})
}

// An action of an MCI starts after an action of its VM has read the MCI. The action of the VM
// is refused.
func TestMciActionDuringAVMAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		store := scripttest.NewStore()
		others := &scripttest.Store{MemoryStore: store.MemoryStore}
		s, other := tumblebug.Must(store, clouds, nil), tumblebug.Must(others, clouds, nil)
		createOne(t, s, 1)
		refused := make(chan struct{})
		others.OnceBefore(scripttest.Call{Method: "Commit", Machine: "vm"}, func() { <-refused }) // else the VM may be in action, too
		store.OnceBefore(scripttest.Call{Method: "Commit"}, func() {
			_, err := other.HandleMciAction(ctx, "ns", "m", "reboot", false)
			require.NoError(t, err)
		})
		_, err := s.HandleMciVmAction(ctx, "ns", "m", "a-1", "suspend", false)
		close(refused)
		require.ErrorIs(t, err, lifecycle.ErrBusy)
		require.EqualError(t, err, "MCI has just come under an action, please try later")
		require.Equal(t, "Running:1 (R:1/1)", wait(ctx, t, s).Status)
		require.NoError(t, s.Close(ctx))
		require.NoError(t, other.Close(ctx))
	})
}

// An operator corrects the state of a VM whose MCI is Terminated. No action leads out of
// Terminated, so the MCI stays there, and the VM can be terminated again.
func TestOverrideOfATerminatedVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		createOne(t, s, 1)
		_, err := s.HandleMciAction(ctx, "ns", "m", "terminate", false)
		require.NoError(t, err)
		require.Equal(t, tumblebug.Terminated, wait(ctx, t, s).State)
		_, err = s.VMs().Override(ctx, "ns/m/a-1", tumblebug.Running, "operator", "it runs at the provider", nil)
		require.NoError(t, err)
		clouds.change(func() { clouds.vms["a-1"] = &machine{during: tumblebug.Running} })
		status, err := s.GetMciStatus(ctx, "ns", "m")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Terminated, status.State)
		require.Equal(t, "Running:1 (R:1/1)", status.Status)
		require.ErrorIs(t, s.DelMci(ctx, "ns", "m"), fsm.ErrNotAllowed)
		_, err = s.HandleMciVmAction(ctx, "ns", "m", "a-1", "terminate", false)
		require.NoError(t, err)
		require.Equal(t, "Terminated:1 (R:0/1)", wait(ctx, t, s).Status)
		require.NoError(t, s.DelMci(ctx, "ns", "m"))
		require.NoError(t, s.Close(ctx))
	})
}

// A VM waits for longer than its deadline. A sweep between the begin of its turn and the
// commit that sets its deadline leaves it alone, with and without an owner.
func TestSweepAtTheBeginOfATurn(t *testing.T) {
	for name, owned := range map[string]bool{"owner": true, "no owner": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, clouds := t.Context(), newCloud()
				clouds.delay = tumblebug.VMCreateTimeout - time.Minute
				store := scripttest.NewStore()
				config := &tumblebug.Config{Limits: map[string]tumblebug.Limit{"aws": {VMs: 1}}}
				if owned {
					owner, err := lifecycle.Join(ctx, store, "tb", 24*time.Hour)
					require.NoError(t, err)
					config.Owner = owner
				}
				s := tumblebug.Must(store, clouds, config)
				sweeps := 0
				var busy atomic.Bool
				store.Before(func(c scripttest.Call) error {
					if beginsTurn(c) && busy.CompareAndSwap(false, true) {
						_, err := s.Sweep(ctx)
						require.NoError(t, err)
						sweeps++
						busy.Store(false)
					}
					return nil
				})
				requestMci(t, s, 4)
				status, err := s.Wait(ctx, "ns", "m")
				require.NoError(t, err)
				require.Equal(t, "Running:4 (R:4/4)", status.Status)
				require.Equal(t, 4, sweeps)
				require.NoError(t, s.Close(ctx))
			})
		})
	}
}

// A provider does not answer about a Running VM. After three looks, one in each
// interval, it is Undefined.
func TestUnansweredLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		createOne(t, s, 1)
		look := func(want tumblebug.State, shows ...tumblebug.State) {
			t.Helper()
			clouds.change(func() { clouds.shows["a-1"] = shows })
			for range shows {
				time.Sleep(5 * time.Second)
				status, err := s.GetMciStatus(ctx, "ns", "m")
				require.NoError(t, err)
				require.Equal(t, want, status.Vm[0].Status)
			}
		}
		look(tumblebug.Running, "silence", "silence", tumblebug.Running, "silence", "silence")
		look(tumblebug.Undefined, "silence", "silence")
		look(tumblebug.Running, tumblebug.Running)
		look(tumblebug.Undefined, tumblebug.Undefined) // an answer
		look(tumblebug.Running, tumblebug.Running)
		look(tumblebug.Undefined, "Rebuilding") // an answer with a state that VMs do not have
		require.NoError(t, s.Close(ctx))
	})
}

// A system that is closed, or is closed during the request, changes nothing.
func TestClosedSystemChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		clouds.faults["create a-2"] = "reject"
		store := scripttest.NewStore()
		s := tumblebug.Must(store, clouds, nil)
		createOne(t, s, 2)
		before, err := s.MCIs().Get(ctx, "ns/m")
		require.NoError(t, err)
		unchanged := func(err error) {
			t.Helper()
			require.ErrorIs(t, err, queue.ErrTerminated)
			now, err := s.MCIs().Get(ctx, "ns/m")
			require.NoError(t, err)
			require.Equal(t, before.Revision, now.Revision)
			for vm, err := range s.VMs().All(ctx, lifecycle.Select[tumblebug.State]{}) {
				require.NoError(t, err)
				require.Equal(t, lifecycle.OpID(1), vm.Operation)
			}
		}
		store.OnceBefore(scripttest.Call{Method: "Get", Machine: "mci"}, func() { require.NoError(t, s.Close(ctx)) })
		_, err = s.HandleMciAction(ctx, "ns", "m", "reboot", false)
		unchanged(err)
		for _, action := range []string{"suspend", "refine", "withdraw", "continue"} {
			_, err = s.HandleMciAction(ctx, "ns", "m", action, true)
			unchanged(err)
		}
		_, err = s.HandleMciVmAction(ctx, "ns", "m", "a-1", "suspend", true)
		unchanged(err)
		unchanged(s.DelMci(ctx, "ns", "m"))
		_, err = s.CreateMci(ctx, "ns", tumblebug.MciReq{Name: "n", SubGroups: []tumblebug.SubGroup{{Name: "a", Provider: "aws", Region: "r"}}})
		unchanged(err)
		_, err = s.MCIs().Get(ctx, "ns/n")
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
	})
}

// The VMs of an MCI are terminated one by one. Its resources are released with the last
// one, or the MCI has the reason.
func TestReleaseAfterTheLastVM(t *testing.T) {
	for name, fault := range map[string]string{"released": "", "refused": "reject"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, clouds := t.Context(), newCloud()
				clouds.faults["release vNet"] = fault
				s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
				createOne(t, s, 2)
				var status tumblebug.MciStatus
				for _, vm := range []string{"a-1", "a-2"} {
					require.Len(t, clouds.list(), 3)
					_, err := s.HandleMciVmAction(ctx, "ns", "m", vm, "terminate", false)
					require.NoError(t, err)
					status = wait(ctx, t, s)
				}
				require.Equal(t, tumblebug.Terminated, status.State)
				if fault == "" {
					require.Empty(t, clouds.list())
					lastFirst := []string{"release sshKey", "release securityGroup", "release vNet"}
					require.Equal(t, lastFirst, clouds.calls[len(clouds.calls)-3:])
				} else {
					require.Equal(t, []string{"ns/m vNet aws/r"}, clouds.list())
					require.Equal(t, "release vNet in aws r: tumblebug: rejected by the provider: release vNet", status.SystemMessage)
				}
				require.NoError(t, s.Close(ctx))
			})
		})
	}
}

// An MCI cannot be prepared, and the answer to the report of that is lost. Its resources
// are released.
func TestReleaseAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		clouds.faults["prepare sshKey"] = "reject"
		store, lost := scripttest.NewStore(), 0
		store.After(func(c scripttest.Call) error {
			if c.Is(scripttest.Call{Method: "Commit", Machine: "mci", State: string(tumblebug.Failed)}) {
				lost++
				return lifecycle.ErrUnknownOutcome
			}
			return nil
		})
		s := tumblebug.Must(store, clouds, nil)
		require.Equal(t, tumblebug.Failed, createOne(t, s, 1).State)
		time.Sleep(time.Minute) // the next attempt
		require.Positive(t, lost)
		require.Empty(t, clouds.list())
		require.Contains(t, clouds.newCalls(), "release vNet")
		require.NoError(t, s.Close(ctx))
	})
}

// After DelMci has read an MCI, another caller removes it and creates one of the same name,
// which fails. DelMci does not remove that one.
func TestDeleteUntilTheNextMCI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds, store := t.Context(), newCloud(), scripttest.NewStore()
		clouds.faults["prepare vNet"] = "reject"
		s := tumblebug.Must(store, clouds, nil)
		createOne(t, s, 1)
		store.OnceBefore(scripttest.Call{Method: "List", Machine: "vm"}, func() {
			require.NoError(t, s.DelMci(ctx, "ns", "m"))
			createOne(t, s, 1)
		})
		require.ErrorIs(t, s.DelMci(ctx, "ns", "m"), lifecycle.ErrConflict)
		require.Equal(t, tumblebug.Failed, wait(ctx, t, s).State)
		require.NoError(t, s.Close(ctx))
	})
}

// Force skips the validation: a forced terminate of an MCI or a VM that is Terminated has
// its target status already, and is complete. No other action leads out of Terminated.
func TestForceOnTerminated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		createOne(t, s, 1)
		_, err := s.HandleMciAction(ctx, "ns", "m", "terminate", false)
		require.NoError(t, err)
		before := wait(ctx, t, s)
		clouds.newCalls()
		for _, action := range []string{"suspend", "resume", "reboot", "terminate"} {
			for _, force := range []bool{false, true} {
				text, err := s.HandleMciAction(ctx, "ns", "m", action, force)
				vmText, vmErr := s.HandleMciVmAction(ctx, "ns", "m", "a-1", action, force)
				if force && action == "terminate" {
					require.NoError(t, err)
					require.NoError(t, vmErr)
					require.Equal(t, "The MCI is Terminated", text)
					require.Equal(t, "The VM is Terminated", vmText)
					continue
				}
				require.ErrorIs(t, err, fsm.ErrNotAllowed)
				require.ErrorIs(t, vmErr, fsm.ErrNotAllowed)
			}
		}
		require.Equal(t, before, wait(ctx, t, s))
		require.Empty(t, clouds.newCalls())
		require.NoError(t, s.Close(ctx))
	})
}

// The timeouts of actions are configured by state.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		clouds.faults["suspend a-1"] = "hang"
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, &tumblebug.Config{
			VMTimeouts:  map[tumblebug.State]time.Duration{tumblebug.Suspending: time.Hour},
			MCITimeouts: map[tumblebug.State]time.Duration{tumblebug.Suspending: 2 * time.Hour},
		})
		createOne(t, s, 1)
		_, err := s.HandleMciAction(ctx, "ns", "m", "suspend", false)
		require.NoError(t, err)
		synctest.Wait()
		mci, err := s.MCIs().Get(ctx, "ns/m")
		require.NoError(t, err)
		require.Equal(t, 2*time.Hour, mci.Deadline.Sub(mci.ChangedAt))
		time.Sleep(time.Hour - time.Minute)
		state := func() tumblebug.State {
			_, err := s.Sweep(ctx)
			require.NoError(t, err)
			vm, err := s.VMs().Get(ctx, "ns/m/a-1")
			require.NoError(t, err)
			return vm.State
		}
		require.Equal(t, tumblebug.Suspending, state())
		time.Sleep(2 * time.Minute)
		require.Equal(t, tumblebug.Undefined, state())
		require.NoError(t, s.Close(ctx))
		for name, timeouts := range map[string]map[tumblebug.State]time.Duration{
			"not positive": {tumblebug.Creating: 0}, "no timeout": {tumblebug.Running: time.Hour},
		} {
			_, err := tumblebug.New(lifecycle.NewMemoryStore(), clouds, &tumblebug.Config{MCITimeouts: timeouts})
			require.ErrorIs(t, err, lifecycle.ErrInvalid, name)
			_, err = tumblebug.New(lifecycle.NewMemoryStore(), clouds, &tumblebug.Config{VMTimeouts: timeouts})
			require.ErrorIs(t, err, lifecycle.ErrInvalid, name)
		}
	})
}

// starts returns a function that starts a process tb over the store: its system, the process, and
// the end of the base of the system.
func starts(
	t *testing.T, store *lifecycle.MemoryStore, clouds tumblebug.Provider, limits map[string]tumblebug.Limit,
) func() (*tumblebug.System, *scripttest.Store, context.CancelFunc) {
	return func() (*tumblebug.System, *scripttest.Store, context.CancelFunc) {
		base, stop := context.WithCancel(t.Context())
		process := &scripttest.Store{MemoryStore: store}
		owner, err := lifecycle.Join(t.Context(), process, "tb", 24*time.Hour)
		require.NoError(t, err)
		return tumblebug.Must(process, clouds, &tumblebug.Config{Base: base, Owner: owner, Limits: limits}), process, stop
	}
}

// A process dies while a VM waits for its turn, for longer than a timeout. The next
// process begins the turn: it requests the VM, which has a full timeout from then on.
func TestTurnOfADeadProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds, store := t.Context(), newCloud(), lifecycle.NewMemoryStore()
		clouds.delay = tumblebug.VMCreateTimeout - time.Minute
		start := starts(t, store, clouds, map[string]tumblebug.Limit{"aws": {VMs: 1}})
		first, process, stop := start()
		requestMci(t, first, 3)
		time.Sleep(tumblebug.VMCreateTimeout + 10*time.Minute) // a-2 is being created, a-3 waits
		process.Die(0)
		stop()
		clouds.change(func() { clouds.delay = 10 * time.Minute }) // a repeated create begins again
		second, _, end := start()
		defer end()
		for range 12 {
			_, err := second.Sweep(ctx)
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		status, err := second.Wait(ctx, "ns", "m")
		require.NoError(t, err)
		require.Equal(t, "Running:3 (R:3/3)", status.Status)
		require.NoError(t, second.Close(ctx))
	})
}

// panickingCloud panics in Release, or else ends in Validate.
type panickingCloud struct {
	*cloud
	releases bool
	end      func()
}

func (c panickingCloud) Validate(ctx context.Context, g tumblebug.SubGroup) error {
	if !c.releases {
		c.end()
	}
	return c.cloud.Validate(ctx, g)
}

func (c panickingCloud) Release(ctx context.Context, r tumblebug.Resource) error {
	if c.releases {
		panic("provider is broken")
	}
	return c.cloud.Release(ctx, r)
}

// A panic of the provider while an MCI is prepared is a failure, and so is runtime.Goexit. The
// resources that it has created are released.
func TestPreparePanics(t *testing.T) {
	for want, end := range map[string]func(){
		"provider is broken": func() { panic("provider is broken") }, "runtime.Goexit": runtime.Goexit,
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clouds := newCloud()
				s := tumblebug.Must(lifecycle.NewMemoryStore(), panickingCloud{cloud: clouds, end: end}, nil)
				status := createOne(t, s, 1)
				require.Equal(t, tumblebug.Failed, status.State)
				require.Contains(t, status.SystemMessage, want)
				require.Empty(t, clouds.resources)
				require.NoError(t, s.Close(t.Context()))
			})
		})
	}
}

// A panic of the provider while the resources of an MCI are released is the reason in its
// record, and the MCI is Terminated.
func TestReleasePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tumblebug.Must(lifecycle.NewMemoryStore(), panickingCloud{cloud: newCloud(), releases: true}, nil)
		createOne(t, s, 1)
		_, err := s.HandleMciAction(t.Context(), "ns", "m", "terminate", false)
		require.NoError(t, err)
		status := wait(t.Context(), t, s)
		require.Equal(t, tumblebug.Terminated, status.State)
		require.Contains(t, status.SystemMessage, "provider is broken")
		require.ErrorContains(t, s.DelMci(t.Context(), "ns", "m"), "provider is broken")
		require.NoError(t, s.Close(t.Context()))
	})
}
