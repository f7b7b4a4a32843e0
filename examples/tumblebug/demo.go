package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

const ns = "default"

// demo is a client of the server. It keeps the first error, and prints nothing after it.
type demo struct {
	out    io.Writer
	clouds *cloud
	system *tumblebug.System
	url    string
	err    error
}

// keep keeps the first error.
func (d *demo) keep(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *demo) printf(format string, args ...any) {
	if d.err == nil {
		fmt.Fprintf(d.out, format+"\n", args...)
	}
}

// send sends a request, and decodes the answer, which must have the status code.
func (d *demo) send(ctx context.Context, method, path string, code int, into any) {
	request, err := http.NewRequestWithContext(ctx, method, d.url+"/tumblebug/ns/"+ns+"/mci/"+path, nil)
	if err != nil {
		d.keep(err)
		return
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		d.keep(err)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	d.keep(err)
	if answer.StatusCode != code {
		d.keep(fmt.Errorf("%s %s: HTTP %d, want %d: %s", method, path, answer.StatusCode, code, body))
	}
	d.keep(json.Unmarshal(body, into))
}

func (d *demo) createMci(ctx context.Context, name string, hold bool, groups ...tumblebug.SubGroup) {
	_, err := d.system.CreateMci(ctx, ns, tumblebug.MciReq{Name: name, Hold: hold, SubGroups: groups})
	d.keep(err)
}

func group(name string, size int, provider, region string) tumblebug.SubGroup {
	return tumblebug.SubGroup{Name: name, Size: size, Provider: provider, Region: region, Spec: "2 vCPU", Image: "ubuntu22.04"}
}

// post sends an action, whose answer must have the status code.
func (d *demo) post(ctx context.Context, path string, code int) {
	var answer struct{ Message, Detail string } // a refusal has a detail
	d.send(ctx, http.MethodPost, path, code, &answer)
	d.printf("  POST %s: HTTP %d %s", path, code, answer.Message+answer.Detail)
}

// rests waits until the MCI and its VMs are at rest or the MCI is on hold. The MCI must then
// have a status.
func (d *demo) rests(ctx context.Context, mci, want string) {
	_, err := d.system.Wait(ctx, ns, mci)
	d.keep(err)
	var status tumblebug.MciStatus
	d.send(ctx, http.MethodGet, mci+"?option=status", http.StatusOK, &status)
	if status.Status != want {
		d.keep(fmt.Errorf("%s: status is %s, want %s", mci, status.Status, want))
	}
	d.printf("  %s: status %s, target action %s, reason %q", mci, status.Status, status.TargetAction, status.SystemMessage)
}
