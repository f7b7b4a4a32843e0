package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// unauthorized is an error with a status of its own.
type unauthorized struct{}

func (unauthorized) Error() string   { return "log in first" }
func (unauthorized) HTTPStatus() int { return http.StatusUnauthorized }

// admin is the handler of a world's verbs with its audit.
type admin struct {
	http.Handler
	audit []inspect.Action
}

func newAdmin(t *testing.T, page *inspect.Page) *admin {
	a := &admin{}
	authorize := func(r *http.Request, action inspect.Action) (fsm.Actor, error) {
		switch user := r.Header.Get("User"); {
		case user == "":
			return "", unauthorized{}
		case user == "guest" && action.Verb == "override":
			return "", errors.New("guests may not override")
		case user == "nameless":
			return "", nil
		default:
			return fsm.Actor(user), nil
		}
	}
	audit := func(_ context.Context, action inspect.Action) { a.audit = append(a.audit, action) }
	var err error
	a.Handler, err = page.Admin(authorize, audit)
	require.NoError(t, err)
	return a
}

// post sends a form. Headers are pairs.
func (a *admin) post(path, form string, header ...string) *http.Response {
	r := httptest.NewRequest("POST", path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User", "root")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result()
}

// TestAdmin performs every verb. Each is in the audit.
func TestAdmin(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := newAdmin(t, w.page)
		do := func(path, form string) inspect.Action {
			t.Helper()
			answer := a.post(path, form+"&reason=a+test")
			require.Equal(t, http.StatusOK, answer.StatusCode, body(t, answer))
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
			action := a.audit[len(a.audit)-1]
			require.Equal(t, strings.TrimPrefix(path, "/"), action.Verb)
			require.Equal(t, fsm.Actor("root"), action.Actor)
			require.Equal(t, "a test", action.Reason)
			return action
		}
		do("/override", "machine=vm&id=vm-up&to=failed")
		rec, err := w.vms.Get(t.Context(), "vm-up")
		require.NoError(t, err)
		require.Equal(t, []string{"failed", "root", "a test"}, []string{rec.State, string(rec.Actor), rec.Reason})

		paused := func() bool { return w.queue.Classes()[1].Paused }
		do("/pause", "queue=vm,+disk&class=aws")
		require.True(t, paused())
		do("/resume", "queue=vm,+disk&class=aws")
		require.False(t, paused())

		do("/revoke", "lock=deploys&token=1")
		do("/break", "lock=deploys&token=1")
		synctest.Wait()
		require.Equal(t, 1, w.tree.Counts().Held, "the waiter has got its lock")

		do("/abandon", "queue=vm,+disk&machine=vm&id=vm-new")
		require.Equal(t, 1, w.queue.Stats().Abandoned)
		require.Len(t, a.audit, 6)
	})
}

// status is an error with any status code.
type status int

func (status) Error() string     { return "no" }
func (s status) HTTPStatus() int { return int(s) }

// TestAdminStatus: the status of a refusal is that of an error.
func TestAdminStatus(t *testing.T) {
	page, err := inspect.New(nil)
	require.NoError(t, err)
	for code, want := range map[status]int{0: 403, 200: 403, 302: 403, 404: 404, 503: 503, 1000: 403} {
		t.Run(fmt.Sprint(int(code)), func(t *testing.T) {
			authorize := func(*http.Request, inspect.Action) (fsm.Actor, error) { return "", code }
			h, err := page.Admin(authorize, func(context.Context, inspect.Action) {})
			require.NoError(t, err)
			require.Equal(t, want, (&admin{Handler: h}).post("/pause", "queue=q&reason=x").StatusCode)
		})
	}
}

// TestAdminKeys: continue and abandon find the key that the page shows.
func TestAdminKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[string]{HaltOnFailure: true})
		page, err := inspect.New(&inspect.Config{Queues: map[string]inspect.Queue{"q": inspect.OfQueue(q)}})
		require.NoError(t, err)
		a := newAdmin(t, page)
		end := make(chan struct{})
		submit := func(key string, run func(context.Context) error) {
			_, err := q.Submit(t.Context(), key, &queue.Action{Name: "work", Run: run})
			require.NoError(t, err)
		}
		submit("a b", func(context.Context) error { return errBoom })
		submit("hangs", func(context.Context) error { <-end; return nil })
		synctest.Wait()
		require.Contains(t, body(t, ask(page, "GET", "/queues")), "halted")

		require.Equal(t, "not-halted", problem(t, a.post("/continue", "queue=q&key=hangs&reason=x")).Code)
		require.Equal(t, http.StatusOK, a.post("/continue", "queue=q&key=a+b&reason=x").StatusCode)
		require.Equal(t, "not-running", problem(t, a.post("/abandon", "queue=q&key=a+b&reason=x")).Code)
		require.Equal(t, http.StatusOK, a.post("/abandon", "queue=q&key=hangs&reason=x").StatusCode)
		require.Equal(t, 1, q.Stats().Abandoned)
		require.Error(t, a.audit[0].Err)
		close(end)
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// broken is a lock tree with a fault.
type broken struct{ lock.Locker }

