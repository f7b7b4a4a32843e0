package lock_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/internal/enginetest/child"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
	"github.com/interlock-go/interlock/lock/locktest"
)

func TestMain(m *testing.M) {
	child.Main(asHolder, hold)
	etcdtest.Main(m)
}

var trees atomic.Int64

// freshPrefix returns the prefix of a tree that no other test uses.
func freshPrefix() string { return "test/" + strconv.FormatInt(trees.Add(1), 10) }

// open opens a Locker that is closed at the end of the test.
func open(t testing.TB, client *clientv3.Client, prefix string, config *etcdlock.Config) *etcdlock.Locker {
	t.Helper()
	l, err := etcdlock.Open(t.Context(), client, prefix, config)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// The Locker passes the conformance suite of package lock.
func TestConformance(t *testing.T) {
	client := etcdtest.Start(t, nil).Client(t)
	conforms(t, nil, func(t testing.TB, config *etcdlock.Config) lock.Locker {
		return open(t, client, freshPrefix(), config)
	})
}

// Three Lockers of one tree, with connections of their own, pass it as one.
func TestConformanceOfSeveralLockers(t *testing.T) {
	server := etcdtest.Start(t, nil)
	clients := []*clientv3.Client{server.Client(t), server.Client(t), server.Client(t)}
	conforms(t, faulty(t, server), func(t testing.TB, config *etcdlock.Config) lock.Locker {
		var all []*etcdlock.Locker
		prefix := freshPrefix()
		for _, client := range clients {
			all = append(all, open(t, client, prefix, config))
		}
		return locktest.Several(all...)
	})
}

func conforms(t *testing.T, faulty func(testing.TB, lock.Config) lock.Locker, open func(testing.TB, *etcdlock.Config) lock.Locker) {
	config := &locktest.Config{
		Faulty: faulty, Unknown: unknown, TTL: faultyTTL,
		Patience: time.Minute, Steps: 300, Histories: 6, Attempts: 10,
	}
	if scale.Full {
		config.Steps, config.Histories, config.Attempts = 10_000, 400, 100
	}
	locktest.Run(t, func(t testing.TB, c lock.Config) lock.Locker {
		return open(t, &etcdlock.Config{TTL: time.Minute, MaxWaiters: c.MaxWaiters, MaxHolders: c.MaxHolders})
	}, config)
}
