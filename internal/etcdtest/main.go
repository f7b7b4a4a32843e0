package etcdtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

// variable holds the settings of a server in the environment of its process.
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
// goroutines. In a process that [Start] has started, it is the server.
func Main(m goleak.TestingM) {
	text, server := os.LookupEnv(variable)
	if !server {
		goleak.VerifyTestMain(m)
		return
	}
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, "etcdtest:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs etcd until the standard input ends, which it does with the parent process.
func serve(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
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
