package lattice_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// When WaitDeploy has returned, the lock is released.
func TestWaitIncludesTheLock(t *testing.T) {
	c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, "s")
	for i := range 200 {
		id := fmt.Sprint(i)
		if i%3 == 0 {
			_, err := c.Teardown(t.Context(), "s", lattice.TeardownID(id), nil)
			require.NoError(t, err)
			rec, err := c.WaitTeardown(t.Context(), "s", lattice.TeardownID(id))
			require.NoError(t, err)
			require.Equal(t, lattice.ActionSucceeded, rec.State, rec.Reason)
			continue
		}
		_, err := c.Deploy(t.Context(), "s", lattice.DeployID(id), lock.MustParse("/a"), nil)
		require.NoError(t, err)
		rec, err := c.WaitDeploy(t.Context(), "s", lattice.DeployID(id))
		require.NoError(t, err)
		require.Equal(t, lattice.ActionSucceeded, rec.State, rec.Reason)
	}
	_, err := c.WaitDeploy(t.Context(), "s", "none")
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// Of many requests, only actions of unrelated paths run at once.
func TestNoTwoActionsOfOnePath(t *testing.T) {
	parts := []string{"/", "/a", "/a/b", "/a/c", "/b"}
	overlap := func(p, q lock.Path) bool { return p.Covers(q) || q.Covers(p) }
	var mu sync.Mutex
	now := map[lock.Token]lock.Path{}
	var ran atomic.Int32
	work := func(_ context.Context, r lattice.Running) error {
		mu.Lock()
		for _, p := range now {
			if overlap(p, r.Path) {
				t.Errorf("%v and %v at once", p, r.Path)
			}
		}
		now[r.Token] = r.Path
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		delete(now, r.Token)
		mu.Unlock()
		ran.Add(1)
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{Build: work, Deploy: work, Teardown: work}, "s")
		for i := range 200 {
			if i%10 == 0 {
				_, err := c.Teardown(t.Context(), "s", lattice.TeardownID(fmt.Sprint(i)), nil)
				require.NoError(t, err)
			}
			_, err := c.Deploy(t.Context(), "s", lattice.DeployID(fmt.Sprint(i)), lock.MustParse(parts[i%len(parts)]), nil)
			require.NoError(t, err)
			time.Sleep(300 * time.Microsecond)
		}
		time.Sleep(time.Second)
		require.Greater(t, ran.Load(), int32(20))
		for rec, err := range c.Deploys().All(t.Context(), lifecycle.Select[lattice.ActionState]{}) {
			require.NoError(t, err)
			require.Contains(t, []lattice.ActionState{lattice.ActionSucceeded, lattice.ActionFailed}, rec.State)
		}
		for system := range c.Actions().Systems() {
			t.Errorf("system %s has locks", system)
		}
		require.NoError(t, c.Close(t.Context()))
	})
}

// The arguments of the backend's work, and the outcome of the action.
func TestWork(t *testing.T) {
	var got []lattice.Running
	fail := errors.New("no")
	infra := lattice.Infrastructure{
		Build: func(_ context.Context, r lattice.Running) error {
			got = append(got, r)
			return nil
		},
		Deploy: func(_ context.Context, r lattice.Running) error {
			got = append(got, r)
			switch r.ID {
			case "panics":
				panic("too bad")
			case "exits":
				runtime.Goexit()
			case "long":
				return errors.New(strings.Repeat("\x00\xffé", 10_000))
			case "fails":
				return fail
			}
			return nil
		},
		Teardown: func(_ context.Context, r lattice.Running) error {
			got = append(got, r)
			return nil
		},
	}
	c := live(t, lifecycle.NewMemoryStore(), infra, "s")
	for _, x := range []struct {
		id     lattice.DeployID
		path   lock.Path
		state  lattice.ActionState
		reason string
	}{
		{"all", lock.Path{}, lattice.ActionSucceeded, ""},
		{"part", lock.MustParse("/a"), lattice.ActionSucceeded, ""},
		{"fails", lock.MustParse("/a"), lattice.ActionFailed, "no"},
		{"panics", lock.MustParse("/a"), lattice.ActionFailed, "panic: too bad\ngoroutine"},
		{"exits", lock.MustParse("/a"), lattice.ActionFailed, "queue: panic in action: runtime.Goexit"},
		{"long", lock.MustParse("/a"), lattice.ActionFailed, "\uFFFD\uFFFDé\uFFFD\uFFFDé"},
		{"after", lock.MustParse("/a"), lattice.ActionSucceeded, ""},
	} {
		t.Run(string(x.id), func(t *testing.T) {
			rec, err := c.Deploy(t.Context(), "s", x.id, x.path, nil)
			require.NoError(t, err)
			require.Equal(t, lattice.ActionPending, rec.State)
			rec, err = c.WaitDeploy(t.Context(), "s", x.id)
			require.NoError(t, err)
			require.Equal(t, x.state, rec.State)
			require.True(t, strings.HasPrefix(rec.Reason, x.reason), "%q", rec.Reason)
			require.True(t, x.reason != "" || rec.Reason == "")
			require.True(t, utf8.ValidString(rec.Reason) && len(rec.Reason) <= 4<<10 && !strings.Contains(rec.Reason, "\x00"))
			want := x.path
			if !want.Valid() {
				want = lock.Root()
			}
			require.Equal(t, lattice.Action{System: "s", Path: want}, rec.Payload)
		})
	}
	_, err := c.Teardown(t.Context(), "s", "t", nil)
	require.NoError(t, err)
	_, err = c.WaitTeardown(t.Context(), "s", "t")
	require.NoError(t, err)
	require.Len(t, got, 15)
	for i, r := range got {
		require.Equal(t, lattice.SystemID("s"), r.System)
		require.NotZero(t, r.Operation)
		if i > 0 {
			same := r.ID == got[i-1].ID // one grant from acceptance to end
			require.True(t, same && r.Token == got[i-1].Token || !same && r.Token > got[i-1].Token, "%v", got)
		}
	}
	require.Equal(t, lock.Root(), got[0].Path)
	require.Equal(t, lock.MustParse("/a"), got[2].Path)
	require.Equal(t, lock.Root(), got[14].Path)
}

