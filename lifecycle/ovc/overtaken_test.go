package ovc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// reading is the read of an object.
func reading(kind ovc.Kind, id string) scripttest.Call {
	return scripttest.Call{Method: "Get", Machine: kind.Key(id).Machine, ID: id}
}

// attached returns a service with the running machines m and n, a disk d that is attached to
// m, and a created disk e.
func attached(t *testing.T) (*ovc.Service, *scripttest.Store) {
	store := scripttest.NewStore()
	s := ovc.Must(store, nil)
	running(t, s, "m")
	running(t, s, "n")
	for _, d := range []string{"d", "e"} {
		add(t, s, ovc.KindDisk, d, ovc.Model{})
		perform(t, s, ovc.KindDisk, d, ovc.Create, nil)
	}
	perform(t, s, ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "d"})
	return s, store
}

// A request is refused if another writer has moved the machine or the disk that it was
// decided on. It changes nothing.
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
				perform(t, s, ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "e"})
			},
			map[string]ovc.Model{"m": {Disks: []string{"d", "e"}}, "d": {VM: "m"}, "e": {VM: "m"}},
		},
		"a disk goes elsewhere while it is to be deleted": {
			ovc.KindDisk, "d", ovc.Delete,
			func(t *testing.T, s *ovc.Service) {
				perform(t, s, ovc.KindDisk, "d", ovc.Detach, nil)
				perform(t, s, ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "d"})
			},
			map[string]ovc.Model{"m": {Disks: []string{}}, "n": {Disks: []string{"d"}}, "d": {VM: "n"}},
		},
		"a disk is attached while it is to be detached": {
			ovc.KindDisk, "e", ovc.Detach,
			func(t *testing.T, s *ovc.Service) {
				perform(t, s, ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "e"})
			},
			map[string]ovc.Model{"m": {Disks: []string{"d", "e"}}, "d": {VM: "m"}, "e": {VM: "m"}},
		},
		"a disk is attached while it is to be deleted": {
			ovc.KindDisk, "e", ovc.Delete,
			func(t *testing.T, s *ovc.Service) {
				perform(t, s, ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "e"})
			},
			map[string]ovc.Model{"m": {Disks: []string{"d"}}, "n": {Disks: []string{"e"}}, "e": {VM: "n"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := attached(t)
			store.OnceAfter(reading(c.kind, c.id), func() { c.meantime(t, s) })
			_, err := s.Do(t.Context(), c.kind, c.id, c.action, nil)
			require.ErrorIs(t, err, ovc.ErrOtherAction)
			require.ErrorIs(t, err, lifecycle.ErrConflict)
			require.EqualError(t, err, "409 Conflict: Other action currently happening on "+string(c.kind)+" ID: "+c.id)
			for id, model := range c.want {
				kind := ovc.KindVM
				if id == "d" || id == "e" {
					kind = ovc.KindDisk
				}
				rec := get(t, s, kind, id)
				require.ElementsMatch(t, model.Disks, rec.Payload.Disks, id)
				require.Equal(t, model.VM, rec.Payload.VM, id)
			}
			require.NoError(t, consistent(t.Context(), s))
			perform(t, s, c.kind, c.id, c.action, nil)
		})
	}
}

// A disk that was attached to another machine meanwhile is not detached.
func TestDetachedElsewhere(t *testing.T) {
	s, store := attached(t)
	store.OnceAfter(reading(ovc.KindDisk, "d"), func() {
		perform(t, s, ovc.KindVM, "m", ovc.DetachDisk, &ovc.Options{With: "d"})
		perform(t, s, ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "d"})
	})
	_, err := s.Do(t.Context(), ovc.KindDisk, "d", ovc.Detach, nil)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.Equal(t, "n", get(t, s, ovc.KindDisk, "d").Payload.VM)
	require.NoError(t, consistent(t.Context(), s))
}

// UpdateStatus compares the revision, also if the table permits the new state.
func TestUpdateStatusOvertaken(t *testing.T) {
	s, store := attached(t)
	store.OnceAfter(reading(ovc.KindVM, "n"), func() { perform(t, s, ovc.KindVM, "n", ovc.Pause, nil) })
	_, err := s.UpdateStatus(t.Context(), ovc.KindVM, "n", ovc.Running, ovc.Stopping)
	require.ErrorIs(t, err, ovc.ErrOtherAction)
	require.Equal(t, ovc.Paused, get(t, s, ovc.KindVM, "n").State)
}

// A machine that does not exist when its turn comes is not migrated.
func TestMigrationOfNothing(t *testing.T) {
	s, store := attached(t)
	end := make(chan struct{})
	store.OnceAfter(reading(ovc.KindVM, "n"), func() {
		// Accepted after the migration has read the machine, and before it is queued.
		begin(t, s, ovc.KindVM, "n", ovc.Destroy, &ovc.Options{Run: func(context.Context) error {
			<-end
			return nil
		}})
	})
	ticket := migrate(t, s, "n", nil)
	close(end)
	require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrSkipped)
	require.Equal(t, queue.Skipped, ticket.Outcome())
	require.NoError(t, s.Queuer().Terminate(t.Context()))
	require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindVM, "n").State)
}

