package tumblebug_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
	"github.com/interlock-go/interlock/queue"
)

// The document's table.
func TestDefaultLimits(t *testing.T) {
	type limit = tumblebug.Limit
	require.Equal(t, map[string]limit{
		"aws": {Regions: 10, VMs: 30}, "azure": {Regions: 8, VMs: 25}, "gcp": {Regions: 12, VMs: 35},
		"ncp": {Regions: 3, VMs: 15}, "alibaba": {Regions: 6, VMs: 20},
	}, tumblebug.DefaultLimits())
}

func TestNewRefuses(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	for name, config := range map[string]*tumblebug.Config{
		"Poll":     {Poll: -1},
		"limit":    {Limits: map[string]tumblebug.Limit{"aws": {VMs: -1}}},
		"provider": {Limits: map[string]tumblebug.Limit{"a/b": {}}},
		"twice":    {Limits: map[string]tumblebug.Limit{"aws": {}, "AWS": {}}},
		"no owner": {Shared: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tumblebug.New(store, newCloud(), config)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.NotContains(t, err.Error(), "{") // the content of the store
			require.Panics(t, func() { tumblebug.Must(store, newCloud(), config) })
		})
	}
	_, err := tumblebug.New(nil, newCloud(), nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = tumblebug.New(store, nil, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

func TestNamesAreChecked(t *testing.T) {
	s := tumblebug.Must(lifecycle.NewMemoryStore(), newCloud(), nil)
	ctx, group := t.Context(), tumblebug.SubGroup{Name: "a", Provider: "aws", Region: "r"}
	long := strings.Repeat("n", 64)
	create := func(ns, mci string, g tumblebug.SubGroup) error {
		_, err := s.CreateMci(ctx, ns, tumblebug.MciReq{Name: mci, SubGroups: []tumblebug.SubGroup{g}})
		return err
	}
	for name, call := range map[string]func() error{
		"CreateMci, namespace": func() error { return create("a/b", "m", group) },
		"CreateMci, MCI":       func() error { return create("ns", "", group) },
		"CreateMci, VM": func() error {
			return create("ns", "m", tumblebug.SubGroup{Name: long[1:], Provider: "aws", Region: "r"})
		},
		"CreateMci, number of VMs": func() error {
			return create("ns", "m", tumblebug.SubGroup{Name: "a", Size: 10_001, Provider: "aws", Region: "r"})
		},
		"GetMciStatus, namespace": func() error { _, err := s.GetMciStatus(ctx, "..", "m"); return err },
		"Wait, MCI":               func() error { _, err := s.Wait(ctx, "ns", long); return err },
		"DelMci, MCI":             func() error { return s.DelMci(ctx, "ns", "a b") },
		"HandleMciAction, MCI":    func() error { _, err := s.HandleMciAction(ctx, "ns", "m\x00", "suspend", false); return err },
		"HandleMciVmAction, VM":   func() error { _, err := s.HandleMciVmAction(ctx, "ns", "m", "", "suspend", false); return err },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, call(), lifecycle.ErrInvalid) })
	}
	require.NoError(t, s.Close(ctx))
	require.ErrorIs(t, create("ns", "m", group), queue.ErrTerminated)
}

// The reason of a record is cut at a character and has no NUL.
func TestReasonIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &verboseCloud{newCloud()}
		s := tumblebug.Must(lifecycle.NewMemoryStore(), c, nil)
		requestMci(t, s, 1)
		status := wait(t.Context(), t, s)
		require.Equal(t, tumblebug.Failed, status.State)
		require.Regexp(t, "^validate SubGroup a: (ä\uFFFD)+ä?[.]{3}$", status.SystemMessage)
		require.LessOrEqual(t, len(status.SystemMessage), 4<<10)
		require.NoError(t, s.Close(t.Context()))
	})
}

type verboseCloud struct{ *cloud }

func (c *verboseCloud) Validate(context.Context, tumblebug.SubGroup) error {
	return errors.New(strings.Repeat("ä\x00", 1000))
}

// countingCloud counts the concurrent requests of each provider.
type countingCloud struct {
	*cloud
	mu       sync.Mutex
	now, max map[string]int // by provider, and by provider/region
	regions  map[string]map[string]int
	most     map[string]int // regions of a provider
}

func (c *countingCloud) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	c.mu.Lock()
	at := vm.Provider + "/" + vm.Region
	c.now[at]++
	c.max[at] = max(c.max[at], c.now[at])
	if c.regions[vm.Provider] == nil {
		c.regions[vm.Provider] = map[string]int{}
	}
	c.regions[vm.Provider][vm.Region]++
	c.most[vm.Provider] = max(c.most[vm.Provider], len(c.regions[vm.Provider]))
	c.mu.Unlock()
	time.Sleep(time.Minute)
	c.mu.Lock()
	c.now[at]--
	if c.regions[vm.Provider][vm.Region]--; c.regions[vm.Provider][vm.Region] == 0 {
		delete(c.regions[vm.Provider], vm.Region)
	}
	c.mu.Unlock()
	return c.cloud.Control(ctx, vm, a)
}

