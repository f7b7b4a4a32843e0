package blazar_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// Many guards on one lease, in two processes: one method is at work at any moment,
// and who comes meanwhile is told so, with nothing done. A delete in the middle is
// let in once, and nothing begins after it.
func TestGuardsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := watch()
		services := []*blazar.Service{blazar.New(store, nil), blazar.New(store, nil)}
		must(services[0].CreateLease(t.Context(), "l", blazar.LeaseSpec{End: time.Now().Add(24 * time.Hour)}))(t)
		var (
			mu      sync.Mutex
			working = map[blazar.Call]int{}
			ran     = map[blazar.Call]int{}
			told    = map[string]int{}
			deleted bool
		)
		method := func(call blazar.Call, long time.Duration) blazar.Method {
			return func(ctx context.Context, lease blazar.LeaseInfo) error {
				mu.Lock()
				for other, n := range working {
					if n > 0 && call != blazar.Delete {
						t.Errorf("%s begins while %s is at work", call, other)
					}
				}
				if deleted {
					t.Errorf("%s begins after a delete", call)
				}
				deleted = deleted || call == blazar.Delete
				working[call]++
				ran[call]++
				mu.Unlock()
				defer func() { mu.Lock(); working[call]--; mu.Unlock() }()
				select {
				case <-time.After(long):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		var all sync.WaitGroup
		ask := func(n int, call blazar.Call, long time.Duration) {
			all.Go(func() {
				_, err := services[n%2].Guard(t.Context(), "l", call, method(call, long))
				answer := "done"
				for _, is := range []error{lifecycle.ErrBusy, lifecycle.ErrConflict, lifecycle.ErrNotFound, lifecycle.ErrStale} {
					if errors.Is(err, is) {
						answer = is.Error()
					}
				}
				if err != nil && answer == "done" {
					t.Errorf("%s: %v", call, err)
				}
				mu.Lock()
				defer mu.Unlock()
				told[fmt.Sprintf("%s: %s", call, answer)]++
			})
		}
		for round := range 20 {
			for n := range 8 {
				ask(n, blazar.Update, time.Second)
			}
			if round == 10 {
				time.Sleep(time.Millisecond)
				for n := range 8 {
					ask(n, blazar.Delete, time.Second)
				}
			}
			time.Sleep(2 * time.Second)
		}
		all.Wait()
		require.Equal(t, map[blazar.Call]int{blazar.Update: 11, blazar.Delete: 1}, ran)
		// Of two that come at once, one loses the race or finds the lease busy.
		told["update: late"] = told["update: "+lifecycle.ErrBusy.Error()] + told["update: "+lifecycle.ErrConflict.Error()]
		delete(told, "update: "+lifecycle.ErrBusy.Error())
		delete(told, "update: "+lifecycle.ErrConflict.Error())
		require.Equal(t, map[string]int{
			"update: done": 10, "update: late": 77, "update: " + lifecycle.ErrStale.Error(): 1,
			"update: " + lifecycle.ErrNotFound.Error(): 72,
			"delete: done": 1, "delete: " + lifecycle.ErrBusy.Error(): 7,
		}, told)
		store.ends(t)
	})
}

// overtaking is a store in which somebody else is faster than the first delete.
type overtaking struct {
	*lifecycle.MemoryStore
	faster func()
}

func (o *overtaking) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if f := o.faster; f != nil && c.Changes[0].To.State == string(blazar.LeaseDeleting) {
		o.faster = nil
		f()
	}
	return o.MemoryStore.Commit(ctx, c)
}

// A delete goes before everything, and so does not lose either against what has
// changed the status while it was asked for; but against another delete.
func TestADeleteThatWasOvertaken(t *testing.T) {
	for name, c := range map[string]struct {
		faster func(t *testing.T, s *blazar.Service)
		is     error
	}{
		"by a start": {func(t *testing.T, s *blazar.Service) { must(s.StartLease(t.Context(), "l"))(t) }, nil},
		"by an update": {func(t *testing.T, s *blazar.Service) {
			must(s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{Name: "n"}))(t)
		}, nil},
		"by a delete": {func(t *testing.T, s *blazar.Service) { require.NoError(t, s.DeleteLease(t.Context(), "l")) }, lifecycle.ErrNotFound},
		"by one that is late": {func(t *testing.T, s *blazar.Service) {
			must(s.Leases.Fire(t.Context(), "l", blazar.Delete, blazar.User, nil))(t)
		}, lifecycle.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			store := &overtaking{MemoryStore: lifecycle.NewMemoryStore()}
			s := blazar.New(store, nil)
			must(s.CreateLease(t.Context(), "l", blazar.LeaseSpec{End: time.Now().Add(time.Hour)}))(t)
			store.faster = func() { c.faster(t, blazar.New(store.MemoryStore, nil)) }
			require.ErrorIs(t, s.DeleteLease(t.Context(), "l"), c.is)
			require.Nil(t, store.faster)
		})
	}
}
