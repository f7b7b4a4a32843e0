package etcdtest

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// patience is the longest time that a start may take.
const patience = time.Minute

// Config sets up a server. nil and the zero Config are valid.
type Config struct {
	// Fsync waits for the disk before it acknowledges a write. The default does not, and is
	// several times as fast.
	Fsync bool

	// Quota is the size of the database, in bytes, beyond which etcd raises the alarm
	// NOSPACE and refuses writes. 0: the default of etcd, 2 GiB.
	Quota int64
}

// Server is an etcd of one member, or a member of a [Cluster]. Its methods are called by one
// goroutine at a time.
type Server struct {
	settings settings
	process  *Process // nil: stopped
}

// Start starts a server on an empty directory. It ends with the test.
func Start(t testing.TB, config *Config) *Server {
	t.Helper()
	s := &Server{settings: settings{Dir: t.TempDir(), Host: loopback()}}
	if config != nil {
		s.settings.Config = *config
	}
	s.Restart(t)
	t.Cleanup(func() { s.Kill(t) })
	return s
}

// Endpoint returns the address of the server, as host:port.
func (s *Server) Endpoint() string { return s.settings.Endpoint }

// Client returns a client of the server that is closed at the end of the test.
func (s *Server) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	return Client(t, s.Endpoint())
}

// Client returns a client of the servers at some addresses, which may be those of proxies.
// It leaves a server that has not answered for about eleven seconds, which is the shortest
// time that grpc permits. It is closed at the end of the test.
func Client(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: time.Second, Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Restart starts the server again on its data and its port, and returns when it serves.
// A server that runs is stopped first.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.begin(t)
	s.await(t)
}

// begin starts a server that is stopped. await must be called next.
func (s *Server) begin(t testing.TB) {
	t.Helper()
	s.process = StartProcess(t, variable, s.settings)
}

// await returns when the server serves. A member of a cluster needs a quorum for that.
func (s *Server) await(t testing.TB) {
	t.Helper()
	line := s.process.Line(t)
	require.Contains(t, line, ":", "etcdtest: no server: does TestMain call etcdtest.Main?")
	s.settings.Endpoint = line
}

// Stop ends the server in order. It does nothing if the server is stopped.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if p := s.process; p != nil {
		s.process = nil
		p.Stop(t)
	}
}

// Kill ends the server as kill -9 does. It does nothing if the server is stopped.
func (s *Server) Kill(testing.TB) {
	if s.process != nil {
		s.process.Kill()
		s.process = nil
	}
}

// Backup copies the data, and returns a function that brings them back. The server is
// killed and started again for either.
func (s *Server) Backup(t testing.TB) (restore func()) {
	t.Helper()
	backup, data := os.DirFS(s.settings.Dir), t.TempDir()
	s.Kill(t)
	require.NoError(t, os.CopyFS(data, backup))
	s.Restart(t)
	return func() {
		t.Helper()
		s.Kill(t)
		require.NoError(t, os.RemoveAll(s.settings.Dir))
		require.NoError(t, os.CopyFS(s.settings.Dir, os.DirFS(data)))
		s.Restart(t)
	}
}

// Pause stops the server as SIGSTOP does, and returns when it has stopped: connections stay
// open, and nothing is answered.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.process.Pause(t)
}

// Continue ends a [Server.Pause].
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	s.process.Continue(t)
}
