package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

func ifMatch(value string) *lifecycle.Change[size] { return &lifecycle.Change[size]{IfMatch: value} }

// extend extends the deadline of a VM, as a heartbeat of its work does.
func extend(t *testing.T, store lifecycle.Store, id string) {
	t.Helper()
	r := storedAt(t, store, lifecycle.Key{Machine: "vm", ID: id})
	require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{
		{Expect: r.Revision, From: r.State, FromOrigin: r.Origin, To: r, Timeout: time.Hour, MetadataOnly: true},
	}}))
}

// TestETag: every change has an ETag of its own, and a longer deadline has none.
func TestETag(t *testing.T) {
	m, store := vms(t)
	created := create(t, m, "a", "create", user, size{N: 1})
	require.Regexp(t, `^"1-[0-9a-f]{16}"$`, created.ETag)
	extend(t, store.MemoryStore, "a")
	later := get(t, m, "a")
	require.NotEqual(t, created.Revision, later.Revision)
	require.Equal(t, created.ETag, later.ETag)

	for _, value := range []string{"*", later.ETag, ` "x" , ` + later.ETag, `"x,y",` + later.ETag} {
		before := get(t, m, "a").ETag
		_, err := m.Fire(t.Context(), "a", "progress", agent, ifMatch(value))
		if value != "*" && before != later.ETag {
			require.ErrorIs(t, err, lifecycle.ErrRevision, value)
			require.Equal(t, 412, lifecycle.HTTPStatus(err))
			require.Equal(t, before, get(t, m, "a").ETag)
			continue
		}
		require.NoError(t, err, value)
		require.NotEqual(t, before, get(t, m, "a").ETag)
	}

	present := get(t, m, "a").ETag
	for _, value := range []string{"W/" + present, `"x"`, `"x", "y"`, `"x","y"`, `"x,y"`, `"x", W/"y,"`, ` , "x",,"y" ,`, `","`} {
		_, err := m.Fire(t.Context(), "a", "progress", agent, ifMatch(value))
		require.ErrorIs(t, err, lifecycle.ErrRevision, value)
		require.ErrorContains(t, err, `conflict: vm "a" is Creating with ETag `+present+", and If-Match is "+value)
	}
	for _, value := range []string{"x", `"x`, `"x" "y"`, `"x""y"`, `"x", y`, `"x", *`, `x"`, "W/x", `w/"x"`, " ", ",", "*, *"} {
		_, err := m.Fire(t.Context(), "a", "progress", agent, ifMatch(value))
		require.ErrorIs(t, err, lifecycle.ErrInvalid, value)
	}
	_, err := m.Create(t.Context(), "b", "create", user, size{}, ifMatch("*"))
	require.ErrorIs(t, err, lifecycle.ErrRevision, "there is no object yet")
	require.ErrorContains(t, err, `conflict: vm "b" is absent, and If-Match is *`)
	_, err = m.Fire(t.Context(), "a", "progress", agent, &lifecycle.Change[size]{IfMatch: present, Expect: "1"})
	require.ErrorContains(t, err, `vm "a" is expected at revision "1" and is Creating at`)
	for _, list := range []string{`%s, "x"`, `"x,y",%s`, `, %s, W/"z"`} {
		_, err := m.Fire(t.Context(), "a", "progress", agent, ifMatch(fmt.Sprintf(list, get(t, m, "a").ETag)))
		require.NoError(t, err, list)
	}
}

// TestIfMatchDuringAHeartbeat: a heartbeat between the read and the commit does not refuse
// a request with an ETag. A change does.
func TestIfMatchDuringAHeartbeat(t *testing.T) {
	for name, x := range map[string]struct {
		any       bool
		meanwhile func(store *hooked)
		is        error
	}{
		"heartbeat":      {false, func(store *hooked) { extend(t, store.MemoryStore, "a") }, nil},
		"change":         {false, func(store *hooked) { fire(t, store.others(), "a", "progress", agent, nil) }, lifecycle.ErrRevision},
		"heartbeat, any": {true, func(store *hooked) { extend(t, store.MemoryStore, "a") }, nil},
		"change, any":    {true, func(store *hooked) { fire(t, store.others(), "a", "progress", agent, nil) }, lifecycle.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			m, store := vms(t)
			tag := create(t, m, "a", "create", user, size{N: 1}).ETag
			if x.any {
				tag = "*"
			}
			store.reset()
			store.afterGet = func(n int) {
				if n == 1 {
					x.meanwhile(store)
				}
			}
			_, err := m.Fire(t.Context(), "a", "done", agent, ifMatch(tag))
			require.ErrorIs(t, err, x.is)
		})
	}
}

// A request with the ETag of a removed object does not create another one, or change it.
func TestIfMatchOfRemovedObject(t *testing.T) {
	m, _ := vms(t)
	old := ready(t, m, "a").ETag
	fire(t, m, "a", "delete", user, nil)
	fire(t, m, "a", "done", agent, nil)
	_, err := m.Create(t.Context(), "a", "create", user, size{}, ifMatch(old))
	require.ErrorIs(t, err, lifecycle.ErrRevision)
	require.ErrorContains(t, err, `conflict: vm "a" is absent, and If-Match is `+old)
	_, err = m.Fire(t.Context(), "a", "update", user, ifMatch(old))
	require.ErrorIs(t, err, lifecycle.ErrRevision)
	absent(t, m, "a")
}
