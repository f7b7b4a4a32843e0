package tumblebug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// This file has tests of Handler.

// httpClient is a client of a Handler without a network.
type httpClient struct {
	*testing.T
	handler http.Handler
}

// send sends a request to a path below the namespaces.
func (c *httpClient) send(method, path string) *httptest.ResponseRecorder {
	c.Helper()
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, httptest.NewRequestWithContext(c.Context(), method, "/tumblebug/ns/"+path, nil))
	return w
}

// ok sends a request that succeeds, and returns its answer.
func (c *httpClient) ok(method, path string) string {
	c.Helper()
	w := c.send(method, path)
	require.Equal(c, http.StatusOK, w.Code, w.Body)
	require.Equal(c, "application/json", w.Header().Get("Content-Type"))
	return w.Body.String()
}

// refused sends a request that is refused, and returns the problem.
func (c *httpClient) refused(method, path string, status int, code string) lifecycle.ProblemDetails {
	c.Helper()
	w := c.send(method, path)
	require.Equal(c, status, w.Code, w.Body)
	require.Equal(c, lifecycle.ProblemContentType, w.Header().Get("Content-Type"))
	var problem lifecycle.ProblemDetails
	require.NoError(c, json.Unmarshal(w.Body.Bytes(), &problem), w.Body)
	require.Equal(c, status, problem.Status)
	require.Equal(c, code, problem.Code)
	require.NotEmpty(c, problem.Detail)
	return problem
}

// withClient runs a test with a system that has the MCI ns/m of the VMs a-1 and a-2.
func withClient(t *testing.T, test func(c *httpClient, s *tumblebug.System, clouds *cloud)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clouds := newCloud()
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		_, err := s.CreateMci(t.Context(), "ns", tumblebug.MciReq{
			Name: "m", SubGroups: []tumblebug.SubGroup{{Name: "a", Size: 2, Provider: "aws", Region: "r"}},
		})
		require.NoError(t, err)
		wait(t.Context(), t, s)
		test(&httpClient{t, tumblebug.Handler(s)}, s, clouds)
		require.NoError(t, s.Close(t.Context()))
	})
}

func message(text string) string { return `{"message":"` + text + `"}` + "\n" }

func TestHandlerStatus(t *testing.T) {
	withClient(t, func(c *httpClient, _ *tumblebug.System, _ *cloud) {
		for _, path := range []string{"ns/mci/m?option=status", "ns/mci/m"} {
			require.JSONEq(c, `{
				"id": "m", "name": "m", "status": "Running:2 (R:2/2)",
				"statusCount": {
					"countTotal": 2, "countCreating": 0, "countRunning": 2, "countFailed": 0, "countSuspended": 0, "countRebooting": 0,
					"countTerminated": 0, "countSuspending": 0, "countResuming": 0, "countTerminating": 0, "countUndefined": 0
				},
				"targetStatus": "None", "targetAction": "None",
				"vm": [
					{"id": "a-1", "name": "a-1", "subGroupId": "a", "provider": "aws", "region": "r", "status": "Running", "targetStatus": "None", "targetAction": "None"},
					{"id": "a-2", "name": "a-2", "subGroupId": "a", "provider": "aws", "region": "r", "status": "Running", "targetStatus": "None", "targetAction": "None"}
				]
			}`, c.ok(http.MethodGet, path))
		}
		c.ok(http.MethodHead, "ns/mci/m?option=status")
	})
}

// The answers to an action are those of System, and so are its effects.
func TestHandlerActions(t *testing.T) {
	withClient(t, func(c *httpClient, s *tumblebug.System, clouds *cloud) {
		require.Equal(c, message("Suspending the MCI"), c.ok(http.MethodPost, "ns/mci/m?action=suspend"))
		problem := c.refused(http.MethodPost, "ns/mci/m?action=resume", http.StatusConflict, "busy")
		require.Equal(c, "MCI is under Suspend, please try later", problem.Detail)
		require.Equal(c, message("Resuming the MCI"), c.ok(http.MethodPost, "ns/mci/m?action=resume&force=true"))
		require.Equal(c, "Running:2 (R:2/2)", wait(c.Context(), c.T, s).Status)

		require.Equal(c, message("Rebooting the VM"), c.ok(http.MethodPost, "ns/mci/m/vm/a-1?action=Reboot&force=false"))
		require.Equal(c, "Running:2 (R:2/2)", wait(c.Context(), c.T, s).Status)
		clouds.change(func() { clouds.faults["suspend a-2"] = "break" })
		require.Equal(c, message("Suspending the VM"), c.ok(http.MethodPost, "ns/mci/m/vm/a-2?action=suspend"))
		require.Equal(c, "Partial-Failed:1 (R:1/2)", status(c.Context(), c.T, s, "Failed"))
		require.Equal(c, message("Refined the MCI"), c.ok(http.MethodPost, "ns/mci/m?action=refine"))
		require.Equal(c, "Running:1 (R:1/1)", wait(c.Context(), c.T, s).Status)

		c.refused(http.MethodPost, "ns/mci/m/vm/a-1?action=resume", http.StatusForbidden, "forced-only")
		require.Equal(c, message("Resuming the VM"), c.ok(http.MethodPost, "ns/mci/m/vm/a-1?action=resume&force=1"))
		wait(c.Context(), c.T, s)
		require.Equal(c, message("Terminating the MCI"), c.ok(http.MethodPost, "ns/mci/m?action=terminate"))
		require.Equal(c, "Terminated:1 (R:0/1)", wait(c.Context(), c.T, s).Status)
		c.refused(http.MethodPost, "ns/mci/m?action=resume&force=true", http.StatusConflict, "not-allowed")
		require.Equal(c, message("The MCI is Terminated"), c.ok(http.MethodPost, "ns/mci/m?action=terminate&force=true"))
		require.Equal(c, message("The VM is Terminated"), c.ok(http.MethodPost, "ns/mci/m/vm/a-1?action=terminate&force=true"))
	})
}

