// Service is a small control plane: an HTTP API for virtual machines, whose records are
// rows of a table of its own. Copy the directory, and change vm.go, schema.sql and
// provider.go.
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
//	store.go     opens the database, maps the columns, and deletes old history
//	provider.go  the cloud where the VMs run, simulated
//	work.go      the manager of the VMs: work and its retries
//	api.go       requests
//	reply.go     answers and errors
//	events.go    the stream of all VMs, and the history of one
//	main.go      flags, start and shutdown
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// config has the values of the flags.
type config struct {
	addr, db, name string
	migrate        bool
	workers        int
	table          int
	doSwitch       bool
	ttl, grace     time.Duration
	delay          time.Duration
}

func main() {
	var c config
	host, _ := os.Hostname()
	flag.StringVar(&c.addr, "addr", "localhost:8080", "`address` of the HTTP API")
	flag.StringVar(&c.db, "db", "vms.db", "a SQLite `file`, or the postgres:// URL of a database")
	flag.StringVar(&c.name, "name", host, "name of this replica, different from those of all others")
	flag.BoolVar(&c.migrate, "migrate", false, "create or update the tables before the start")
	flag.IntVar(&c.table, "table", 1, "`version` of the VMs' table: 1 or 2, see versions.go")
	flag.BoolVar(&c.doSwitch, "switch", false, "make new VMs of the version of -table, and migrate the others")
	flag.IntVar(&c.workers, "workers", 16, "calls of the provider at once")
	flag.DurationVar(&c.ttl, "ttl", lifecycle.DefaultTTL, "other replicas take over the work of one without heartbeats for so long")
	flag.DurationVar(&c.grace, "grace", 30*time.Second, "time for requests and work to end at a shutdown")
	flag.DurationVar(&c.delay, "delay", time.Second, "duration of a call of the simulated provider")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		slog.Error("the service has failed", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then shuts down. The service also ends when it has lost
// its ownership: other replicas do its work then, and it has to start again.
func run(ctx context.Context, c config) error {
	db, store, err := open(ctx, c.db, c.migrate)
	if err != nil {
		return err
	}
	defer db.Close()
	defer store.Close()
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	owner, err := lifecycle.Join(ctx, store, c.name, c.ttl)
	if err != nil {
		return err
	}
	work := queue.Must(&queue.Config[lifecycle.Key]{MaxRunning: c.workers})
	vms, err := newManager(store, owner, work, c)
	if err != nil {
		return err
	}
	api := &api{vms: vms, memory: c.table >= 2, stopping: make(chan struct{})}
	server := &http.Server{Handler: api.routes(), ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(func() { close(api.stopping) })
	slog.Info("the service has started", "addr", listener.Addr(), "name", c.name, "epoch", owner.Epoch())

	group, ending := errgroup.WithContext(ctx)
	alive, stop := context.WithCancel(context.WithoutCancel(ctx)) // heartbeats go on until the work has ended
	group.Go(func() error { return owner.Run(alive) })
	group.Go(func() error { return lifecycle.Run(ending, c.ttl/4, nil, vms) })
	group.Go(func() error { trim(ending, store); return nil })
	if c.doSwitch {
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
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.grace)
		defer cancel()
		return errors.Join(server.Shutdown(grace), work.Terminate(grace), vms.Drain(grace))
	})
	err = group.Wait()
	// What has not ended in time is other replicas' from now on.
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, owner.Leave(leaving))
}
