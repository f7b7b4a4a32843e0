package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
)

// woken receives the keys of Listen.
type woken chan lifecycle.Key

func (w woken) wake(key lifecycle.Key) { w <- key }

// until waits until the waker is woken for a key.
func (w woken) until(t *testing.T, k lifecycle.Key) {
	t.Helper()
	for {
		select {
		case got := <-w:
			if got == k {
				return
			}
		case <-t.Context().Done():
			t.Fatal("not woken")
		}
	}
}

// Listen wakes for commits of other stores, at once when it begins, and for everything
// after it could not receive what etcd has compacted meanwhile.
func TestListen(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	network := proxy.New(t, "tcp", p.server.Endpoint())
	listener, writer := p.over(t, etcdtest.Client(t, network.Addr())), p.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	w, ended := make(woken, 1000), make(chan error, 1)
	go func() { ended <- listener.Listen(ctx, w.wake) }()
	w.until(t, lifecycle.Key{})
	for _, k := range []lifecycle.Key{key("a"), key("a/b"), {Machine: "m/é", ID: "☂ 1"}} {
		put(t, writer, k, "Idle")
		w.until(t, k)
	}
	// Short interruptions are covered by the client: nothing is missed.
	network.SetDown(true)
	put(t, writer, key("b"), "Idle")
	network.SetDown(false)
	w.until(t, key("b"))

	network.SetDown(true)
	put(t, writer, key("c"), "Idle")
	put(t, writer, key("c"), "Moving")
	client := p.server.Client(t)
	head, err := client.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = client.Compact(t.Context(), head.Header.Revision)
	require.NoError(t, err)
	network.SetDown(false)
	w.until(t, lifecycle.Key{})
	put(t, writer, key("d"), "Idle")
	w.until(t, key("d"))
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// A key that is none of the store's wakes for nothing.
func TestListenSkipsStrayKeys(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store, w := p.open(t), make(woken, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Listen(ctx, w.wake) }()
	w.until(t, lifecycle.Key{})
	_, err := p.server.Client(t).Put(t.Context(), p.prefix+"history/stray", "")
	require.NoError(t, err)
	put(t, store, key("a"), "Idle")
	w.until(t, key("a"))
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// Listen ends if etcd refuses the user, and goes on after a restart of etcd, which does not
// know the tokens from before.
func TestListenEndsIfTheUserIsRefused(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	as := func(user string) *clientv3.Client {
		return etcdtest.Connect(t, clientv3.Config{Endpoints: []string{p.server.Endpoint()}, Username: user, Password: "secret"})
	}
	admin := p.server.Client(t)
	for name, role := range map[string]string{"root": "root", "vms": "writer"} {
		_, err := admin.RoleAdd(t.Context(), role)
		require.NoError(t, err)
		_, err = admin.UserAdd(t.Context(), name, "secret")
		require.NoError(t, err)
		_, err = admin.UserGrantRole(t.Context(), name, role)
		require.NoError(t, err)
	}
	end := clientv3.GetPrefixRangeEnd(p.prefix)
	_, err := admin.RoleGrantPermission(t.Context(), "writer", p.prefix, end, clientv3.PermissionType(clientv3.PermReadWrite))
	require.NoError(t, err)
	_, err = admin.AuthEnable(t.Context())
	require.NoError(t, err)
	store, w, ended := p.over(t, as("vms")), make(woken, 1000), make(chan error, 1)
	listen := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		ended <- store.Listen(ctx, w.wake)
	}
	go listen()
	w.until(t, lifecycle.Key{})
	p.server.Restart(t)
	put(t, p.over(t, as("root")), key("a"), "Idle")
	w.until(t, key("a"))

	_, err = as("root").RoleRevokePermission(t.Context(), "writer", p.prefix, end)
	require.NoError(t, err)
	p.server.Restart(t)
	require.ErrorIs(t, <-ended, rpctypes.ErrPermissionDenied)
	_, err = as("root").UserDelete(t.Context(), "vms")
	require.NoError(t, err)
	go listen()
	require.ErrorIs(t, <-ended, rpctypes.ErrAuthFailed)
}
