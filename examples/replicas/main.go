// Replicas runs three replicas of examples/service as processes on one PostgreSQL, with
// users that send requests all the time, and strikes the replicas one after the other:
//
//   - kill -9;
//   - a pause (SIGSTOP) that is longer than the TTL, and its end (SIGCONT);
//   - a network to the database that delays answers, then swallows them, and then breaks.
//
// Each time the other replicas do the work of the replica that was struck. At the end a
// verdict compares all VMs, their histories, what the users were answered and what the
// provider was ordered. The page of an operator shows the VMs meanwhile.
//
//	go run -C examples/replicas .
//	go run -C examples/replicas . -objects 4000 -for 5m -db postgres://postgres@localhost/postgres
//
// The provider is a part of this program. It refuses the order of an operation after one of a
// later operation, as a provider with fencing tokens does, except for one half of the VMs:
// those are the control, which shows that the same faults do harm without fencing.
//
// The verdict is good, and the exit code 0, if
//
//   - every history conforms to the table, has no gap, and ends in the state of the record;
//   - every accepted request has one row, with the operation that the user was answered, and
//     no request that had a row was refused;
//   - every order has the admission token of an operation, all orders of an operation are of
//     one replica, every success has an earlier order, and no operation has failed;
//   - the provider has executed no late order with the fence, and some without;
//   - no VM is in transition;
//   - the run shows what it is for: late orders that were refused, repeated answers, and
//     operations that were taken over after every kind of fault.
//
// Some of this compares times of the database with those of this program. Their clocks may
// differ by ten milliseconds.
//
// The program needs a Unix system, and without -db the binaries of PostgreSQL on Linux. The
// replicas reach the server of -db through a proxy, so that they cannot verify its name. If
// the program is killed by SIGKILL, its replicas go on.
//
// The files:
//
//	database.go  a database for the run, and the manager that the page and the verdict read
//	replica.go   a replica as a process
//	proxy.go     the network between a replica and the database
//	provider.go  the cloud that the replicas send their orders to
//	users.go     the users and their requests
//	faults.go    what is done to the replicas
//	verdict.go   what is compared at the end
//	main.go      flags, the page, start and end
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/terminal"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

var (
	addr      = flag.String("addr", "localhost:8080", "`address` of the page")
	serverURL = flag.String("db", os.Getenv("INTERLOCK_POSTGRES_DSN"), "postgres:// `URL` of a server, which gets a database for the run; none: a private server")
	objects   = flag.Int("objects", 2000, "number of VMs")
	duration  = flag.Duration("for", time.Minute, "begin no fault after this time; each happens at least once")
	least     = flag.Int64("requests", 0, "begin faults, also after that time, until so many requests were accepted")
	ttl       = flag.Duration("ttl", 3*time.Second, "a replica without heartbeats for so long is dead")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := checkFlags(); err != nil {
		fmt.Fprintln(os.Stderr, "replicas:", err)
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "replicas-")
	if err == nil {
		err = run(ctx, os.Stdout, dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "replicas: %v\nreplicas: the logs are in %s\n", err, dir)
		os.Exit(1)
	}
	_ = os.RemoveAll(dir)
}

// checkFlags refuses a command line that is wrong, before anything is built.
func checkFlags() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("%s is not a flag; all flags begin with -", flag.Arg(0))
	case *objects < 2:
		return fmt.Errorf("-objects %d is below 2", *objects)
	case *ttl <= 0:
		return fmt.Errorf("-ttl %v is not above 0", *ttl)
	case *serverURL != "" && !strings.HasPrefix(*serverURL, "postgres://") && !strings.HasPrefix(*serverURL, "postgresql://"):
		return errors.New("-db is not a URL that begins with postgres://")
	}
	return nil
}

// world is one run. One goroutine calls its methods.
type world struct {
	reader
	cloud    *cloud
	users    *users
	replicas []*replica
	ends     []func() error
	struck   *replica                   // by a fault: it is not started again
	took     map[string][]time.Duration // by fault: until other replicas had the operations

	began time.Time
	out   io.Writer
	show  func(what string, done, total int) // nil: out is not a terminal
	clear func()
}

// run runs the program, and keeps the logs of the replicas in a directory. The error is that
// of a bad verdict, or of a run without a verdict.
func run(ctx context.Context, out io.Writer, dir string) (err error) {
	w := &world{cloud: &cloud{orders: map[string][]order{}}, took: map[string][]time.Duration{}, began: time.Now(), out: out}
	w.show, w.clear = terminal.Progress(out)
	defer func() {
		for _, end := range slices.Backward(w.ends) {
			err = errors.Join(err, end())
		}
	}()
	w.printf("build examples/service")
	program, err := build(ctx, dir)
	if err != nil {
		return err
	}
	db, err := w.createDatabase(ctx)
	if err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.Handle("PUT /provider/{vm}", w.cloud)
	address, err := w.serve(routes)
	if err != nil {
		return err
	}
	running, terminate := context.WithCancel(ctx)
	stop := func() {
		terminate()
		for _, r := range w.replicas {
			<-r.ended
		}
	}
	defer stop() // before all other ends
	if err := w.start(running, program, db, address+"/provider"); err != nil {
		return err
	}
	if err := w.open(ctx, program, db.String()); err != nil {
		return err
	}
	w.atEnd(w.db.Close)
	vms := inspect.Of(w.vms, func(vm payload) any { return vm })
	page, err := inspect.New(&inspect.Config{Title: "Three replicas", Machines: []inspect.Machine{vms}})
	if err != nil {
		return err
	}
	w.atEnd(func() error { page.Close(); return nil })
	routes.Handle("/", page)
	w.printf("page: %s", address)
	if err := w.play(ctx); err != nil {
		return err
	}
	stop() // the verdict is about objects that nothing changes
	return w.judge(ctx)
}

// atEnd registers what the end of the run calls, the last one first.
func (w *world) atEnd(end func() error) { w.ends = append(w.ends, end) }

// serve serves until the run ends.
func (w *world) serve(handler http.Handler) (url string, err error) {
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // the error is that of Shutdown
	w.atEnd(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		defer serving.Wait()
		_ = server.Shutdown(ctx)
		return server.Close()
	})
	return "http://" + listener.Addr().String(), nil
}

// play strikes the replicas while users send requests, and waits until no VM is in
// transition.
func (w *world) play(ctx context.Context) error {
	client := &http.Client{Timeout: *ttl, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	w.users = &users{vms: w.vms, replicas: w.replicas, client: client, requests: map[string][]request{}}
	group, ending := errgroup.WithContext(ctx)
	asking, leave := context.WithCancel(ending)
	for i := range 16 {
		group.Go(func() error { return w.users.run(ending, asking, i) })
	}
	err := w.strikeAll(ending)
	leave()
	if err = errors.Join(err, group.Wait()); err != nil {
		return err
	}
	w.printf("the users have left")
	return w.await(ctx, "the end of all operations", func() (bool, error) {
		moving, err := w.moving(ctx)
		return len(moving) == 0, err
	})
}

func (w *world) printf(format string, args ...any) {
	w.clear()
	fmt.Fprintf(w.out, "%6.1fs  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

const interval = 50 * time.Millisecond

// await calls done at intervals until it returns true or an error, for two minutes at most.
// Meanwhile it revives the replicas.
func (w *world) await(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("too long without "+what))
	defer cancel()
	for {
		if err := w.revive(); err != nil {
			return err
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		if w.show != nil && w.users != nil {
			w.show("accepted requests", int(w.users.accepted.Load()), 0)
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
