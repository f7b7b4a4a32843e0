package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

var _ etcdstore.Waker = disks(nil) // every Manager is one

// woken is a Waker that reports to a channel.
type woken chan lifecycle.Key

func (w woken) Wake(key lifecycle.Key) { w <- key }

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
	go func() { ended <- listener.Listen(ctx, w) }()
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
