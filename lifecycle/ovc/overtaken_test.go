package ovc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// hooked is a memory store in which something happens once somebody has read an
// object, and before that one gets to know it.
type hooked struct {
	*lifecycle.MemoryStore
	key   lifecycle.Key
	after func()
}

// on has something done after the next read of an object.
func (s *hooked) on(kind ovc.Kind, id string, do func()) {
	s.key, s.after = lifecycle.Key{Machine: kind.Machine().Name(), ID: id}, do
}

func (s *hooked) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, key)
	if do := s.after; do != nil && key == s.key {
		s.after = nil
		do()
	}
	return r, err
}

// attached makes a service with the machines m and n that run, a disk d at m, and
// one that is created.
func attached(t *testing.T) (*ovc.Service, *hooked) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	s := ovc.New(store, nil)
	running(t, s, "m")
	running(t, s, "n")
	for _, d := range []string{"d", "e"} {
		must(s.Add(t.Context(), ovc.KindDisk, d, ovc.Model{}))(t)
		wait(t)(s.Do(t.Context(), ovc.KindDisk, d, ovc.Create, nil))
	}
	wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "d"}))
	return s, store
}

// TestOvertaken: what was decided on a machine or a disk that somebody else moves
// meanwhile is refused, and changes nothing.
func TestOvertaken(t *testing.T) {
	for name, c := range map[string]struct {
		kind     ovc.Kind
		id       string
		action   ovc.Event
		meantime func(t *testing.T, s *ovc.Service)
		want     map[string]ovc.Model
	}{
		"a machine gets a disk while it is to be deleted": {
			ovc.KindVM, "m", ovc.Delete,
			func(t *testing.T, s *ovc.Service) {
				wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "e"}))
			},
			map[string]ovc.Model{"m": {Disks: []string{"d", "e"}}, "d": {VM: "m"}, "e": {VM: "m"}},
		},
		"a disk goes elsewhere while it is to be deleted": {
			ovc.KindDisk, "d", ovc.Delete,
			func(t *testing.T, s *ovc.Service) {
				wait(t)(s.Do(t.Context(), ovc.KindDisk, "d", ovc.Detach, nil))
				wait(t)(s.Do(t.Context(), ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "d"}))
			},
			map[string]ovc.Model{"m": {Disks: []string{}}, "n": {Disks: []string{"d"}}, "d": {VM: "n"}},
		},
		"a disk is attached while it is to be detached": {
			ovc.KindDisk, "e", ovc.Detach,
			func(t *testing.T, s *ovc.Service) {
				wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "e"}))
			},
			map[string]ovc.Model{"m": {Disks: []string{"d", "e"}}, "d": {VM: "m"}, "e": {VM: "m"}},
		},
		"a disk is attached while it is to be deleted": {
			ovc.KindDisk, "e", ovc.Delete,
			func(t *testing.T, s *ovc.Service) {
				wait(t)(s.Do(t.Context(), ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "e"}))
			},
			map[string]ovc.Model{"m": {Disks: []string{"d"}}, "n": {Disks: []string{"e"}}, "e": {VM: "n"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := attached(t)
			store.on(c.kind, c.id, func() { c.meantime(t, s) })
			_, err := s.Do(t.Context(), c.kind, c.id, c.action, nil)
			require.ErrorIs(t, err, ovc.ErrOtherAction)
			require.ErrorIs(t, err, lifecycle.ErrConflict)
			require.EqualError(t, err, "409 Conflict: Other action currently happening on "+string(c.kind)+" ID: "+c.id)
			for id, model := range c.want {
				kind := ovc.KindVM
				if id == "d" || id == "e" {
					kind = ovc.KindDisk
				}
				rec := must(s.Get(t.Context(), kind, id))(t)
				require.ElementsMatch(t, model.Disks, rec.Payload.Disks, id)
				require.Equal(t, model.VM, rec.Payload.VM, id)
			}
			require.NoError(t, consistent(t.Context(), s))
			wait(t)(s.Do(t.Context(), c.kind, c.id, c.action, nil))
		})
	}
}

// TestDetachedElsewhere: a disk that is detached by somebody who has seen it at
// another machine stays where it is.
func TestDetachedElsewhere(t *testing.T) {
	s, store := attached(t)
	store.on(ovc.KindDisk, "d", func() {
		wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.DetachDisk, &ovc.Options{With: "d"}))
		wait(t)(s.Do(t.Context(), ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "d"}))
	})
	_, err := s.Do(t.Context(), ovc.KindDisk, "d", ovc.Detach, nil)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.Equal(t, "n", must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).Payload.VM)
	require.NoError(t, consistent(t.Context(), s))
}

