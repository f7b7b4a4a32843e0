package etcdtest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Cluster is an etcd of several members. One of them is stopped, killed or paused like a
// [Server].
type Cluster []*Server

// StartCluster starts a cluster of n members on empty directories. It ends with the test.
func StartCluster(t testing.TB, n int) Cluster {
	t.Helper()
	c, members := make(Cluster, n), make([]string, n)
	for i := range c {
		name, peer := fmt.Sprint("member", i), freeAddress(t, loopback())
		members[i] = name + "=http://" + peer
		c[i] = &Server{settings: settings{Dir: t.TempDir(), Host: loopback(), Peer: peer, Name: name}}
		t.Cleanup(func() { c[i].Kill(t) })
	}
	for _, s := range c { // each of them waits for others
		s.settings.Members = strings.Join(members, ",")
		s.begin(t)
	}
	for _, s := range c {
		s.await(t)
	}
	return c
}

// freeAddress returns an address of a host where nothing listens, with its port.
func freeAddress(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// Client returns a client of all members, with options, that is closed at the end of the test.
func (c Cluster) Client(t testing.TB, options ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	var endpoints []string
	for _, s := range c {
		endpoints = append(endpoints, s.Endpoint())
	}
	return Connect(t, clientv3.Config{Endpoints: endpoints, DialOptions: options})
}

// Leader waits until the members have a leader, and returns its index.
func (c Cluster) Leader(t testing.TB, client *clientv3.Client) (leader int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for i, s := range c {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			status, err := client.Status(ctx, s.Endpoint())
			cancel()
			if leader = i; err == nil && status.Leader == status.Header.MemberId {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond)
	return leader
}