// The limits hold for all requests of a process together, for several MCIs in two
// namespaces. A provider without limits has none.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := &countingCloud{
			cloud: newCloud(), now: map[string]int{}, max: map[string]int{}, regions: map[string]map[string]int{}, most: map[string]int{},
		}
		s, err := tumblebug.New(lifecycle.NewMemoryStore(), c, &tumblebug.Config{Limits: map[string]tumblebug.Limit{
			"aws": {Regions: 2, VMs: 3}, "gcp": {Regions: 1, VMs: 1},
		}})
		require.NoError(t, err)
		type place struct{ ns, mci string }
		var all []place
		for n := range 4 {
			at := place{fmt.Sprint("ns", n%2), fmt.Sprint("m", n)}
			all = append(all, at)
			_, err := s.CreateMci(ctx, at.ns, tumblebug.MciReq{Name: at.mci, SubGroups: []tumblebug.SubGroup{
				{Name: "a", Size: 3, Provider: "AWS", Region: "r1"},
				{Name: "b", Size: 3, Provider: "AWS", Region: "r2"},
				{Name: "c", Size: 3, Provider: "AWS", Region: "r3"},
				{Name: "d", Size: 2, Provider: "gcp", Region: "g1"},
				{Name: "e", Size: 2, Provider: "gcp", Region: "g2"},
				{Name: "f", Size: 3, Provider: "home", Region: "attic"},
			}})
			require.NoError(t, err)
		}
		for _, at := range all {
			status, err := s.Wait(ctx, at.ns, at.mci)
			require.NoError(t, err)
			require.Equal(t, "Running:16 (R:16/16)", status.Status)
		}
		for _, at := range all {
			_, err := s.HandleMciAction(ctx, at.ns, at.mci, "suspend", false)
			require.NoError(t, err)
		}
		for _, at := range all {
			status, err := s.Wait(ctx, at.ns, at.mci)
			require.NoError(t, err)
			require.Equal(t, "Suspended:16 (R:0/16)", status.Status)
		}
		require.Equal(t, map[string]int{
			"AWS/r1": 3, "AWS/r2": 3, "AWS/r3": 3, "gcp/g1": 1, "gcp/g2": 1, "home/attic": 12,
		}, c.max)
		require.Equal(t, map[string]int{"AWS": 2, "gcp": 1, "home": 1}, c.most)
		require.NoError(t, s.Close(ctx))
		_, err = s.HandleMciAction(ctx, "ns0", "m0", "resume", false)
		require.ErrorIs(t, err, queue.ErrTerminated)
	})
}

// Of several concurrent requests, one is admitted.
func TestOneActionWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s, err := tumblebug.New(lifecycle.NewMemoryStore(), newCloud(), nil)
		require.NoError(t, err)
		requestMci(t, s, 20)
		_, err = s.Wait(ctx, "ns", "m")
		require.NoError(t, err)
		var all errgroup.Group
		var admitted atomic.Int32
		for n := range 30 {
			all.Go(func() error {
				_, err := s.HandleMciAction(ctx, "ns", "m", []string{"suspend", "reboot", "terminate"}[n%3], false)
				if err == nil {
					admitted.Add(1)
				} else if !errors.Is(err, lifecycle.ErrBusy) && !errors.Is(err, lifecycle.ErrConflict) {
					return err
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		require.EqualValues(t, 1, admitted.Load())
		require.False(t, wait(ctx, t, s).Summary.Partial)
		require.NoError(t, s.Close(ctx))
	})
}

// An action of an MCI and one of its VM start concurrently. The VM has one action at a
// time, and both end.
func TestMciAndVm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s, err := tumblebug.New(&lifecycle.MemoryStore{KeepHistory: -1}, newCloud(), nil)
		require.NoError(t, err)
		requestMci(t, s, 3)
		_, err = s.Wait(ctx, "ns", "m")
		require.NoError(t, err)
		for range 50 {
			var all sync.WaitGroup
			var mci, vm error
			all.Go(func() { _, mci = s.HandleMciAction(ctx, "ns", "m", "reboot", false) })
			all.Go(func() { _, vm = s.HandleMciVmAction(ctx, "ns", "m", "a-2", "reboot", false) })
			all.Wait()
			require.NoError(t, mci)
			if vm != nil {
				require.Equal(t, 409, lifecycle.HTTPStatus(vm), "%v", vm)
			}
			require.Equal(t, "Running:3 (R:3/3)", wait(ctx, t, s).Status)
		}
		require.NoError(t, s.Close(ctx))
	})
}

// An MCI with the target status of its action has no target action, also for a request in
// another process.
func TestTargetIsClearedWhenReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store, c := lifecycle.NewMemoryStore(), newCloud()
		c.delay = 12 * time.Second // no multiple of Poll
		s, err := tumblebug.New(store, c, nil)
		require.NoError(t, err)
		other, err := tumblebug.New(store, c, nil)
		require.NoError(t, err)
		requestMci(t, s, 3)
		reached := func(want string) {
			t.Helper()
			for range 200 {
				time.Sleep(700 * time.Millisecond)
				status, err := other.GetMciStatus(ctx, "ns", "m")
				require.NoError(t, err)
				if status.Status == want {
					require.Equal(t, tumblebug.ActionComplete, status.TargetAction, want)
					require.Equal(t, tumblebug.StatusComplete, status.TargetStatus, want)
					return
				}
			}
			t.Errorf("never %s", want)
		}
		reached("Running:3 (R:3/3)")
		for _, step := range []struct{ action, want string }{
			{"suspend", "Suspended:3 (R:0/3)"},
			{"resume", "Running:3 (R:3/3)"},
			{"reboot", "Running:3 (R:3/3)"},
			{"terminate", "Terminated:3 (R:0/3)"},
		} {
			_, err := s.HandleMciAction(ctx, "ns", "m", step.action, false)
			require.NoError(t, err)
			reached(step.want)
		}
		require.NoError(t, s.Close(ctx))
	})
}

// wait waits for an hour at most until the MCI ns/m rests.
func wait(ctx context.Context, t *testing.T, s *tumblebug.System) tumblebug.MciStatus {
	t.Helper()
	ctx, stop := context.WithTimeout(ctx, time.Hour)
	defer stop()
	status, err := s.Wait(ctx, "ns", "m")
	require.NoError(t, err)
	return status
}
