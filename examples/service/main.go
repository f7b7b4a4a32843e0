// Service is a small control plane: an HTTP API for virtual machines, whose records are
// rows of a table of its own. Copy the directory (the README has the commands), and change
// vm.go, schema.sql and provider.go.
//
//	go run . -migrate    # in a SQLite file; for several replicas: -db postgres://localhost/fleet
//	curl -d '{"name": "vm-1", "image": "debian", "cpus": 2}' localhost:8080/vms
//	curl localhost:8080/vms/vm-1
//
// The files:
//
//	vm.go        the table of a VM's life, and the quota guard
//	schema.sql   the SQL table that keeps the records
//	versions.go  version 2 of the table, and the way to it
//	store.go     opens the database, creates its tables, maps the columns, deletes old history
//	provider.go  the cloud where the VMs run: its API, or simulated
//	work.go      the manager of the VMs: work and its retries
//	api.go       requests
//	reply.go     answers and errors
//	events.go    the stream of all VMs
//	main.go      flags, start and shutdown
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/queue"
)

var (
	hostname, _ = os.Hostname()

	addr     = flag.String("addr", "localhost:8080", "`address` of the HTTP API")
	database = flag.String("db", "vms.db", "a SQLite `file`, or the postgres:// URL of a database")
	name     = flag.String("name", hostname, "name of this replica, different from those of all others")
	migrate  = flag.Bool("migrate", false, "create or update the tables before the start")
	v2       = flag.Bool("v2", false, "use version 2 of the VMs' table, see versions.go")
	doSwitch = flag.Bool("switch", false, "make new VMs of version 2, and migrate the others")
	workers  = flag.Int("workers", 16, "calls of the provider at once")
	ttl      = flag.Duration("ttl", lifecycle.DefaultTTL, "other replicas take over the work of one without heartbeats for so long")
	cloudURL = flag.String("provider", "", "`URL` of the provider's API, see provider.go; empty: it is simulated")
	delay    = flag.Duration("delay", time.Second, "wait before a call of the provider")
	printing = flag.Bool("table", false, "print the VMs' table as JSON, for command fsm, and end")
)

// grace is the time for requests and work to end at a shutdown.
const grace = 30 * time.Second

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the service at once
	if err := run(ctx); err != nil {
		slog.Error("the service has failed", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then shuts down. The service also ends when it has lost
// its ownership: other replicas do its work then, and it has to start again.
func run(ctx context.Context) error {
	if *printing {
		return fsm.WriteTable(os.Stdout, setVersion(&lifecycle.Config[Event]{}).Table())
	}
	if err := checkFlags(); err != nil {
		return err
	}
	db, dialect, err := connect(*database)
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := openStore(ctx, db, dialect)
	if err != nil {
		if dialect == sqlstore.SQLite { // the errors of PostgreSQL name the database
			err = fmt.Errorf("-db %s: %w", *database, err)
		}
		return err
	}
	defer store.Close()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	work, err := queue.New(&queue.Config[lifecycle.Key]{MaxRunning: *workers})
	if err != nil {
		return err
	}
	owner, err := lifecycle.Join(ctx, store, *name, *ttl)
	if err != nil {
		return err
	}
	vms, err := newManager(store, owner, work)
	if err != nil {
		return err
	}

	group, ending := errgroup.WithContext(ctx)
	alive, stop := context.WithCancel(context.WithoutCancel(ctx)) // heartbeats go on until the work has ended
	server := newServer((&api{vms}).routes(ending))
	slog.Info("the service has started", "addr", listener.Addr(), "name", *name, "epoch", owner.Epoch())
	group.Go(func() error { return owner.Run(alive) })
	group.Go(func() error { return lifecycle.Run(ending, *ttl/4, nil, vms) })
	group.Go(func() error { trim(ending, store); return nil })
	if *doSwitch {
		group.Go(func() error { migrateAll(ending, vms); return nil })
	}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ending.Done()
		defer stop()
		slog.Info("the service shuts down")
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return errors.Join(server.Shutdown(within), work.Terminate(within), lifecycle.Drain(within, vms))
	})
	err = group.Wait()
	// What has not ended in time is other replicas' from now on.
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, owner.Leave(leaving))
}

// newServer returns the server of the API. The time of a client to send its request and to read
// its answer is limited: otherwise it would use up the time that a shutdown has for the work.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:      handler,
		ReadTimeout:  requestTime,
		WriteTimeout: 2 * requestTime, // from the end of the header; a stream has limits of its own
		IdleTimeout:  2 * time.Minute,
	}
}

// checkFlags refuses a command line that is wrong, before anything is opened.
func checkFlags() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("%s is not a flag; all flags begin with -", flag.Arg(0))
	case *name == "":
		return errors.New("-name is empty")
	case *doSwitch && !*v2:
		return errors.New("-switch needs -v2")
	case *ttl < time.Second: // in PostgreSQL, a setting of 0 milliseconds is none
		return fmt.Errorf("-ttl %v is below 1s", *ttl)
	}
	return nil
}
