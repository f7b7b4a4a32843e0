// Inspect serves the page of an operator for a simulated service: VMs and disks, users, a
// provider whose calls fail, and a replica that hangs now and then. A sweeper finds the stuck
// objects. The program needs no database, because the records are in the memory store:
//
//	go run .
//
// The files:
//
//	tables.go    the tables of VMs and disks
//	replica.go   a process of the service: its queue, its work and its users
//	world.go     two replicas and the locks of the racks
//	main.go      flags, the page, start and shutdown
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
)

var addr = flag.String("addr", "localhost:8080", "`address` of the page")

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		err = run(ctx, listener, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "inspect:", err)
		os.Exit(1)
	}
}

// run serves the page of a world until ctx ends.
func run(ctx context.Context, listener net.Listener, out io.Writer) error {
	defer listener.Close()
	w, err := newWorld(ctx, out)
	if err != nil {
		return err
	}
	page, err := w.page()
	if err != nil {
		return err
	}
	routes, err := w.routes(page)
	if err != nil {
		return err
	}
	w.log.Printf("page: http://%s/", listener.Addr())
	w.log.Printf("metrics: http://%s/metrics", listener.Addr())
	w.log.Printf("disk-00 waits for an operator: curl -d 'machine=disk&id=disk-00&to=detached&reason=restored' http://%s/admin/override", listener.Addr())

	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(page.Close)
	group, ending := errgroup.WithContext(ctx)
	group.Go(func() error { return w.run(ending) })
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ending.Done()
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return server.Shutdown(within)
	})
	return group.Wait()
}

// page returns the page of replica alpha.
func (w *world) page() (*inspect.Page, error) {
	return inspect.New(&inspect.Config{
		Title: "A simulated service",
		Machines: []inspect.Machine{
			inspect.Of(w.alpha.vms, func(vm VM) any { vm.Password = ""; return vm }),
			inspect.Of(w.alpha.disks, func(disk Disk) any { return disk }),
		},
		Queues: map[string]inspect.Queue{"alpha": inspect.OfQueue(w.alpha.queue)},
		Locks:  map[string]lock.Locker{"racks": w.racks},
		Failed: func(_ context.Context, err error) { w.log.Printf("page: %v", err) },
	})
}

// routes returns the handler of all requests: the page, the metrics, and the verbs for
// operators.
func (w *world) routes(page *inspect.Page) (http.Handler, error) {
	admin, err := page.Admin(authorize, func(_ context.Context, a inspect.Action) {
		w.log.Printf("audit: %s by %s: machine %q, object %q, reason %q, error %v", a.Verb, a.Actor, a.Machine, a.ID, a.Reason, a.Err)
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.metrics)
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/admin/", http.StripPrefix("/admin", admin))
	return mux, err
}

// authorize permits the requests of this machine. A real service derives the actor from
// the credentials of the request.
func authorize(r *http.Request, _ inspect.Action) (fsm.Actor, error) {
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
		return "", errors.New("only requests of this machine are permitted")
	}
	return Operator, nil
}