// A disk that was detached by changes of its status has no machine. It is deleted with the
// machine that it is attached to afterwards.
func TestByHand(t *testing.T) {
	s, _ := attached(t)
	update(t, s, ovc.KindDisk, "d", ovc.Assigned, ovc.Detaching)
	// The origin restores the model.
	back := update(t, s, ovc.KindDisk, "d", ovc.Detaching, ovc.Assigned)
	require.Equal(t, "m", back.Payload.VM)
	update(t, s, ovc.KindDisk, "d", ovc.Assigned, ovc.Detaching)
	created := update(t, s, ovc.KindDisk, "d", ovc.Detaching, ovc.Created)
	require.Empty(t, created.Payload.VM)
	perform(t, s, ovc.KindDisk, "d", ovc.Attach, nil) // without a machine
	perform(t, s, ovc.KindVM, "m", ovc.Delete, nil)
	require.Equal(t, ovc.Assigned, get(t, s, ovc.KindDisk, "d").State)
	perform(t, s, ovc.KindDisk, "d", ovc.Detach, nil)
	perform(t, s, ovc.KindVM, "n", ovc.AttachDisk, &ovc.Options{With: "d"})
	perform(t, s, ovc.KindVM, "n", ovc.Delete, nil)
	require.Equal(t, ovc.ToBeDeleted, get(t, s, ovc.KindDisk, "d").State)
}

// A machine is deleted without a disk that is attached to another machine.
func TestAttachedElsewhere(t *testing.T) {
	for _, action := range []ovc.Event{ovc.Delete, ovc.Destroy} {
		t.Run(string(action), func(t *testing.T) {
			s, _ := attached(t)
			update(t, s, ovc.KindDisk, "d", ovc.Assigned, ovc.Detaching)
			update(t, s, ovc.KindDisk, "d", ovc.Detaching, ovc.Created)
			end := make(chan struct{})
			options := deaf(end)
			options.With = "d"
			ticket := begin(t, s, ovc.KindVM, "n", ovc.AttachDisk, options)
			perform(t, s, ovc.KindVM, "m", action, nil)
			close(end)
			outcome(t, ticket)
			require.Equal(t, ovc.Assigned, get(t, s, ovc.KindDisk, "d").State)
			require.Equal(t, "n", get(t, s, ovc.KindDisk, "d").Payload.VM)
		})
	}
}

// An attached disk in the recycle bin is destroyed in the queue of its machine, unless the
// machine is destroyed.
func TestExpiresInTurn(t *testing.T) {
	for name, gone := range map[string]bool{"migrated": false, "destroyed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := attached(t)
				perform(t, s, ovc.KindDisk, "d", ovc.Delete, nil)
				time.Sleep(ovc.Retention + time.Second)
				var migration *queue.Ticket[lifecycle.Key]
				if gone {
					perform(t, s, ovc.KindVM, "m", ovc.Destroy, nil)
				} else {
					migration = migrate(t, s, "m", &ovc.Options{Run: func(context.Context) error {
						time.Sleep(time.Hour)
						return nil
					}})
				}
				h := heal(t, s)
				require.Len(t, h.Expired, 1)
				if gone {
					require.Empty(t, s.Queuer().Inspect(ovc.KindVM.Key("m")))
				} else {
					synctest.Wait()
					require.Len(t, s.Queuer().Inspect(ovc.KindVM.Key("m")), 2)
					require.Equal(t, queue.Waiting, s.Queuer().Inspect(ovc.KindDisk.Key("d"))[0].State)
				}
				outcome(t, h.Expired[0])
				if migration != nil {
					require.Equal(t, queue.OK, migration.Outcome())
				}
				require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindDisk, "d").State)
				require.Empty(t, s.Queuer().Inspect(ovc.KindDisk.Key("d")))
			})
		})
	}
}

// A disk that was detached meanwhile, by a change of its status, is not destroyed with its
// machine.
func TestDetachedBeforeTheMachineIsDestroyed(t *testing.T) {
	s, store := attached(t)
	store.OnceAfter(reading(ovc.KindDisk, "d"), func() {
		for _, move := range [][2]ovc.State{{ovc.Assigned, ovc.Detaching}, {ovc.Detaching, ovc.Created}} {
			_, err := s.UpdateStatus(t.Context(), ovc.KindDisk, "d", move[0], move[1])
			require.NoError(t, err)
		}
	})
	_, err := s.Do(t.Context(), ovc.KindVM, "m", ovc.Destroy, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	perform(t, s, ovc.KindVM, "m", ovc.Destroy, nil)
	require.Equal(t, ovc.Created, get(t, s, ovc.KindDisk, "d").State)
}