// A deletion cancels a deploy at once, also if it waits in the queue itself.
func TestDeletionInAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[lifecycle.Key]{MaxRunning: 1})
		c, err := lattice.Start(t.Context(), lifecycle.NewMemoryStore(), lattice.Infrastructure{
			Deploy: func(ctx context.Context, _ lattice.Running) error {
				<-ctx.Done()
				return ctx.Err()
			},
		}, &lattice.Config{Queue: q})
		require.NoError(t, err)
		createSystem(t, c, "s")
		_, err = c.Deploy(t.Context(), "s", "d", lock.Path{}, nil)
		require.NoError(t, err)
		synctest.Wait()
		deleteSystem(t, c, "s")
		d, err := c.Deploys().Get(t.Context(), "s/d")
		require.NoError(t, err)
		require.Equal(t, "the system is being deleted", d.Reason)
		require.NoError(t, q.Terminate(t.Context()))
		require.NoError(t, c.Close(t.Context()))
	})
}

// Work that waits for another action of its path sees that action fail. Work that waits for
// itself gets an error.
func TestWaitInsideWork(t *testing.T) {
	var c *lattice.Controller
	var self error
	infra := lattice.Infrastructure{Deploy: func(ctx context.Context, r lattice.Running) error {
		_, self = c.WaitDeploy(ctx, r.System, lattice.DeployID(r.ID))
		_, err := c.Teardown(ctx, r.System, "t", nil)
		if err != nil {
			return err
		}
		rec, err := c.WaitTeardown(ctx, r.System, "t")
		if err == nil && rec.State == lattice.ActionFailed {
			err = errors.New(rec.Reason)
		}
		return err
	}}
	c = live(t, lifecycle.NewMemoryStore(), infra, "s")
	_, err := c.Deploy(t.Context(), "s", "d", lock.MustParse("/a"), nil)
	require.NoError(t, err)
	d, err := c.WaitDeploy(t.Context(), "s", "d")
	require.NoError(t, err)
	require.ErrorIs(t, self, queue.ErrWouldDeadlock)
	require.Equal(t, "unable to acquire lifecycle lock: locked by deploys d", d.Reason)

	short, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.WaitDeploy(short, "s", "d")
	require.ErrorIs(t, err, context.Canceled)
}

// The commit of every step requires a live system.
func TestEveryStepRequiresALiveSystem(t *testing.T) {
	var c *lattice.Controller
	c = live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{
		Build: func(ctx context.Context, r lattice.Running) error {
			_, err := c.Systems().Override(ctx, string(r.System), lattice.Failed, "operator", "test", nil)
			return err
		},
		Deploy: func(context.Context, lattice.Running) error { panic("deployed to a system that has failed") },
	}, "s")
	_, err := c.Deploy(t.Context(), "s", "d", lock.Path{}, nil)
	require.NoError(t, err)
	d, err := c.WaitDeploy(t.Context(), "s", "d")
	require.NoError(t, err)
	require.Equal(t, "system s is failed", d.Reason)
	rows, err := c.Deploys().History(t.Context(), "s/d", 0, lifecycle.MaxPage)
	require.NoError(t, err)
	for _, row := range rows {
		require.NotEqual(t, string(lattice.ActionInProgress), row.To)
	}
}
