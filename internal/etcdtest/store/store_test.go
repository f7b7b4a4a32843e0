package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// place is where the data of a store are.
type place struct {
	server *etcdtest.Server
	prefix string
	ahead  *atomic.Int64 // how far the clock of the stores is ahead
}

func (p place) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

// open opens a store over a client of its own.
func (p place) open(t testing.TB) *etcdstore.Store {
	t.Helper()
	return p.over(t, p.server.Client(t))
}

// over opens a store over a client.
func (p place) over(t testing.TB, client *clientv3.Client) *etcdstore.Store {
	t.Helper()
	store, err := etcdstore.Open(t.Context(), client, &etcdstore.Config{Prefix: p.prefix, Clock: p.now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

var prefixes atomic.Int64

// newPlace returns an empty place on a server.
func newPlace(server *etcdtest.Server) place {
	return place{server, fmt.Sprintf("test %d/", prefixes.Add(1)), new(atomic.Int64)}
}

func TestStore(t *testing.T) {
	server := etcdtest.Start(t, nil)
	places := map[lifecycle.Store]place{}
	opened := func(t testing.TB, p place) lifecycle.Store {
		store := p.open(t)
		places[store] = p
		return store
	}
	storetest.Run(t, func(t testing.TB) lifecycle.Store {
		p := newPlace(server)
		t.Cleanup(func() { p.audit(t) })
		return opened(t, p)
	}, &storetest.Config{
		Second: func(t testing.TB, store lifecycle.Store) lifecycle.Store { return opened(t, places[store]) },
		Restart: func(t testing.TB, _ lifecycle.Store) {
			server.Kill(t)
			server.Restart(t)
		},
		Network: func(t testing.TB) (lifecycle.Store, storetest.Network) {
			network := proxy.New(t, "tcp", server.Endpoint())
			p := newPlace(server)
			t.Cleanup(func() { p.audit(t) })
			store := p.over(t, etcdtest.Client(t, network.Addr()))
			places[store] = p
			return store, network
		},
		Age:      func(_ testing.TB, store lifecycle.Store, d time.Duration) { places[store].ahead.Add(int64(d)) },
		Attempts: 40,
	})
}
