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
	"encoding/json"
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

const ns = "default"

// run starts the server, performs all steps, and ends the server.
func run(ctx context.Context, out io.Writer) error {
	clouds := newCloud(30 * time.Millisecond)
	system, err := tumblebug.New(lifecycle.NewMemoryStore(), clouds, &tumblebug.Config{Poll: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: tumblebug.Handler(system), ReadHeaderTimeout: time.Second}
	var group errgroup.Group
	group.Go(func() error {
		if err := server.Serve(listener); err != http.ErrServerClosed {
			return err
		}
		return nil
	})
	d := &demo{out: out, clouds: clouds, system: system, url: "http://" + listener.Addr().String()}
	group.Go(func() error {
		defer server.Close()
		if err := d.perform(ctx, steps); err != nil {
			return err
		}
		return system.Close(ctx)
	})
	return group.Wait()
}

// step is one line of the program. It fails if the result is not the expected one.
type step func(ctx context.Context, d *demo) error

var steps = []step{
	section("create an MCI of five VMs; the cloud rejects web-3"),
	change(func(c *cloud) { c.reject["Create web-3"] = true }),
	create("shop", false, group("web", 3, "aws", "ap-northeast-2"), group("db", 2, "azure", "koreacentral")),
	rests("shop", "Partial-Running:4 (R:4/5)"),
	post("shop?action=refine", 200),
	rests("shop", "Running:4 (R:4/4)"),

	section("suspend the MCI; requests during the action, and requests that the matrix excludes"),
	change(func(c *cloud) { c.pause(true) }),
	post("shop?action=suspend", 200),
	post("shop?action=resume", 409),
	post("shop/vm/db-1?action=terminate", 409),
	change(func(c *cloud) { c.pause(false) }),
	rests("shop", "Suspended:4 (R:0/4)"),
	post("shop?action=suspend", 403),
	post("shop?action=unknown", 400),
	post("shop?action=resume", 200),
	rests("shop", "Running:4 (R:4/4)"),

	section("suspend one VM; the cloud does it and does not answer"),
	change(func(c *cloud) { c.silent["Suspend db-2"] = true }),
	post("shop/vm/db-2?action=suspend", 200),
	rests("shop", "Partial-Running:3 (R:3/4)"),
	post("shop/vm/db-2?action=resume", 200),
	rests("shop", "Running:4 (R:4/4)"),

	section("withdraw a creation on hold; another MCI cannot be prepared"),
	create("later", true, group("a", 2, "gcp", "asia-northeast3")),
	rests("later", "Prepared"),
	post("later?action=withdraw", 200),
	get("later", 404),
	change(func(c *cloud) { c.reject[string(tumblebug.SSHKey)] = true }),
	create("none", false, group("a", 2, "ncp", "kr")),
	rests("none", "Failed"),

	section("terminate by force during a suspend"),
	change(func(c *cloud) { c.pause(true) }),
	post("shop?action=suspend", 200),
	post("shop?action=terminate", 409),
	post("shop?action=terminate&force=true", 200),
	change(func(c *cloud) { c.pause(false) }),
	rests("shop", "Terminated:4 (R:0/4)"),
	post("shop?action=resume&force=true", 409),
	verify,
}

// demo performs the steps.
type demo struct {
	out    io.Writer
	clouds *cloud
	system *tumblebug.System
	client http.Client
	url    string
}

func (d *demo) perform(ctx context.Context, steps []step) error {
	defer d.client.CloseIdleConnections()
	for _, do := range steps {
		if err := do(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// request sends a request, and decodes the answer or returns the detail of the problem.
// Another status code is an error.
func (d *demo) request(ctx context.Context, method, path string, code int, into any) (detail string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+"/tumblebug/ns/"+ns+"/mci/"+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var problem lifecycle.ProblemDetails
	if resp.StatusCode != http.StatusOK {
		into = &problem
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return "", err
	}
	if resp.StatusCode != code {
		return "", fmt.Errorf("%s %s: HTTP %d, want %d: %+v", method, path, resp.StatusCode, code, into)
	}
	return problem.Detail, nil
}

func (d *demo) status(ctx context.Context, mci string, code int) (status tumblebug.MciStatus, err error) {
	_, err = d.request(ctx, http.MethodGet, mci+"?option=status", code, &status)
	return status, err
}

// section prints the title of the next steps.
func section(title string) step {
	return func(_ context.Context, d *demo) error {
		_, err := fmt.Fprintln(d.out, title)
		return err
	}
}

// change changes the behaviour of the clouds.
func change(f func(c *cloud)) step {
	return func(_ context.Context, d *demo) error {
		d.clouds.mu.Lock()
		defer d.clouds.mu.Unlock()
		f(d.clouds)
		return nil
	}
}

func create(name string, hold bool, groups ...tumblebug.SubGroup) step {
	return func(ctx context.Context, d *demo) error {
		_, err := d.system.CreateMci(ctx, ns, tumblebug.MciReq{Name: name, Hold: hold, SubGroups: groups})
		return err
	}
}

func group(name string, size int, provider, region string) tumblebug.SubGroup {
	return tumblebug.SubGroup{Name: name, Size: size, Provider: provider, Region: region, Spec: "2 vCPU", Image: "ubuntu22.04"}
}

func post(path string, code int) step {
	return func(ctx context.Context, d *demo) error {
		var m struct{ Message string }
		detail, err := d.request(ctx, http.MethodPost, path, code, &m)
		fmt.Fprintf(d.out, "  POST %s: HTTP %d %s\n", path, code, m.Message+detail)
		return err
	}
}

func get(mci string, code int) step {
	return func(ctx context.Context, d *demo) error {
		status, err := d.status(ctx, mci, code)
		fmt.Fprintf(d.out, "  GET %s: HTTP %d %s\n", mci, code, status.Status)
		return err
	}
}

// rests waits until the MCI and its VMs are at rest or the MCI is on hold.
func rests(mci, want string) step {
	return func(ctx context.Context, d *demo) error {
		if _, err := d.system.Wait(ctx, ns, mci); err != nil {
			return err
		}
		status, err := d.status(ctx, mci, http.StatusOK)
		if err != nil {
			return err
		}
		if status.Status != want {
			return fmt.Errorf("%s: status is %s, want %s", mci, status.Status, want)
		}
		fmt.Fprintf(d.out, "  %s: status %s, target action %s, reason %q\n",
			mci, status.Status, status.TargetAction, status.SystemMessage)
		return nil
	}
}

// verify returns an error if a resource is left.
func verify(_ context.Context, d *demo) error {
	d.clouds.mu.Lock()
	defer d.clouds.mu.Unlock()
	if n := len(d.clouds.resources); n > 0 {
		return fmt.Errorf("%d resources are left in the clouds", n)
	}
	_, err := fmt.Fprintln(d.out, "end: no network, security group or key is left in the clouds")
	return err
}
