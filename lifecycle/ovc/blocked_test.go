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

// deaf returns a method that ignores its context.
func deaf(until <-chan struct{}) *ovc.Options {
	return &ovc.Options{Run: func(context.Context) error { <-until; return nil }}
}

// A canceled method that does not end keeps the object's queue. An action that waits behind it
// is stuck as well: it is reported, and its object returns to its origin.
func TestBlockedActionIsStuck(t *testing.T) {
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
					ovc.KindVM: get(t, s, ovc.KindVM, "m"), ovc.KindDisk: get(t, s, ovc.KindDisk, "d"),
				}
				end := make(chan struct{})
				first := begin(t, s, c.hangs.kind, c.hangs.id, c.hangs.action, deaf(end))
				time.Sleep(ovc.StuckAfter + time.Second)
				require.NotEmpty(t, heal(t, s).Stuck)
				second := begin(t, s, c.waits.kind, c.waits.id, c.waits.action, &c.waits.options)
				var stuck []string
				for range 7 {
					time.Sleep(5 * time.Minute)
					for _, found := range heal(t, s).Stuck {
						require.Equal(t, lifecycle.Moved, found.Resolution)
						stuck = append(stuck, found.ID)
					}
				}
				require.ElementsMatch(t, c.moved, stuck)
				for kind, was := range before {
					now := get(t, s, kind, was.ID)
					require.Equal(t, was.Status, now.Status)
					require.Equal(t, was.Payload, now.Payload)
				}
				close(end)
				for _, ticket := range []*ovc.Ticket{first, second} {
					_, err := ticket.Wait(t.Context())
					require.ErrorIs(t, err, lifecycle.ErrStale)
				}
				perform(t, s, c.waits.kind, c.waits.id, c.waits.action, &c.waits.options)
			})
		})
	}
}

// A blocked action blocks the actions behind it.
func TestBlockedByBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := attached(t)
		heal := func() (stuck []string) {
			time.Sleep(ovc.StuckAfter + time.Second)
			for _, found := range heal(t, s).Stuck {
				stuck = append(stuck, found.ID)
			}
			return stuck
		}
		end := make(chan struct{})
		first := begin(t, s, ovc.KindDisk, "e", ovc.Destroy, deaf(end))
		require.Equal(t, []string{"e"}, heal())
		second := begin(t, s, ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "e"})
		require.Equal(t, []string{"n", "e"}, heal())
		third := begin(t, s, ovc.KindVM, "n", ovc.Pause, nil)
		require.Equal(t, []string{"n"}, heal())
		close(end)
		for _, ticket := range []*ovc.Ticket{first, second, third} {
			_, err := ticket.Wait(t.Context())
			require.ErrorIs(t, err, lifecycle.ErrStale)
		}
		require.NoError(t, consistent(t.Context(), s))
	})
}

// An action that waits behind a migration is not stuck, nor are the actions behind it, also
// if its object was moved back by hand.
func TestWaitsForMigration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := attached(t)
		migration := migrate(t, s, "m", &ovc.Options{Run: func(context.Context) error {
			time.Sleep(5 * ovc.StuckAfter)
			return nil
		}})
		first := begin(t, s, ovc.KindDisk, "d", ovc.Delete, nil)
		update(t, s, ovc.KindDisk, "d", ovc.Deleting, ovc.Assigned)
		time.Sleep(ovc.StuckAfter / 2)
		require.Empty(t, heal(t, s).Stuck)
		second := begin(t, s, ovc.KindDisk, "d", ovc.Destroy, nil)
		for range 4 {
			time.Sleep(ovc.StuckAfter + time.Second)
			require.Empty(t, heal(t, s).Stuck)
		}
		require.NoError(t, migration.Wait(t.Context()))
		_, err := first.Wait(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.Equal(t, ovc.Destroyed, outcome(t, second).State)
	})
}

// A method hangs, and another action waits behind it. That does not extend the deadline of
// the first one.
func TestHangsBeforeAnother(t *testing.T) {
	for name, migration := range map[string]bool{"the disk": false, "a migration": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, store := attached(t)
				end := make(chan struct{})
				hang := func() { begin(t, s, ovc.KindVM, "m", ovc.Reboot, deaf(end)) }
				if migration {
					store.OnceAfter(reading(ovc.KindVM, "m"), hang)
					migrate(t, s, "m", nil)
				} else {
					hang()
					begin(t, s, ovc.KindDisk, "d", ovc.Delete, nil)
				}
				for range 7 {
					time.Sleep(5 * time.Minute)
					heal(t, s)
				}
				require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
				close(end)
			})
		})
	}
}

// Abandon releases the queue of a method that does not end.
func TestAbandon(t *testing.T) {
	for name, healed := range map[string]bool{"before it is stuck": false, "put back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := attached(t)
				q := s.Queuer()
				require.False(t, q.Abandon(ovc.KindVM.Key("m")))
				end := make(chan struct{})
				options := deaf(end)
				options.With = "d"
				hangs := begin(t, s, ovc.KindVM, "m", ovc.DetachDisk, options)
				why := queue.ErrAbandoned
				if healed {
					time.Sleep(ovc.StuckAfter + time.Second)
					require.Len(t, heal(t, s).Stuck, 2)
					why = lifecycle.ErrStale
				}
				migration := migrate(t, s, "n", nil)
				require.NoError(t, migration.Wait(t.Context()), "other objects do not wait")
				require.True(t, q.Abandon(ovc.KindDisk.Key("d")))
				rec, err := hangs.Wait(t.Context())
				require.ErrorIs(t, err, why)
				if !healed {
					require.Equal(t, ovc.Running, rec.State)
				}
				require.Equal(t, ovc.Model{VM: "m"}, get(t, s, ovc.KindDisk, "d").Payload)
				perform(t, s, ovc.KindVM, "m", ovc.Pause, nil)
				close(end)
				synctest.Wait()
				require.Equal(t, ovc.Paused, get(t, s, ovc.KindVM, "m").State)
				require.Zero(t, q.Stats().Abandoned)
			})
		})
	}
}

// A program has actions of its own in the queues, under keys that belong to no object. Self
// healing leaves them.
func TestHealLeavesOtherKeys(t *testing.T) {
	for _, machine := range []string{"backup", "vm"} {
		synctest.Test(t, func(t *testing.T) {
			s := ovc.Must(lifecycle.NewMemoryStore(), nil)
			end := make(chan struct{})
			for range 2 { // the second one waits for the first one
				_, err := s.Queuer().Submit(t.Context(), lifecycle.Key{Machine: machine, ID: "x"}, &queue.Action{
					Run: func(context.Context) error { <-end; return nil },
				})
				require.NoError(t, err)
			}
			time.Sleep(ovc.StuckAfter / 2)
			require.Empty(t, heal(t, s))
			close(end)
		})
	}
}
