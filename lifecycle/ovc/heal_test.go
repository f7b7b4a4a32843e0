package ovc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// bin is a store that calls a function after it has listed objects that are overdue.
type bin struct {
	*lifecycle.MemoryStore
	after func()
	get   error // of machines; nil: none

	before func() error // before a read of a machine; the error is that of the read
}

func (s *bin) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	found, err := s.MemoryStore.List(ctx, q)
	if s.after != nil && q.Overdue && len(found) > 0 && found[0].State == string(ovc.Deleted) {
		after := s.after
		s.after = nil
		after()
	}
	return found, err
}

func (s *bin) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.get != nil && key.Machine == ovc.KindVM.Machine().Name() {
		return lifecycle.StoredRecord{}, s.get
	}
	if s.before != nil && key.Machine == ovc.KindVM.Machine().Name() {
		if err := s.before(); err != nil {
			return lifecycle.StoredRecord{}, err
		}
	}
	return s.MemoryStore.Get(ctx, key)
}

// A disk in the recycle bin was added with a machine that does not exist. It is destroyed.
func TestExpiresWithoutItsMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.Must(lifecycle.NewMemoryStore(), nil)
		_, err := s.Add(t.Context(), ovc.KindDisk, "d", ovc.ToBeDeleted, ovc.Model{VM: "missing"})
		require.NoError(t, err)
		time.Sleep(ovc.Retention + time.Second)
		h := heal(t, s)
		require.Len(t, h.Expired, 1)
		require.Equal(t, ovc.Destroyed, outcome(t, h.Expired[0]).State)
	})
}

// A user restores a cloudspace while SelfHeal looks at it, or another process destroys it first.
// SelfHeal leaves it alone.
func TestSelfHealIsOvertaken(t *testing.T) {
	for name, want := range map[string]ovc.State{"restored": ovc.Deployed, "being restored": ovc.Restoring, "destroyed": ovc.Destroyed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &bin{MemoryStore: lifecycle.NewMemoryStore()}
				s := ovc.Must(store, nil)
				add(t, s, ovc.KindCloudspace, "i", ovc.Model{})
				perform(t, s, ovc.KindCloudspace, "i", ovc.Deploy, nil)
				perform(t, s, ovc.KindCloudspace, "i", ovc.Delete, nil)
				time.Sleep(ovc.Retention + time.Second)
				end := make(chan struct{})
				store.after = func() {
					switch name {
					case "restored":
						perform(t, s, ovc.KindCloudspace, "i", ovc.Restore, nil)
					case "being restored":
						begin(t, s, ovc.KindCloudspace, "i", ovc.Restore, deaf(end))
					default:
						outcome(t, heal(t, s).Expired[0])
					}
				}
				require.Empty(t, heal(t, s).Expired)
				require.Nil(t, store.after)
				require.Equal(t, want, get(t, s, ovc.KindCloudspace, "i").State)
				close(end)
			})
		})
	}
}

// SelfHeal returns what has kept it from a destruction. A later call destroys the disk.
func TestSelfHealFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bin{MemoryStore: lifecycle.NewMemoryStore()}
		s := ovc.Must(store, nil)
		running(t, s, "m")
		add(t, s, ovc.KindDisk, "d", ovc.Model{})
		perform(t, s, ovc.KindDisk, "d", ovc.Create, nil)
		perform(t, s, ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "d"})
		perform(t, s, ovc.KindVM, "m", ovc.Delete, nil)
		time.Sleep(ovc.Retention + time.Second)
		store.get = errors.New("the store is down")
		h, err := s.SelfHeal(t.Context())
		require.ErrorIs(t, err, store.get)
		require.Empty(t, h.Expired)
		require.Equal(t, ovc.ToBeDeleted, get(t, s, ovc.KindDisk, "d").State)

		store.get = nil
		closed := ovc.Must(store, nil)
		require.NoError(t, closed.Close(t.Context()))
		h, err = closed.SelfHeal(t.Context())
		require.ErrorIs(t, err, queue.ErrTerminated)
		require.Empty(t, h.Expired)
		require.Equal(t, ovc.ToBeDeleted, get(t, s, ovc.KindDisk, "d").State)

		for _, ticket := range heal(t, s).Expired {
			require.Equal(t, ovc.Destroyed, outcome(t, ticket).State)
		}
		require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindDisk, "d").State)
	})
}