// TestUpdateStatusOvertaken: the compare-and-set is on what was read, also where
// the new state may follow the one that the object is in by now.
func TestUpdateStatusOvertaken(t *testing.T) {
	s, store := attached(t)
	store.on(ovc.KindVM, "n", func() { wait(t)(s.Do(t.Context(), ovc.KindVM, "n", ovc.Pause, nil)) })
	_, err := s.UpdateStatus(t.Context(), ovc.KindVM, "n", ovc.Running, ovc.Stopping)
	require.ErrorIs(t, err, ovc.ErrOtherAction)
	require.Equal(t, ovc.Paused, must(s.Get(t.Context(), ovc.KindVM, "n"))(t).State)
}

// TestMigrationOfNothing: a machine that is gone when its turn comes is not
// migrated.
func TestMigrationOfNothing(t *testing.T) {
	s, store := attached(t)
	end := make(chan struct{})
	store.on(ovc.KindVM, "n", func() {
		// Accepted after the migration was found to make sense, and before it has
		// its place.
		must(s.Do(t.Context(), ovc.KindVM, "n", ovc.Destroy, &ovc.Options{Run: func(context.Context) error {
			<-end
			return nil
		}}))(t)
	})
	ticket := must(s.Migrate(t.Context(), "n", nil))(t)
	close(end)
	require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrSkipped)
	require.Equal(t, queue.Skipped, ticket.Outcome())
	require.NoError(t, s.Queuer().Terminate(t.Context()))
	require.Equal(t, ovc.Destroyed, must(s.Get(t.Context(), ovc.KindVM, "n"))(t).State)
}

// listed is a memory store in which something happens the first time that stuck disks
// are listed: before, and once they are.
type listed struct {
	*lifecycle.MemoryStore
	before, after func()
	done          bool
}

func (s *listed) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if !q.Overdue || q.Machine != ovc.Disk.Name() || s.done {
		return s.MemoryStore.List(ctx, q)
	}
	s.done = true
	s.before()
	found, err := s.MemoryStore.List(ctx, q)
	s.after()
	return found, err
}

// TestHealedByItself: a machine and its disk are stuck in one action. The sweep
// takes the machine away from it, and the action itself puts the disk back, before
// the sweep comes to it or while it is there. Both are reported all the same, once.
func TestHealedByItself(t *testing.T) {
	for name, late := range map[string]bool{"before the sweep": false, "under the sweep": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := make(chan struct{})
				store := &listed{MemoryStore: lifecycle.NewMemoryStore(), before: func() {}, after: func() {}}
				s := ovc.New(store, nil)
				running(t, s, "m")
				must(s.Add(t.Context(), ovc.KindDisk, "d", ovc.Model{}))(t)
				wait(t)(s.Do(t.Context(), ovc.KindDisk, "d", ovc.Create, nil))
				before := must(s.Get(t.Context(), ovc.KindDisk, "d"))(t)
				h := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "d", Run: func(ctx context.Context) error {
					<-ctx.Done()
					<-ends
					return ctx.Err()
				}}))(t)
				begun := must(s.Get(t.Context(), ovc.KindDisk, "d"))(t)
				time.Sleep(ovc.StuckAfter + time.Second)
				end := func() { close(ends); synctest.Wait() }
				if late {
					store.after = end
				} else {
					store.before = end
				}
				healed := must(s.SelfHeal(t.Context()))(t)
				require.Len(t, healed.Stuck, 2)
				require.Equal(t, "m", healed.Stuck[0].ID)
				require.Equal(t, lifecycle.SweepResult{
					Key: lifecycle.Key{Machine: ovc.Disk.Name(), ID: "d"}, Resolution: lifecycle.Moved,
					From: "ATTACHING", To: "CREATED", Event: "stuck", Actor: fsm.Sweeper, Operation: begun.Operation,
				}, healed.Stuck[1])
				_, err := h.Wait(t.Context())
				require.ErrorIs(t, err, lifecycle.ErrStale)
				after := must(s.Get(t.Context(), ovc.KindDisk, "d"))(t)
				require.Equal(t, before.Status, after.Status)
				require.NoError(t, consistent(t.Context(), s))
			})
		})
	}
}

