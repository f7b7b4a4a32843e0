package etcdtest

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"runtime"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/interlock-go/interlock/internal/enginetest/child"
)

// variable is that of the children that are servers.
const variable = "INTERLOCK_ETCDTEST_SERVER"

// settings are those of one process.
type settings struct {
	Config
	Dir      string
	Host     string // of Endpoint, if that is empty
	Endpoint string // empty: a free port
	Peer     string // the address for other members; empty: a free port
	Name     string // empty: the only member
	Members  string // of the cluster, as etcd has it in --initial-cluster
}

// Main is the body of TestMain. It runs the tests, and fails them if they leave
// goroutines. In a child that [Start] has started, it is the server.
func Main(m goleak.TestingM) {
	child.Main(variable, serve)
	goleak.VerifyTestMain(m)
}

// loopback returns an address of this machine that no other server listens at. The bad
// schedule at 127.0.0.1: while a server is down, another program gets its port, or a client
// that dials gets it for its own side, and is connected to itself. Only Linux has more than
// one such address.
func loopback() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254))
}

// serve runs etcd until the standard input ends, which it does with the parent process.
func serve(s settings) error {
	client := url.URL{Scheme: "http", Host: cmp.Or(s.Endpoint, s.Host+":0")}
	// On a host of its own: a free port there may be that of a server which starts again.
	peer := url.URL{Scheme: "http", Host: cmp.Or(s.Peer, loopback()+":0")}
	config := embed.NewConfig()
	config.Dir = s.Dir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.QuotaBackendBytes = s.Quota
	config.UnsafeNoFsync = !s.Fsync
	config.EnableGRPCGateway = false
	if s.Name != "" {
		config.Name, config.InitialCluster = s.Name, s.Members
		config.TickMs, config.ElectionMs = 50, 500
	} else {
		// The only member elects itself: a long election is time lost at every start.
		config.InitialCluster = config.InitialClusterFromName(config.Name)
		config.TickMs, config.ElectionMs = 10, 100
	}
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return err
	case <-time.After(patience):
		return fmt.Errorf("not ready after %v", patience)
	}
	fmt.Println(etcd.Clients[0].Addr()) // Start reads it
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
