package lock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
	"github.com/interlock-go/interlock/lock/locktest"
)

const faultyTTL = 2 * time.Second

// faulty returns what opens lockers of one tree with a proxy each, whose requests are cut at
// random. One proxy is down for a while, so that some sessions end.
func faulty(t testing.TB, server *etcdtest.Server) func(testing.TB, lock.Config) lock.Locker {
	var proxies []*proxy.Proxy
	var clients []*clientv3.Client
	for range 3 {
		p := proxy.New(t, "tcp", server.Endpoint())
		proxies, clients = append(proxies, p), append(clients, etcdtest.Client(t, p.Addr()))
	}
	stop := func() {}
	t.Cleanup(func() { stop() })
	return func(t testing.TB, c lock.Config) lock.Locker {
		stop() // the lockers of the history before
		var lockers []*etcdlock.Locker
		prefix := freshPrefix()
		for _, client := range clients {
			lockers = append(lockers, open(t, client, prefix, &etcdlock.Config{TTL: faultyTTL, MaxHolders: c.MaxHolders}))
		}
		calm := proxy.Storm(proxies, 15, 3*faultyTTL/2)
		stop = func() {
			calm()
			for _, l := range lockers {
				l.Close()
			}
		}
		return locktest.Several(lockers...)
	}
}

// unknown reports whether a call may have been executed: the connection was lost.
func unknown(err error) bool { return status.Code(err) == codes.Unavailable }

// An Unlock that does not reach etcd before the end of the session reports that: etcd holds the
// claim until the lease ends.
func TestUnlockWithoutEngine(t *testing.T) {
	server := etcdtest.Start(t, nil)
	l := open(t, server.Client(t), freshPrefix(), &etcdlock.Config{TTL: faultyTTL})
	g := take(t, l, at(lock.X, "/a"), "holder")
	server.Pause(t)
	err := g.Unlock(t.Context())
	server.Continue(t)
	require.ErrorIs(t, err, lock.ErrLost)
}
