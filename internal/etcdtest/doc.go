// Package etcdtest runs etcd for tests, and its subpackages test what this repository
// builds on etcd.
//
// A server is a process of its own, see package child.
// Several of them are a [Cluster]. A package that uses it calls [Main] from TestMain:
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//
//	func TestPut(t *testing.T) {
//		server := etcdtest.Start(t, nil)
//		client := server.Client(t)
//		_, err := client.Put(t.Context(), "key", "value")
//		require.NoError(t, err)
//		server.Kill(t)
//		server.Restart(t)
//	}
//
// # Guarantees
//
//   - A [Server] has a directory and ports of its own, and keeps both over [Server.Restart].
//   - A write that was acknowledged survives [Server.Kill], without [Config.Fsync] too.
//   - The server ends with the test, and with the process of the test.
//
// # Limits
//
//   - A [Server] of [Start] is the only member. It has no quorum while it is stopped or paused.
//   - On systems other than Linux, another program may get the port of a server that is down.
//   - A killed server shows nothing about a loss of power.
//   - Servers pause on systems that have SIGSTOP.
package etcdtest