// status waits until the MCI rests, and returns its rendered status. One of its VMs has
// this state.
func status(ctx context.Context, t *testing.T, s *tumblebug.System, vm tumblebug.State) string {
	t.Helper()
	now := wait(ctx, t, s)
	for _, one := range now.Vm {
		if one.Status == vm {
			return now.Status
		}
	}
	require.Fail(t, "no VM is "+string(vm), now.Status)
	return ""
}

func TestHandlerContinueAndWithdraw(t *testing.T) {
	withClient(t, func(c *httpClient, s *tumblebug.System, _ *cloud) {
		group := []tumblebug.SubGroup{{Name: "a", Provider: "aws", Region: "r"}}
		for _, name := range []string{"go-on", "stop"} {
			_, err := s.CreateMci(c.Context(), "ns", tumblebug.MciReq{Name: name, SubGroups: group, Hold: true})
			require.NoError(c, err)
			_, err = s.Wait(c.Context(), "ns", name)
			require.NoError(c, err)
		}
		require.Equal(c, message("Continue the holding MCI"), c.ok(http.MethodPost, "ns/mci/go-on?action=continue"))
		c.refused(http.MethodPost, "ns/mci/go-on?action=withdraw", http.StatusConflict, "not-allowed")
		held, err := s.Wait(c.Context(), "ns", "go-on")
		require.NoError(c, err)
		require.Equal(c, tumblebug.Running, held.State)
		require.Equal(c, message("Withdraw the holding MCI"), c.ok(http.MethodPost, "ns/mci/stop?action=withdraw"))
		c.refused(http.MethodGet, "ns/mci/stop?option=status", http.StatusNotFound, "not-found")
	})
}

