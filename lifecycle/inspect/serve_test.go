package inspect_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

func body(t *testing.T, answer *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(data)
}

// problem returns the problem of an answer, which has its media type and status.
func problem(t *testing.T, answer *http.Response) (p lifecycle.ProblemDetails) {
	t.Helper()
	require.Equal(t, lifecycle.ProblemContentType, answer.Header.Get("Content-Type"))
	require.NoError(t, json.Unmarshal([]byte(body(t, answer)), &p))
	require.Equal(t, answer.StatusCode, p.Status)
	return p
}

// TestMethods: the page answers GET and HEAD.
func TestMethods(t *testing.T) {
	page, err := inspect.New(nil)
	require.NoError(t, err)
	for _, url := range []string{"/", "/queues", "/events", "/static/style.css", "/nowhere"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"} {
			t.Run(method+" "+url, func(t *testing.T) {
				answer := ask(page, method, url, "Accept", "application/json")
				require.Equal(t, "GET, HEAD", answer.Header.Get("Allow"))
				require.Equal(t, "method-not-allowed", problem(t, answer).Code)
			})
		}
		if url != "/nowhere" {
			require.Equal(t, http.StatusOK, ask(page, "HEAD", url).StatusCode, url)
		}
	}
}

// TestHeaders: every answer has the strict headers, and only the page of the picture may
// compile WebAssembly.
func TestHeaders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		urls := []string{"/picture?machine=vm", "/picture.dot?machine=vm", "/static/style.css", "/static/picture.js", "/nowhere", "/machine?machine=none"}
		for _, url := range routes {
			urls = append(urls, url, url+"&format=json")
		}
		for _, url := range urls {
			h := ask(w.page, "GET", url).Header
			policy := h.Get("Content-Security-Policy")
			require.True(t, strings.HasPrefix(policy, "default-src 'none'; script-src 'self'"), url)
			require.Contains(t, policy, "base-uri 'none'; form-action 'none'; frame-ancestors ", url)
			require.NotContains(t, policy, "unsafe-inline", url)
			require.NotContains(t, policy, "'unsafe-eval'", url)
			require.Equal(t, strings.HasPrefix(url, "/picture?"), strings.Contains(policy, "wasm-unsafe-eval"), url)
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), url)
			require.Equal(t, "no-referrer", h.Get("Referrer-Policy"), url)
			require.NotEmpty(t, h.Get("Content-Type"), url)
			if strings.HasPrefix(url, "/static/") {
				require.Equal(t, "no-cache", h.Get("Cache-Control"), url)
			} else {
				require.Equal(t, "no-store", h.Get("Cache-Control"), url)
			}
		}
	})
}

// TestForm: a request chooses between page and document.
func TestForm(t *testing.T) {
	page, err := inspect.New(nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		url, accept string
		json        bool
	}{
		"no header Accept":                    {"/", "", false},
		"anything":                            {"/", "*/*", false},
		"a browser":                           {"/", "text/html,application/xhtml+xml,*/*;q=0.8", false},
		"HTML and JSON":                       {"/", "text/html, application/json", false},
		"JSON":                                {"/", "application/json", true},
		"the parameter for HTML, beside JSON": {"/?format=html", "application/json", false},
		"the parameter for JSON, beside HTML": {"/?format=json", "text/html", true},
	} {
		t.Run(name, func(t *testing.T) {
			media := ask(page, "GET", c.url, "Accept", c.accept).Header.Get("Content-Type")
			require.Equal(t, c.json, media == "application/json", media)
		})
	}
}

// TestErrors: what does not exist, and bad parameters.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		url, code string
		status    int
	}{
		{"/nowhere", "not-found", 404},
		{"//", "not-found", 404},
		{"/machine", "not-found", 404},
		{"/machine?machine=none", "not-found", 404},
		{"/objects?machine=none", "not-found", 404},
		{"/object?machine=none&id=a", "not-found", 404},
		{"/picture?machine=none", "not-found", 404},
		{"/picture.dot?machine=none", "not-found", 404},
		{"/events?machine=none", "not-found", 404},
		{"/object?machine=vm&id=none", "not-found", 404},
		{"/object?machine=vm", "invalid", 400},
		{"/object?machine=vm&id=%00", "invalid", 400},
		{"/object?machine=vm&id=%ff", "invalid", 400},
		{"/object?machine=vm&id=vm-up&before=x", "invalid", 400},
		{"/objects?machine=vm&state=none", "unknown-state", 400},
		{"/objects?machine=vm&limit=0", "invalid", 400},
		{"/objects?machine=vm&limit=-1", "invalid", 400},
		{"/objects?machine=vm&limit=1001", "invalid", 400},
		{"/objects?machine=vm&limit=99999999999999999999", "invalid", 400},
		{"/objects?machine=vm&after=%ff", "invalid", 400},
		{"/objects?machine=vm&state=%zz", "invalid", 400},
		{"/objects?machine=vm&state=running;stuck=1", "invalid", 400},
		{"/events?machine=%zz", "invalid", 400},
		{"/objects?machine=vm&stuck=1&limit=1001", "invalid", 400},
		{"/objects?machine=vm&stuck=1&state=running", "invalid", 400},
		{"/objects?machine=vm&stuck=yes", "invalid", 400},
		{"/objects?machine=vm&stuck=true&state=running", "invalid", 400},
		{"/machine?machine=vm&format=xml", "invalid", 400},
		{"/picture.dot?machine=vm&at=none", "unknown-state", 400},
		{"/static/", "not-found", 404},
		{"/static/../doc.go", "not-found", 404},
		{"/static/graphviz", "not-found", 404},
		{"/static/none.css", "not-found", 404},
	} {
		t.Run(c.url, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				answer := ask(w.page, "GET", c.url, "Accept", "application/json")
				require.Equal(t, c.code, problem(t, answer).Code)
				require.Equal(t, c.status, answer.StatusCode)
				answer = ask(w.page, "GET", c.url)
				require.Equal(t, c.status, answer.StatusCode)
				require.Contains(t, body(t, answer), "<h1>")
			})
		})
	}
}

