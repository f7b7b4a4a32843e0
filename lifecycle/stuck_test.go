package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// An inspection has no owner and no deadline, so a sweep finds it.
func ExampleManager_Stuck() {
	ctx := context.Background()
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	_, _ = m.AddAt(ctx, "vm-1", "running", "user", size{}, nil)
	_, _ = m.Fire(ctx, "vm-1", "inspect", "user", nil)
	found, err := m.Stuck(ctx, 0)
	for _, r := range found {
		fmt.Println(r)
	}
	fmt.Println(err)
	// Output:
	// work-vm "vm-1" in inspecting, operation 1: needs an operator, because the operation has neither an owner nor a deadline: an engineer looks at it
	// <nil>
}

// TestStuck: Stuck finds what the next sweep finds, and changes nothing.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		dead := join(t, store, "dead", time.Second)
		m := workers(store, lifecycle.Config[event]{Owner: dead})
		for _, id := range []string{"late", "orphan", "unowned"} {
			running(t, m, id)
		}
		found := func(max int) (list []string) {
			results, err := m.Stuck(t.Context(), max)
			require.NoError(t, err)
			for _, r := range results {
				list = append(list, fmt.Sprint(r.ID, " ", r.Resolution, " ", r.Event, " ", r.OwnerDead, " ", r.Overdue))
			}
			return list
		}
		fire(t, m, "late", "stop", user, nil)
		do(t, m, "orphan", "stop", user, lifecycle.Func(untilEnded), nil)
		synctest.Wait()
		require.Empty(t, found(0))

		fire(t, m, "unowned", "inspect", user, nil)
		time.Sleep(time.Minute + time.Nanosecond)
		sweeper := lifecycle.Must(sizedVM, store, nil)
		sweepFor(t, sweeper, time.Second) // declares the owner dead, and finds nothing else
		ids := []string{"late", "orphan", "unowned"}
		before := all(t, store, "work-vm", ids...)
		for range 2 {
			require.Equal(t, []string{
				"orphan not swept yet late true false", "late not swept yet late false true", "unowned needs an operator  false false",
			}, found(0))
		}
		require.Len(t, found(2), 2)
		require.Equal(t, before, all(t, store, "work-vm", ids...))

		require.Len(t, sweep(t, m), 3)
		require.Equal(t, []string{"unowned needs an operator  false false"}, found(0))
		_, err := m.Stuck(t.Context(), lifecycle.MaxPage+1)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = m.Stuck(ctx, 0)
		require.ErrorIs(t, err, context.Canceled)
	})
}
