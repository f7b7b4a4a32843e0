// Tumblebug serves the three endpoints of CB-Tumblebug's document over simulated
// clouds that take their time, fail, do not answer and lie, and asks for things
// over HTTP like any other client: an MCI of which a VM cannot be made, actions
// while another one is under way, a reboot that looks done before it has begun,
// creations that are held, taken back and rolled back, force, and a cache.
//
// It prints the story, and fails if anything ends where it should not.
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

// run serves, tells the story, and ends the server.
func run(ctx context.Context, out io.Writer) error {
	s := &story{ctx: ctx, out: out, cloud: newCloud(30 * time.Millisecond)}
	var err error
	s.system, err = tumblebug.New(lifecycle.NewMemoryStore(), s.cloud, &tumblebug.Config{Poll: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url = "http://" + listener.Addr().String() + "/tumblebug/ns/" + ns + "/mci/"
	server := &http.Server{Handler: serve(s.system), ReadHeaderTimeout: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // until Shutdown, below
	s.client = &http.Client{Transport: &http.Transport{}}
	s.tell()
	s.client.CloseIdleConnections()
	s.note(server.Shutdown(ctx))
	<-ended
	s.note(s.system.Close(ctx))
	return s.err
}

// story tells steps until one goes wrong.
type story struct {
	ctx    context.Context // of one run, which is one call
	out    io.Writer
	cloud  *cloud
	system *tumblebug.System
	client *http.Client
	url    string
	err    error
}

func (s *story) tell() {
	s.say("an MCI of five VMs at two providers; one VM cannot be made")
	s.cloud.change(func() { s.cloud.reject["Create web-3"] = true })
	s.create(tumblebug.MciReq{Name: "shop", SubGroups: []tumblebug.SubGroup{group("web", 3, "aws", "ap-northeast-2"), group("db", 2, "azure", "koreacentral")}})
	s.rests("shop", "Partial-Running:4 (R:4/5)")
	s.post("shop?action=refine", 200)
	s.rests("shop", "Running:4 (R:4/4)")

	s.say("somebody suspends it; somebody else is too early, then too late, then wrong")
	open := s.cloud.close()
	s.post("shop?action=suspend", 200)
	s.post("shop?action=resume", 409)
	s.post("shop/vm/db-1?action=terminate", 409)
	open()
	s.rests("shop", "Suspended:4 (R:0/4)")
	s.post("shop?action=suspend", 403)
	s.post("shop?action=explode", 400)
	s.post("shop?action=resume", 200)
	s.rests("shop", "Running:4 (R:4/4)")

	s.say("one VM is suspended alone, and a provider does not answer, but does it")
	s.cloud.change(func() { s.cloud.mute["Suspend db-2"] = true })
	s.post("shop/vm/db-2?action=suspend", 200)
	s.rests("shop", "Partial-Running:3 (R:3/4)")
	s.post("shop/vm/db-2?action=resume", 200)
	s.rests("shop", "Running:4 (R:4/4)")

	s.say("a provider says that a reboot is done when it has not begun, and then that the VM is gone")
	s.cloud.change(func() {
		s.cloud.lies["web-1"] = []tumblebug.State{tumblebug.Running, tumblebug.Terminated}
	})
	s.post("shop?action=reboot", 200)
	s.rests("shop", "Running:4 (R:4/4)")

	s.say("a creation is held, and taken back; another one is rolled back; a third has no network")
	s.create(tumblebug.MciReq{Name: "later", Hold: true, SubGroups: []tumblebug.SubGroup{group("a", 2, "gcp", "asia-northeast3")}})
	s.held("later")
	s.post("later?action=withdraw", 200)
	s.get("later", 404)
	s.cloud.change(func() { s.cloud.reject["Create a-2"] = true })
	s.create(tumblebug.MciReq{Name: "all", Policy: tumblebug.Rollback, SubGroups: []tumblebug.SubGroup{group("a", 2, "gcp", "asia-northeast3")}})
	s.rests("all", "Failed")
	s.cloud.change(func() { s.cloud.reject[string(tumblebug.SSHKey)] = true })
	s.create(tumblebug.MciReq{Name: "none", SubGroups: []tumblebug.SubGroup{group("a", 2, "ncp", "kr")}})
	s.rests("none", "Failed")

	s.say("a suspend hangs, and is interrupted by force; then all is terminated")
	open = s.cloud.close()
	s.post("shop?action=suspend", 200)
	s.post("shop?action=terminate", 409)
	s.post("shop?action=terminate&force=true", 200)
	open()
	s.rests("shop", "Terminated:4 (R:0/4)")
	s.post("shop?action=resume&force=true", 409)

	before := s.system.Stats()
	s.get("shop", 200)
	after := s.system.Stats()
	s.say("what is Terminated is not asked about: %d calls, %d saved", after.Fetched-before.Fetched, after.Saved-before.Saved)
	if after.Fetched != before.Fetched || after.Saved-before.Saved != 4 {
		s.note(fmt.Errorf("the cache has %+v after %+v", after, before))
	}
	if n := s.cloud.resources(); n != 0 {
		s.note(fmt.Errorf("%d networks, security groups and keys are left", n))
	}
	s.say("no network, security group or key is left")
}

func group(name string, size int, provider, region string) tumblebug.SubGroup {
	return tumblebug.SubGroup{Name: name, Size: size, Provider: provider, Region: region, Spec: "2 vCPU", Image: "ubuntu22.04"}
}

func (s *story) say(format string, args ...any) {
	if s.err == nil {
		fmt.Fprintf(s.out, format+"\n", args...)
	}
}

// note keeps the first error.
func (s *story) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *story) create(req tumblebug.MciReq) {
	if s.err == nil {
		_, err := s.system.CreateMci(s.ctx, ns, req)
		s.note(err)
	}
}

// ask sends a request, and fails if its code is not the wanted one.
func (s *story) ask(method, path string, code int, into any) {
	if s.err != nil {
		return
	}
	req, err := http.NewRequestWithContext(s.ctx, method, s.url+path, nil)
	if err != nil {
		s.err = err
		return
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.err = err
		return
	}
	defer resp.Body.Close()
	s.note(json.NewDecoder(resp.Body).Decode(into))
	if resp.StatusCode != code {
		s.note(fmt.Errorf("%s %s: HTTP %d, not %d: %+v", method, path, resp.StatusCode, code, into))
	}
}

func (s *story) post(path string, code int) {
	var m message
	s.ask(http.MethodPost, path, code, &m)
	s.say("  POST %s: HTTP %d %s", path, code, m.Message)
}

func (s *story) get(mci string, code int) (status tumblebug.MciStatus) {
	s.ask(http.MethodGet, mci+"?option=status", code, &status)
	if code != http.StatusOK {
		s.say("  GET %s: HTTP %d", mci, code)
	}
	return status
}

// rests waits until the MCI and its VMs rest, and fails if its status is then
// another one.
func (s *story) rests(mci, want string) {
	if s.err != nil {
		return
	}
	_, err := s.system.Wait(s.ctx, ns, mci)
	s.note(err)
	status := s.get(mci, http.StatusOK)
	if s.err == nil && (status.Status != want || status.TargetAction != tumblebug.ActionComplete) {
		s.err = fmt.Errorf("%s is %s, not %s", mci, status.Status, want)
	}
	why := ""
	if status.SystemMessage != "" {
		why = ", because " + status.SystemMessage
	}
	s.say("  %s is %s%s", mci, status.Status, why)
}

// held waits until the MCI is on hold.
func (s *story) held(mci string) {
	if s.err != nil {
		return
	}
	status, err := s.system.Wait(s.ctx, ns, mci)
	s.note(err)
	if s.err == nil && status.State != tumblebug.Prepared {
		s.err = fmt.Errorf("%s is %s, and not on hold", mci, status.State)
	}
	s.say("  %s is %s, %s to %s", mci, status.Status, status.TargetAction, status.TargetStatus)
}
