package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLint: nothing in the tables is odd.
func TestLint(t *testing.T) {
	require.Empty(t, check.Lint(vmTable.Table(), nil).AtLeast(check.Warning))
	require.Empty(t, check.Lint(diskTable.Table(), nil).AtLeast(check.Warning))
}

// Within three minutes of virtual time the page shows every state, every kind of stuck
// objects, a full queue and waiting lock requests.
func TestWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(t.Context(), t.Output())
		require.NoError(t, err)
		page, err := w.page()
		require.NoError(t, err)
		defer page.Close()
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()

		seen := map[string]bool{}
		for ctx.Err() == nil {
			look(t, page, seen)
			time.Sleep(time.Second / 2)
			synctest.Wait()
		}
		require.NoError(t, <-ended)
		for _, want := range []string{
			"vm creating", "vm running", "vm stopping", "vm stopped", "vm starting", "vm deleting", "vm failed",
			"disk detached", "disk attaching", "disk attached", "disk detaching", "disk damaged",
			"vm stuck: dead owner", "disk stuck: deadline", "disk stuck: needs an operator",
			"queue: full", "locks: held", "locks: waiting", "owner: dead",
		} {
			require.True(t, seen[want], "%s; seen: %v", want, seen)
		}
	})
}

// look adds what the page shows now.
func look(t *testing.T, page *inspect.Page, seen map[string]bool) {
	read := func(path string, doc any) {
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), doc))
	}
	add := func(what string, ok bool) { seen[what] = seen[what] || ok }
	var overview inspect.Overview
	read("/?format=json", &overview)
	for _, m := range overview.Machines {
		for _, s := range m.States {
			add(m.Name+" "+s.State, s.Count > 0)
		}
		var machine inspect.MachinePage
		read("/machine?format=json&machine="+m.Name, &machine)
		for _, o := range machine.StuckObjects {
			add(m.Name+" stuck: dead owner", strings.HasSuffix(o.Cause, "is dead"))
			add(m.Name+" stuck: deadline", strings.HasPrefix(o.Cause, "deadline"))
			add(m.Name+" stuck: needs an operator", o.State == "damaged")
		}
	}
	for _, o := range overview.Owners {
		add("owner: dead", !o.Alive)
	}
	add("queue: full", overview.Queues[0].Waiting == maxWaiting)
	add("locks: held", overview.Locks[0].Held > 0)
	add("locks: waiting", overview.Locks[0].Waiting > 0)
}

// The program serves the page to a browser and to programs, and an operator moves the disk
// that nothing else moves.
func TestRun(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener, t.Output()) }()

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	base := "http://" + listener.Addr().String()
	for path, wants := range map[string][]string{
		"/":                     {"vm", "disk", "alpha", "beta", "racks"},
		"/machine?machine=vm":   {"creating", "deleting"},
		"/machine?machine=disk": {"disk-00", "damaged"},
		"/queues":               {"alpha", "region/seoul", "vm-"},
		"/locks":                {"racks", "/seoul", "inventory", "upgrade"},
		"/metrics": {
			`interlock_stuck_objects{cause="no-owner",machine="disk"} 1`, "interlock_transitions_total", "interlock_refusals_total",
			`interlock_queue_depth{queue="alpha"`, `interlock_lock_requests{lock="racks"`,
		},
	} {
		t.Run(path, func(t *testing.T) {
			for _, format := range []string{"html", "json"} {
				to, err := url.Parse(base + path)
				require.NoError(t, err)
				query := to.Query()
				query.Set("format", format)
				to.RawQuery = query.Encode()
				require.Eventually(t, func() bool {
					answer, err := client.Get(to.String())
					if err != nil {
						return false
					}
					defer answer.Body.Close()
					body, err := io.ReadAll(answer.Body)
					shown := err == nil && answer.StatusCode == http.StatusOK
					for _, want := range wants {
						shown = shown && strings.Contains(string(body), want)
					}
					return shown
				}, time.Minute, 20*time.Millisecond, "%s shows %v", to, wants)
			}
		})
	}

	form := url.Values{"machine": {"disk"}, "id": {"disk-00"}, "to": {"detached"}, "reason": {"restored"}}
	answer, err := client.PostForm(base+"/admin/override", form)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	stop()
	require.NoError(t, <-ended)
}

// Only requests of the same machine may use the verbs of operators.
func TestAuthorize(t *testing.T) {
	for from, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true, "192.0.2.1:1": false, "[2001:db8::1]:1": false, "": false,
	} {
		t.Run(from, func(t *testing.T) {
			actor, err := authorize(&http.Request{RemoteAddr: from}, inspect.Action{})
			require.Equal(t, want, err == nil && actor == Operator)
		})
	}
}
