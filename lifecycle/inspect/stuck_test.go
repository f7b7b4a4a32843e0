package inspect_test

import (
	"context"
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
			To:     lifecycle.StoredRecord{Key: key, State: "creating", Origin: "flying", Sequence: 1, Operation: 1, Owner: "host-9", Epoch: 3},
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
		html := body(t, ask(page, "GET", "/objects?machine=vm&stuck=1"))
		require.Contains(t, html, "of epoch 3 is dead")
		require.NotContains(t, html, "epoch 0", "of which nothing is known here")
	})
}

// TestEndedStuckObject: the list leaves out an object that is no longer stuck when it is
// explained: its operation has ended, or is another one.
func TestEndedStuckObject(t *testing.T) {
	for name, end := range map[string]func(*vmManager) error{
		"ended": func(m *vmManager) error {
			_, err := m.Report(context.Background(), "vm-gone", 1, "created", "worker", nil)
			return err
		},
		"next": func(m *vmManager) error {
			_, err := m.Override(context.Background(), "vm-gone", "creating", "ann", "again", nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &ending{MemoryStore: lifecycle.NewMemoryStore()}
				m := vms(store, lifecycle.Config[string]{})
				for _, id := range []string{"vm-gone", "vm-late"} {
					_, err := m.Create(t.Context(), id, "create", "user", vm{}, nil)
					require.NoError(t, err)
				}
				page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
				require.NoError(t, err)
				time.Sleep(time.Hour)
				store.before = func() { require.NoError(t, end(m)) }
				doc := document[inspect.ObjectList](t, page, "/objects?machine=vm&stuck=1")
				require.Nil(t, store.before)
				require.Len(t, doc.Objects, 1)
				require.Equal(t, "vm-late", doc.Objects[0].ID)
			})
		})
	}
}

// TestManyStuckObjects: the picture shows that a state may have more stuck objects than one
// answer finds.
func TestManyStuckObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, _ := fleet(t, 2*lifecycle.MaxPage+2, 0)
		time.Sleep(time.Hour)
		require.Contains(t, body(t, ask(page, "GET", "/picture.dot?machine=vm")), `creating\n1001 (1000 or more stuck)"`)
	})
}

// bare is a store over a table without columns for the last change.
type bare struct{ *lifecycle.MemoryStore }

func (s bare) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, key)
	r.ChangedAt, r.Event, r.Actor, r.Reason = time.Time{}, "", "", ""
	return r, err
}

// TestNoLastChange: the page of an object whose last change is not known has no empty fact
// about it.
func TestNoLastChange(t *testing.T) {
	m := vms(bare{lifecycle.NewMemoryStore()}, lifecycle.Config[string]{})
	_, err := m.Create(t.Context(), "vm-1", "create", "user", vm{}, nil)
	require.NoError(t, err)
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
	require.NoError(t, err)
	html := body(t, ask(page, "GET", "/object?machine=vm&id=vm-1"))
	require.Contains(t, html, "</span> transitional</p>")
	require.NotContains(t, html, "Last change")
}