func (broken) Revoke(context.Context, lock.Token, string) error { panic(errBoom) }

// TestAdminPanic: an action that panicked is in the audit too.
func TestAdminPanic(t *testing.T) {
	page, err := inspect.New(&inspect.Config{Locks: map[string]lock.Locker{"deploys": broken{lock.Must(nil)}}})
	require.NoError(t, err)
	a := newAdmin(t, page)
	require.PanicsWithValue(t, errBoom, func() { a.post("/revoke", "lock=deploys&token=1&reason=x") })
	require.ErrorContains(t, a.audit[0].Err, "panicked")
}

// TestAdminRefuses: what is refused changes nothing, and is not in the audit.
func TestAdminRefuses(t *testing.T) {
	const override = "machine=vm&id=vm-up&to=failed&reason=x"
	for _, c := range []struct {
		name, path, form string
		header           []string
		code             string
		status           int
	}{
		{"another site", "/override", override, []string{"Sec-Fetch-Site", "cross-site"}, "cross-site", 403},
		{"another origin", "/override", override, []string{"Origin", "https://evil.example"}, "cross-site", 403},
		{"not logged in", "/override", override, []string{"User", ""}, "other", 401},
		{"not permitted", "/override", override, []string{"User", "guest"}, "forbidden", 403},
		{"no actor", "/override", override, []string{"User", "nameless"}, "forbidden", 403},
		{"unknown verb", "/delete", override, nil, "not-found", 404},
		{"no reason", "/override", "machine=vm&id=vm-up&to=failed&reason=+", nil, "invalid", 400},
		{"parameters in the address", "/override?" + override, "", nil, "invalid", 400},
		{"bad form", "/override", "%zz", nil, "invalid", 400},
		{"long form", "/override", override + strings.Repeat("x", 1<<16), nil, "invalid", 400},
		{"another form", "/override", override, []string{"Content-Type", "multipart/form-data; boundary=x"}, "invalid", 400},
		{"bad token", "/revoke", "lock=deploys&token=x&reason=x", nil, "invalid", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := newAdmin(t, w.page)
				answer := a.post(c.path, c.form, c.header...)
				require.Equal(t, c.code, problem(t, answer).Code)
				require.Equal(t, c.status, answer.StatusCode)
				require.Empty(t, a.audit)
				rec, err := w.vms.Get(t.Context(), "vm-up")
				require.NoError(t, err)
				require.Equal(t, "running", rec.State)
			})
		})
	}
	page, err := inspect.New(nil)
	require.NoError(t, err)
	answer := ask(newAdmin(t, page), "GET", "/override?"+override)
	require.Equal(t, "POST", answer.Header.Get("Allow"))
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
	answer = newAdmin(t, page).post("/pause", `{"queue": "q", "reason": "x"}`, "Content-Type", "application/json")
	require.Equal(t, `lifecycle: invalid request: Content-Type "application/json" is not application/x-www-form-urlencoded`, problem(t, answer).Detail)
	_, err = page.Admin(nil, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// TestAdminFails: what is permitted and fails is in the audit.
func TestAdminFails(t *testing.T) {
	for _, c := range []struct{ name, path, form, code string }{
		{"no machine", "/override", "machine=none", "not-found"},
		{"no queue", "/pause", "queue=none", "not-found"},
		{"no lock", "/revoke", "lock=none", "not-found"},
		{"no state", "/override", "machine=vm&id=vm-up&to=none", "unknown-state"},
		{"no grant", "/revoke", "lock=deploys&token=99", "not-held"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := newAdmin(t, w.page)
				require.Equal(t, c.code, problem(t, a.post(c.path, c.form+"&reason=x")).Code)
				require.Len(t, a.audit, 1)
				require.Error(t, a.audit[0].Err)
				rec, err := w.vms.Get(t.Context(), "vm-up")
				require.NoError(t, err)
				require.Equal(t, "running", rec.State)
			})
		})
	}
}
