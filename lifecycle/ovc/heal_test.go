package ovc_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

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
				store := scripttest.NewStore()
				s := ovc.Must(store, nil)
				add(t, s, ovc.KindCloudspace, "i", ovc.Model{})
				perform(t, s, ovc.KindCloudspace, "i", ovc.Deploy, nil)
				perform(t, s, ovc.KindCloudspace, "i", ovc.Delete, nil)
				time.Sleep(ovc.Retention + time.Second)
				end := make(chan struct{})
				overtaken := store.OnceAfter(scripttest.Call{Method: "List", State: string(ovc.Deleted)}, func() {
					switch name {
					case "restored":
						perform(t, s, ovc.KindCloudspace, "i", ovc.Restore, nil)
					case "being restored":
						begin(t, s, ovc.KindCloudspace, "i", ovc.Restore, deaf(end))
					default:
						outcome(t, heal(t, s).Expired[0])
					}
				})
				require.Empty(t, heal(t, s).Expired)
				require.True(t, overtaken())
				require.Equal(t, want, get(t, s, ovc.KindCloudspace, "i").State)
				close(end)
			})
		})
	}
}

// SelfHeal returns what has kept it from a destruction. A later call destroys the disk.
func TestSelfHealFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		s := ovc.Must(store, nil)
		running(t, s, "m")
		add(t, s, ovc.KindDisk, "d", ovc.Model{})
		perform(t, s, ovc.KindDisk, "d", ovc.Create, nil)
		perform(t, s, ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "d"})
		perform(t, s, ovc.KindVM, "m", ovc.Delete, nil)
		time.Sleep(ovc.Retention + time.Second)
		down := errors.New("the store is down")
		store.Refuse(scripttest.Call{Method: "Get", Machine: ovc.VM.Name()}, down)
		h, err := s.SelfHeal(t.Context())
		require.ErrorIs(t, err, down)
		require.Empty(t, h.Expired)
		require.Equal(t, ovc.ToBeDeleted, get(t, s, ovc.KindDisk, "d").State)

		store.Before(nil)
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
