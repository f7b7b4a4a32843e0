package inspect_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// ending is a store that calls a function once before it reads an object.
type ending struct {
	*lifecycle.MemoryStore
	before func()
}

func (s *ending) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if before := s.before; before != nil && key.ID == "vm-gone" {
		s.before = nil
		before()
	}
	return s.MemoryStore.Get(ctx, key)
}

// TestOddStuckObjects: the page of a machine has a stuck object that it cannot read, with the
// problem, and leaves out one that is removed before it is explained.
func TestOddStuckObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), &ending{MemoryStore: lifecycle.NewMemoryStore()}
		m := vms(store, lifecycle.Config[string]{})
		_, err := m.Create(ctx, "vm-gone", "create", "user", vm{}, nil)
		require.NoError(t, err)
		key := lifecycle.Key{Machine: "vm", ID: "vm-odd"}
		absent, err := store.Get(ctx, key)
		require.NoError(t, err)
		require.NoError(t, store.Commit(ctx, &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
			To:     lifecycle.StoredRecord{Key: key, State: "creating", Origin: "flying", Sequence: 1, Operation: 1},
			Expect: absent.Revision, Timeout: time.Minute,
		}}}))
		page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		store.before = func() {
			_, err := m.Override(ctx, "vm-gone", "absent", "operator", "not needed", nil)
			require.NoError(t, err)
		}
		doc := document[inspect.MachinePage](t, page, "/machine?machine=vm")
		require.Nil(t, store.before)
		require.Len(t, doc.StuckObjects, 1)
		require.Equal(t, "vm-odd", doc.StuckObjects[0].ID)
		require.Empty(t, doc.StuckObjects[0].State)
		require.Equal(t, lifecycle.Code(lifecycle.ErrForeign), doc.StuckObjects[0].Problem.Code)
	})
}

// gone is a client that has left after its first bytes.
type gone struct {
	*recorder
	writes int
}

func (g *gone) Write(data []byte) (int, error) {
	if g.writes++; g.writes > 1 {
		return 0, errors.New("the connection is reset")
	}
	return g.recorder.Write(data)
}

// TestEventsClientGone: a stream ends when it cannot be written, and gives back its place.
func TestEventsClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, err := inspect.New(nil)
		require.NoError(t, err)
		for range 101 { // one more than may be open
			client := &gone{recorder: &recorder{header: map[string][]string{}}}
			page.ServeHTTP(client, httptest.NewRequest("GET", "/events", nil))
			require.Equal(t, ": watching\n\n", client.String())
			require.Equal(t, 2, client.writes)
		}
	})
}

// slowList is a store whose lists of VMs wait.
type slowList struct {
	*lifecycle.MemoryStore
	end chan struct{}
}

func (s slowList) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if q.Machine == "vm" {
		<-s.end
	}
	return s.MemoryStore.List(ctx, q)
}

// TestLeaveSharedReading: a client that leaves does not wait for the reading of another one.
func TestLeaveSharedReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowList{lifecycle.NewMemoryStore(), make(chan struct{})}
		page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(vms(store, lifecycle.Config[string]{}), nil)}})
		require.NoError(t, err)
		first := make(chan int)
		go func() { first <- ask(page, "GET", "/", "Accept", "application/json").StatusCode }()
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		second := make(chan struct{})
		go func() {
			page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?format=json", nil).WithContext(ctx))
			close(second)
		}()
		synctest.Wait()
		leave()
		<-second
		close(store.end)
		require.Equal(t, 200, <-first)
	})
}