// TestLimitTooGreat: the error names the limit of the request.
func TestLimitTooGreat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, list := range []string{"", "&stuck=1"} {
			answer := ask(w.page, "GET", "/objects?machine=vm&limit=2000"+list, "Accept", "application/json")
			require.Contains(t, problem(t, answer).Detail, "limit 2000, more than 1000")
		}
	})
}

// TestTitles: each page has a title of its own, also if a machine or an object has the name of
// the service.
func TestTitles(t *testing.T) {
	m := vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{})
	_, err := m.Create(t.Context(), "Shop", "create", "user", vm{}, nil)
	require.NoError(t, err)
	for service, titles := range map[string]map[string]string{
		"Shop": {
			"/": "Shop", "/machine?machine=vm": "vm – Shop", "/objects?machine=vm": "Objects – vm – Shop",
			"/object?machine=vm&id=Shop": "Shop – vm – Shop", "/locks": "Locks – Shop", "/nowhere": "Not Found – Shop",
		},
		"vm": {"/": "vm", "/machine?machine=vm": "vm – vm"},
	} {
		page, err := inspect.New(&inspect.Config{Title: service, Machines: []inspect.Machine{inspect.Of(m, nil)}})
		require.NoError(t, err)
		for url, title := range titles {
			require.Contains(t, body(t, ask(page, "GET", url)), "<title>"+title+"</title>", url)
		}
	}
}

// TestOutage: a store that fails shows as that, never as an empty list. What needs no store
// stays readable, and the texts of the store are for the log only.
func TestOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.store.err = lifecycle.ErrUnavailable
		for name, url := range routes {
			answer := ask(w.page, "GET", url, "Accept", "application/json")
			page := ask(w.page, "GET", url)
			switch name {
			case "queues", "locks":
				require.Equal(t, http.StatusOK, answer.StatusCode, name)
			case "overview":
				var doc inspect.Overview
				require.NoError(t, json.Unmarshal([]byte(body(t, answer)), &doc))
				require.Equal(t, "unavailable", doc.Machines[0].Problem.Code)
				require.Equal(t, "unavailable", doc.OwnersProblem.Code)
				require.Equal(t, 1, doc.Queues[0].Running)
				text := body(t, page)
				require.Contains(t, text, "store is unavailable")
				require.NotContains(t, text, "There are no owners")
			default:
				require.Equal(t, "unavailable", problem(t, answer).Code, name)
				require.Equal(t, "5", answer.Header.Get("Retry-After"), name)
				require.Equal(t, http.StatusServiceUnavailable, page.StatusCode, name)
				require.Contains(t, body(t, page), "store is unavailable", name)
			}
		}
		w.store.err = errBoom
		require.NotContains(t, body(t, ask(w.page, "GET", "/machine?machine=vm")), "boom")
	})
}

// TestPrefix: all links are relative, so that the page can be mounted anywhere.
func TestPrefix(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mux := http.NewServeMux()
		mux.Handle("/ops/inspect/", http.StripPrefix("/ops/inspect", w.page))
		for name, url := range routes {
			mounted, bare := ask(mux, "GET", "/ops/inspect"+url), ask(w.page, "GET", url)
			text := body(t, mounted)
			require.Equal(t, body(t, bare), text, name)
			require.NotContains(t, text, `="/`, name)
			require.NotContains(t, text, `="http`, name)
		}
		require.Equal(t, http.StatusOK, ask(mux, "GET", "/ops/inspect/static/style.css").StatusCode)
		mux.Handle("/other/", http.StripPrefix("/other/", w.page))
		require.Equal(t, http.StatusOK, ask(mux, "GET", "/other/").StatusCode)
		require.Equal(t, http.StatusOK, ask(mux, "GET", "/other/queues").StatusCode)
	})
}

// TestStatic: a browser gets a file again only if it has changed.
func TestStatic(t *testing.T) {
	page, err := inspect.New(nil)
	require.NoError(t, err)
	answer := ask(page, "GET", "/static/style.css")
	require.Equal(t, "text/css; charset=utf-8", answer.Header.Get("Content-Type"))
	require.NotEmpty(t, body(t, answer))
	answer = ask(page, "GET", "/static/style.css", "If-None-Match", answer.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, answer.StatusCode)
	require.Equal(t, "text/plain; charset=utf-8", ask(page, "GET", "/static/graphviz/LICENSE").Header.Get("Content-Type"))
}

// TestBadConfig: New refuses what the page could not show.
func TestBadConfig(t *testing.T) {
	m := inspect.Of(vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{}), nil)
	for name, config := range map[string]inspect.Config{
		"no machine":   {Machines: []inspect.Machine{{}}},
		"twice":        {Machines: []inspect.Machine{m, m}},
		"no queue":     {Queues: map[string]inspect.Queue{"q": {}}},
		"queue's name": {Machines: []inspect.Machine{m}, Queues: map[string]inspect.Queue{"vm": inspect.OfQueue(&queue.Queuer[int]{})}},
		"no lock":      {Locks: map[string]lock.Locker{"l": nil}},
		"bad objects":  {MaxObjects: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inspect.New(&config)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		})
	}
}
