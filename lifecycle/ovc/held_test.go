package ovc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// deaf is a method that does not listen: it ends when it is let, whatever its
// context says.
func deaf(until <-chan struct{}) *ovc.Options {
	return &ovc.Options{Run: func(context.Context) error { <-until; return nil }}
}

// A method that is told to end and does not keeps the object's queue. What waits
// behind it does not wait for its turn: it is stuck as well, is reported, and put
// back.
func TestHeldUp(t *testing.T) {
	type step struct {
		kind    ovc.Kind
		id      string
		action  ovc.Event
		options ovc.Options
	}
	for name, c := range map[string]struct {
		hangs, waits step
		moved        []string
	}{
		"on one object":                   {step{ovc.KindVM, "m", ovc.Reboot, ovc.Options{}}, step{ovc.KindVM, "m", ovc.Pause, ovc.Options{}}, []string{"m"}},
		"the same action again":           {step{ovc.KindVM, "m", ovc.Reboot, ovc.Options{}}, step{ovc.KindVM, "m", ovc.Reboot, ovc.Options{}}, []string{"m"}},
		"a machine behind its disk":       {step{ovc.KindDisk, "d", ovc.Delete, ovc.Options{}}, step{ovc.KindVM, "m", ovc.Pause, ovc.Options{}}, []string{"m"}},
		"a disk behind its machine":       {step{ovc.KindVM, "m", ovc.Reboot, ovc.Options{}}, step{ovc.KindDisk, "d", ovc.Delete, ovc.Options{}}, []string{"d"}},
		"both behind their detachment":    {step{ovc.KindDisk, "d", ovc.Detach, ovc.Options{}}, step{ovc.KindVM, "m", ovc.DetachDisk, ovc.Options{With: "d"}}, []string{"m", "d"}},
		"a machine and its disk, at once": {step{ovc.KindDisk, "d", ovc.Delete, ovc.Options{}}, step{ovc.KindVM, "m", ovc.Destroy, ovc.Options{}}, []string{"m", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := attached(t)
				before := map[ovc.Kind]ovc.Record{
					ovc.KindVM: must(s.Get(t.Context(), ovc.KindVM, "m"))(t), ovc.KindDisk: must(s.Get(t.Context(), ovc.KindDisk, "d"))(t),
				}
				end := make(chan struct{})
				first := must(s.Do(t.Context(), c.hangs.kind, c.hangs.id, c.hangs.action, deaf(end)))(t)
				time.Sleep(ovc.StuckAfter + time.Second)
				require.NotEmpty(t, must(s.SelfHeal(t.Context()))(t).Stuck)
				second := must(s.Do(t.Context(), c.waits.kind, c.waits.id, c.waits.action, &c.waits.options))(t)
				var stuck []string
				for range 7 {
					time.Sleep(5 * time.Minute)
					for _, found := range must(s.SelfHeal(t.Context()))(t).Stuck {
						require.Equal(t, lifecycle.Moved, found.Resolution)
						stuck = append(stuck, found.ID)
					}
				}
				require.ElementsMatch(t, c.moved, stuck)
				for kind, was := range before {
					now := must(s.Get(t.Context(), kind, was.ID))(t)
					require.Equal(t, was.Status, now.Status)
					require.Equal(t, was.Payload, now.Payload)
				}
				close(end)
				for _, h := range []*ovc.Handle{first, second} {
					_, err := h.Wait(t.Context())
					require.ErrorIs(t, err, lifecycle.ErrStale)
				}
				wait(t)(s.Do(t.Context(), c.waits.kind, c.waits.id, c.waits.action, &c.waits.options))
			})
		})
	}
}

// What is held up itself holds up what waits behind it.
func TestHeldUpByWhatIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := attached(t)
		heal := func() (stuck []string) {
			time.Sleep(ovc.StuckAfter + time.Second)
			for _, found := range must(s.SelfHeal(t.Context()))(t).Stuck {
				stuck = append(stuck, found.ID)
			}
			return stuck
		}
		end := make(chan struct{})
		first := must(s.Do(t.Context(), ovc.KindDisk, "e", ovc.Destroy, deaf(end)))(t)
		require.Equal(t, []string{"e"}, heal())
		second := must(s.Do(t.Context(), ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "e"}))(t)
		require.Equal(t, []string{"n", "e"}, heal())
		third := must(s.Do(t.Context(), ovc.KindVM, "n", ovc.Pause, nil))(t)
		require.Equal(t, []string{"n"}, heal())
		close(end)
		for _, h := range []*ovc.Handle{first, second, third} {
			_, err := h.Wait(t.Context())
			require.ErrorIs(t, err, lifecycle.ErrStale)
		}
		require.NoError(t, consistent(t.Context(), s))
	})
}

// What waits behind a migration, and what waits behind that, waits for its turn,
// also if somebody has put the object back by hand meanwhile.
func TestNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := attached(t)
		migration := must(s.Migrate(t.Context(), "m", &ovc.Options{Run: func(context.Context) error {
			time.Sleep(5 * ovc.StuckAfter)
			return nil
		}}))(t)
		first := must(s.Do(t.Context(), ovc.KindDisk, "d", ovc.Delete, nil))(t)
		must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Deleting, ovc.Assigned))(t)
		second := must(s.Do(t.Context(), ovc.KindDisk, "d", ovc.Destroy, nil))(t)
		for range 4 {
			time.Sleep(ovc.StuckAfter + time.Second)
			require.Empty(t, must(s.SelfHeal(t.Context()))(t).Stuck)
		}
		require.NoError(t, migration.Wait(t.Context()))
		_, err := first.Wait(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.Equal(t, ovc.Destroyed, wait(t)(second, nil).State)
	})
}

// A queue that a method does not leave goes on when somebody abandons it.
func TestAbandon(t *testing.T) {
	for name, healed := range map[string]bool{"before it is stuck": false, "put back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := attached(t)
				q := s.Queuer()
				require.False(t, q.Abandon(ovc.KindVM, "m"))
				require.False(t, q.Abandon("server", "m"))
				end := make(chan struct{})
				options := deaf(end)
				options.With = "d"
				hangs := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.DetachDisk, options))(t)
				why := queue.ErrAbandoned
				if healed {
					time.Sleep(ovc.StuckAfter + time.Second)
					require.Len(t, must(s.SelfHeal(t.Context()))(t).Stuck, 2)
					why = lifecycle.ErrStale
				}
				migration := must(s.Migrate(t.Context(), "n", nil))(t)
				require.NoError(t, migration.Wait(t.Context()), "others do not wait for it")
				require.True(t, q.Abandon(ovc.KindDisk, "d"))
				rec, err := hangs.Wait(t.Context())
				require.ErrorIs(t, err, why)
				if !healed {
					require.Equal(t, ovc.Running, rec.State)
				}
				require.Equal(t, ovc.Model{VM: "m"}, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).Payload)
				wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.Pause, nil))
				close(end)
				synctest.Wait()
				require.Equal(t, ovc.Paused, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
				require.Zero(t, q.Stats().Abandoned)
			})
		})
	}
}
