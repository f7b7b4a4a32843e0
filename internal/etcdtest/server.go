package etcdtest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/internal/enginetest/child"
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
	process  *child.Process // nil: stopped
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

// PID returns the number of the server's process.
func (s *Server) PID() int { return s.process.PID() }

// Client returns a client of the server, with options, that is closed at the end of the test.
func (s *Server) Client(t testing.TB, options ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	return Connect(t, clientv3.Config{Endpoints: []string{s.Endpoint()}, DialOptions: options})
}

// Client returns a client of the servers at some addresses, which may be those of proxies.
// It is closed at the end of the test.
func Client(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	return Connect(t, clientv3.Config{Endpoints: endpoints})
}

// Connect returns a client that leaves a server which has not answered for about eleven
// seconds, which is the shortest time that grpc permits. It is closed at the end of the test.
func Connect(t testing.TB, config clientv3.Config) *clientv3.Client {
	t.Helper()
	config.DialKeepAliveTime, config.DialKeepAliveTimeout, config.Logger = 10*time.Second, time.Second, zap.NewNop()
	client, err := clientv3.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Through returns an option of clients: their calls pass through a function, and send sends
// them.
func Through(call func(ctx context.Context, req, reply any, send func() error) error) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		return call(ctx, req, reply, func() error { return invoke(ctx, method, req, reply, cc, opts...) })
	})
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
	var err error
	s.process, err = child.Start(variable, s.settings)
	require.NoError(t, err)
}

// await returns when the server serves. A member of a cluster needs a quorum for that.
func (s *Server) await(t testing.TB) {
	t.Helper()
	line, err := s.process.Line()
	require.NoError(t, err, "etcdtest: no server: does TestMain call etcdtest.Main?")
	s.settings.Endpoint = line
}

// Stop ends the server in order. It does nothing if the server is stopped.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if p := s.process; p != nil {
		s.process = nil
		require.NoError(t, p.Stop())
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
	require.NoError(t, s.process.Pause())
}

// Continue ends a [Server.Pause].
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	require.NoError(t, s.process.Continue())
}
