package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/interlock-go/interlock/lifecycle"
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

// request sends a request, and decodes the answer or returns the detail of the problem.
// Another status code is an error.
func (d *demo) request(ctx context.Context, method, path string, code int, into any) (detail string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+"/tumblebug/ns/"+ns+"/mci/"+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
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

func (d *demo) createMci(ctx context.Context, name string, hold bool, groups ...tumblebug.SubGroup) {
	_, err := d.system.CreateMci(ctx, ns, tumblebug.MciReq{Name: name, Hold: hold, SubGroups: groups})
	d.keep(err)
}

func group(name string, size int, provider, region string) tumblebug.SubGroup {
	return tumblebug.SubGroup{Name: name, Size: size, Provider: provider, Region: region, Spec: "2 vCPU", Image: "ubuntu22.04"}
}

// post sends an action, whose answer must have the status code.
func (d *demo) post(ctx context.Context, path string, code int) {
	var m struct{ Message string }
	detail, err := d.request(ctx, http.MethodPost, path, code, &m)
	d.keep(err)
	d.printf("  POST %s: HTTP %d %s", path, code, m.Message+detail)
}

// get returns the status of an MCI. The answer must have the status code.
func (d *demo) get(ctx context.Context, mci string, code int) (status tumblebug.MciStatus) {
	_, err := d.request(ctx, http.MethodGet, mci+"?option=status", code, &status)
	d.keep(err)
	return status
}

// rests waits until the MCI and its VMs are at rest or the MCI is on hold. The MCI must then
// have a status.
func (d *demo) rests(ctx context.Context, mci, want string) {
	_, err := d.system.Wait(ctx, ns, mci)
	d.keep(err)
	status := d.get(ctx, mci, http.StatusOK)
	if status.Status != want {
		d.keep(fmt.Errorf("%s: status is %s, want %s", mci, status.Status, want))
	}
	d.printf("  %s: status %s, target action %s, reason %q", mci, status.Status, status.TargetAction, status.SystemMessage)
}
