// Tumblebug serves the REST API of CB-Tumblebug's document, [tumblebug.Handler], over
// simulated clouds, and is its own HTTP client. The clouds reject requests and lose
// answers. The requests create, suspend, resume and terminate MCIs, conflict with running
// actions, and use force, hold, withdraw and refine.
//
// It prints every request with its answer. It fails if an MCI has another status than
// expected, or if a resource is left in the clouds.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tumblebug:", err)
		os.Exit(1)
	}
}

// run starts the server, performs all steps, and ends the server.
func run(ctx context.Context, out io.Writer) error {
	clouds := newCloud()
	system, err := tumblebug.New(lifecycle.NewMemoryStore(), clouds, &tumblebug.Config{Poll: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: tumblebug.Handler(system), ReadHeaderTimeout: time.Second}
	var serving errgroup.Group
	serving.Go(func() error { return server.Serve(listener) })
	defer serving.Wait() // the error is that of Close
	defer server.Close()
	d := &demo{out: out, clouds: clouds, system: system, url: "http://" + listener.Addr().String()}
	d.create(ctx)
	d.suspend(ctx)
	d.loseAnswer(ctx)
	d.withdraw(ctx)
	d.terminate(ctx)
	d.keep(system.Close(ctx))
	d.verify()
	return d.err
}

func (d *demo) create(ctx context.Context) {
	d.printf("create an MCI of five VMs; the cloud rejects web-3")
	d.createMci(ctx, "shop", false, group("web", 3, "aws", "ap-northeast-2"), group("db", 2, "azure", "koreacentral"))
	d.rests(ctx, "shop", "Partial-Running:4 (R:4/5)")
	d.post(ctx, "shop?action=refine", 200)
	d.rests(ctx, "shop", "Running:4 (R:4/4)")
}

func (d *demo) suspend(ctx context.Context) {
	d.printf("suspend the MCI; requests during the action, and requests that the matrix excludes")
	d.clouds.gate.Lock()
	d.post(ctx, "shop?action=suspend", 200)
	d.post(ctx, "shop?action=resume", 409)
	d.post(ctx, "shop/vm/db-1?action=terminate", 409)
	d.clouds.gate.Unlock()
	d.rests(ctx, "shop", "Suspended:4 (R:0/4)")
	d.post(ctx, "shop?action=suspend", 403)
	d.post(ctx, "shop?action=unknown", 400)
	d.post(ctx, "shop?action=resume", 200)
	d.rests(ctx, "shop", "Running:4 (R:4/4)")
}

func (d *demo) loseAnswer(ctx context.Context) {
	d.printf("suspend one VM; the cloud does it and does not answer")
	d.post(ctx, "shop/vm/db-2?action=suspend", 200)
	d.rests(ctx, "shop", "Partial-Running:3 (R:3/4)")
	d.post(ctx, "shop/vm/db-2?action=resume", 200)
	d.rests(ctx, "shop", "Running:4 (R:4/4)")
}

func (d *demo) withdraw(ctx context.Context) {
	d.printf("withdraw a creation on hold; another MCI cannot be prepared")
	d.createMci(ctx, "later", true, group("a", 2, "gcp", "asia-northeast3"))
	d.rests(ctx, "later", "Prepared")
	d.post(ctx, "later?action=withdraw", 200)
	d.send(ctx, http.MethodGet, "later?option=status", 404, &struct{}{})
	d.printf("  GET later: HTTP 404")
	d.createMci(ctx, "none", false, group("a", 2, "ncp", "kr"))
	d.rests(ctx, "none", "Failed")
}

func (d *demo) terminate(ctx context.Context) {
	d.printf("terminate by force during a suspend")
	d.clouds.gate.Lock()
	d.post(ctx, "shop?action=suspend", 200)
	d.post(ctx, "shop?action=terminate", 409)
	d.post(ctx, "shop?action=terminate&force=true", 200)
	d.clouds.gate.Unlock()
	d.rests(ctx, "shop", "Terminated:4 (R:0/4)")
	d.post(ctx, "shop?action=resume&force=true", 409)
}

// verify keeps an error if a resource is left.
func (d *demo) verify() {
	if n := len(d.clouds.resources); n > 0 {
		d.keep(fmt.Errorf("%d resources are left in the clouds", n))
	}
	d.printf("end: no network, security group or key is left in the clouds")
}