// TestNotHealed: what ends by itself while others heal is not reported.
func TestNotHealed(t *testing.T) {
	for name, outcome := range map[string]error{"done": nil, "failed": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := make(chan struct{})
				store := &listed{MemoryStore: lifecycle.NewMemoryStore(), after: func() {}}
				s := ovc.New(store, nil)
				running(t, s, "m")
				store.before = func() { close(ends); synctest.Wait() }
				must(s.Add(t.Context(), ovc.KindDisk, "d", ovc.Model{}))(t)
				h := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.AddDisk, &ovc.Options{With: "d", Run: func(context.Context) error {
					<-ends
					return outcome
				}}))(t)
				require.Empty(t, must(s.SelfHeal(t.Context()))(t).Stuck)
				_, err := h.Wait(t.Context())
				require.ErrorIs(t, err, outcome)
			})
		})
	}
}

// TestByHand: a disk that was detached by changes of its status is at no machine,
// and goes with the one that it is attached to afterwards.
func TestByHand(t *testing.T) {
	s, _ := attached(t)
	must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Assigned, ovc.Detaching))(t)
	// Back again, and everything is as it was.
	back := must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Detaching, ovc.Assigned))(t)
	require.Equal(t, "m", back.Payload.VM)
	must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Assigned, ovc.Detaching))(t)
	created := must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Detaching, ovc.Created))(t)
	require.Empty(t, created.Payload.VM)
	wait(t)(s.Do(t.Context(), ovc.KindDisk, "d", ovc.Attach, nil)) // to something that nobody knows of
	wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.Delete, nil))
	require.Equal(t, ovc.Assigned, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
	wait(t)(s.Do(t.Context(), ovc.KindDisk, "d", ovc.Detach, nil))
	wait(t)(s.Do(t.Context(), ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "d"}))
	wait(t)(s.Do(t.Context(), ovc.KindVM, "n", ovc.Delete, nil))
	require.Equal(t, ovc.ToBeDeleted, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
}

// TestAttachedElsewhere: a machine that is deleted takes no disk along that is
// attached to another one, nor is it in its way.
func TestAttachedElsewhere(t *testing.T) {
	for _, action := range []ovc.Event{ovc.Delete, ovc.Destroy} {
		s, _ := attached(t)
		must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Assigned, ovc.Detaching))(t)
		must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Detaching, ovc.Created))(t)
		end := make(chan struct{})
		options := deaf(end)
		options.With = "d"
		h := must(s.Do(t.Context(), ovc.KindVM, "n", ovc.AttachDisk, options))(t)
		wait(t)(s.Do(t.Context(), ovc.KindVM, "m", action, nil))
		close(end)
		wait(t)(h, nil)
		require.Equal(t, ovc.Assigned, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
		require.Equal(t, "n", must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).Payload.VM)
	}
}

// TestExpiresInTurn: a disk in the recycle bin that is still attached is destroyed
// in the queue of its machine, unless that one is gone, and leaves it no queue.
func TestExpiresInTurn(t *testing.T) {
	for name, gone := range map[string]bool{"migrated": false, "destroyed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := attached(t)
				wait(t)(s.Do(t.Context(), ovc.KindDisk, "d", ovc.Delete, nil))
				time.Sleep(ovc.Retention + time.Second)
				var migration *queue.Ticket[lifecycle.Key]
				if gone {
					wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.Destroy, nil))
				} else {
					migration = must(s.Migrate(t.Context(), "m", &ovc.Options{Run: func(context.Context) error {
						time.Sleep(time.Hour)
						return nil
					}}))(t)
				}
				h := must(s.SelfHeal(t.Context()))(t)
				require.Len(t, h.Expired, 1)
				if gone {
					require.False(t, s.Queuer().Exists(ovc.KindVM, "m"))
				} else {
					synctest.Wait()
					require.Len(t, s.Queuer().Actions(ovc.KindVM, "m"), 2)
					require.Equal(t, queue.Waiting, s.Queuer().Actions(ovc.KindDisk, "d")[0].State)
				}
				wait(t)(h.Expired[0], nil)
				if migration != nil {
					require.Equal(t, queue.OK, migration.Outcome())
				}
				require.Equal(t, ovc.Destroyed, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
				require.False(t, s.Queuer().Exists(ovc.KindDisk, "d"))
			})
		})
	}
}