// A refused request changes nothing.
func TestHandlerRefuses(t *testing.T) {
	long := strings.Repeat("n", 64)
	withClient(t, func(c *httpClient, s *tumblebug.System, clouds *cloud) {
		before, err := s.MCIs().Get(c.Context(), "ns/m")
		require.NoError(c, err)
		clouds.newCalls()
		for _, refused := range []struct {
			method, path string
			status       int
			code, detail string
		}{
			{"GET", "ns/mci/m?option=everything", 400, "invalid", `option "everything"`},
			{"GET", "ns/mci/m?option=", 400, "invalid", `option ""`},
			{"GET", "ns/mci/m?option=status&option=status", 400, "invalid", `"option" is not supported, or is given twice`},
			{"GET", "ns/mci/m?verbose=true", 400, "invalid", `"verbose" is not supported, or is given twice`},
			{"GET", "ns/mci/m?option=%zz", 400, "invalid", "query"},
			{"GET", "ns/mci/none?option=status", 404, "not-found", "not found"},
			{"GET", "ns/mci/" + long, 400, "invalid", "MCI name"},
			{"GET", "ns/mci/a%2Fb", 400, "invalid", `"a/b"`},
			{"GET", "ns%2Fmci/mci/m", 400, "invalid", `"ns/mci"`},
			{"GET", "ns/mci/a%00", 400, "invalid", `\x00`},
			{"GET", "ns/mci/%3Cscript%3E", 400, "invalid", "script"},
			{"GET", "ns/mci/%FF", 400, "invalid", `\xff`},
			{"GET", "ns/mci/%2E%2E", 400, "invalid", `".."`},
			{"GET", "%2E/mci/m", 400, "invalid", `"."`},
			{"POST", "ns/mci/m/vm/%2E%2E%2Fm?action=suspend", 400, "invalid", `"../m"`},
			{"GET", "ns/mci/M", 404, "not-found", "not found"},
			{"GET", "ns/mci/...", 400, "invalid", `"..."`},
			{"POST", "ns/mci/m", 400, "invalid", `action ""`},
			{"POST", "ns/mci/m?action=create", 400, "invalid", `action "create"`},
			{"POST", "ns/mci/m?action=suspend&action=terminate", 400, "invalid", `"action" is not supported, or is given twice`},
			{"POST", "ns/mci/m?action=suspend&force=perhaps", 400, "invalid", `force "perhaps"`},
			{"POST", "ns/mci/m?action=suspend&force", 400, "invalid", `force ""`},
			{"POST", "ns/mci/m?action=suspend&dry=true", 400, "invalid", `"dry" is not supported, or is given twice`},
			{"POST", "ns/mci/m?action=suspend;force=true", 400, "invalid", "query"},
			{"POST", "ns/mci/m?action=continue", 409, "not-allowed", "not on hold"},
			{"POST", "ns/mci/m?action=resume", 403, "forced-only", "resume"},
			{"POST", "ns/mci/none?action=suspend", 404, "not-found", "not found"},
			{"POST", "ns/mci/m/vm/a-9?action=suspend", 404, "not-found", "not found"},
			{"POST", "ns/mci/m/vm/a-1?action=refine", 400, "invalid", `action "refine"`},
			{"POST", "ns/mci/m/vm/a-1?action=resume", 403, "forced-only", "resume"},
			{"POST", "ns/mci/m/vm/a-1?option=status", 400, "invalid", `"option" is not supported, or is given twice`},
		} {
			c.Log(refused.method, refused.path)
			problem := c.refused(refused.method, refused.path, refused.status, refused.code)
			require.Contains(c, strings.ToLower(problem.Detail), strings.ToLower(refused.detail))
		}
		// A path that leaves the namespaces leads nowhere.
		require.Equal(c, "/tumblebug/mci/m", c.send(http.MethodGet, "../mci/m").Header().Get("Location"))
		require.Equal(c, http.StatusMethodNotAllowed, c.send(http.MethodPatch, "ns/mci/m").Code)
		require.Equal(c, http.StatusNotFound, c.send(http.MethodGet, "ns/mci/m/vm").Code)
		require.Equal(c, "GET, HEAD, POST", c.send(http.MethodPatch, "ns/mci/m").Header().Get("Allow"))
		require.Equal(c, "POST", c.send(http.MethodPatch, "ns/mci/m/vm/a-1").Header().Get("Allow"))
		require.Empty(c, clouds.newCalls())
		after, err := s.MCIs().Get(c.Context(), "ns/m")
		require.NoError(c, err)
		require.Equal(c, before, after)

		require.NoError(c, s.Close(c.Context()))
		c.refused(http.MethodPost, "ns/mci/m?action=suspend", http.StatusServiceUnavailable, "shutting-down")
	})
}

// An error of the store is a problem without the text of the store.
func TestHandlerHidesTheStore(t *testing.T) {
	store := scripttest.NewStore()
	store.Refuse(scripttest.Call{Method: "Get"}, fmt.Errorf("%w: dial db: password=secret", lifecycle.ErrUnavailable))
	c := &httpClient{t, tumblebug.Handler(tumblebug.Must(store, newCloud(), nil))}
	problem := c.refused(http.MethodGet, "ns/mci/m", http.StatusServiceUnavailable, "unavailable")
	require.NotContains(t, problem.Detail, "password")
}

// A Handler does not read bodies: a body of any size costs nothing, and parameters in it
// have no effect.
func TestHandlerReadsNoBody(t *testing.T) {
	withClient(t, func(c *httpClient, _ *tumblebug.System, _ *cloud) {
		r := httptest.NewRequestWithContext(c.Context(), http.MethodPost, "/tumblebug/ns/ns/mci/m?action=suspend", unreadable{})
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		require.Equal(c, message("Suspending the MCI"), w.Body.String())
	})
}

type unreadable struct{}

func (unreadable) Read([]byte) (int, error) { panic("the body is read") }

// The context of a request ends its store calls, and not the action that it has started.
func TestHandlerUsesTheContextOfTheRequest(t *testing.T) {
	withClient(t, func(c *httpClient, s *tumblebug.System, _ *cloud) {
		ctx, cancel := context.WithCancel(c.Context())
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/tumblebug/ns/ns/mci/m?action=suspend", nil))
		require.Equal(c, http.StatusOK, w.Code)
		cancel()
		require.Equal(c, "Suspended:2 (R:0/2)", wait(c.Context(), c.T, s).Status)

		w = httptest.NewRecorder()
		c.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/tumblebug/ns/ns/mci/m?action=resume", nil))
		require.Equal(c, lifecycle.StatusClientClosedRequest, w.Code, w.Body)
	})
}
