package browsertest

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

func TestLive(t *testing.T) {
	t.Parallel()
	m := lifecycle.Must(vms, lifecycle.NewMemoryStore(), nil)
	for _, id := range numbered("vm-%d", 5) {
		_, err := m.Add(t.Context(), id, "running", "user", payload{}, nil)
		require.NoError(t, err)
	}
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
	require.NoError(t, err)
	server := httptest.NewServer(page)
	defer server.Close()
	defer page.Close()

	b := open(t, server.URL+"/machine?machine=vm", desktop)
	b.wait(t, `document.getElementById("live").dataset.state === "live"`)
	b.wait(t, `frames[0]?.document?.querySelector("#picture svg") != null`)
	eval[any](t, b, `frames[0].marked = window.marked = true`)
	eval[any](t, b, `document.querySelector('a[href*="state=running"]').focus()`)

	_, err = m.Fire(t.Context(), "vm-3", "pause", "user", nil)
	require.NoError(t, err)
	b.wait(t, `document.querySelector(".tiles .stuck")?.innerText.includes("1")`)
	b.wait(t, `document.querySelector(".stuck-list")?.innerText.includes("vm-3")`)
	b.wait(t, `frames[0].document.querySelector(".stuck")?.textContent.includes("1 stuck")`)
	require.True(t, eval[bool](t, b, `window.marked && frames[0].marked`), "the page or the picture was loaded again")
	require.Contains(t, eval[string](t, b, `document.activeElement.getAttribute("href")`), "state=running")

	_, err = m.Fire(t.Context(), "vm-3", "paused", "agent", nil)
	require.NoError(t, err)
	b.wait(t, `document.querySelector(".stuck") === null`)
	require.True(t, eval[bool](t, b, `frames[0].marked`), "the picture was loaded again")
	require.Contains(t, eval[string](t, b, `document.activeElement.getAttribute("href")`), "state=running")
	require.Equal(t, "live", eval[string](t, b, `document.getElementById("live").dataset.state`))
	b.quiet(t, server.URL, http.StatusOK)

	server.Listener.Close()
	server.CloseClientConnections()
	b.wait(t, `document.getElementById("live").dataset.state === "lost"`)
}

// TestLiveObject: a page whose stream the server refuses refreshes and connects again, and
// its picture marks the new state of the object without a new entry in the tab's history.
func TestLiveObject(t *testing.T) {
	t.Parallel()
	m := lifecycle.Must(vms, lifecycle.NewMemoryStore(), nil)
	_, err := m.Add(t.Context(), "vm-1", "running", "user", payload{}, nil)
	require.NoError(t, err)
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
	require.NoError(t, err)
	var refused atomic.Bool
	refused.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" && refused.Load() {
			http.Error(w, "too many streams", http.StatusServiceUnavailable)
			return
		}
		page.ServeHTTP(w, r)
	}))
	defer server.Close()
	defer page.Close()

	b := open(t, server.URL+"/object?machine=vm&id=vm-1", desktop)
	marked := func(state string) string {
		return `frames[0]?.document?.querySelector('.node:has([fill="#ffe08a"]) text')?.textContent === "` + state + `"`
	}
	b.wait(t, `document.getElementById("live").dataset.state === "polling"`)
	b.wait(t, marked("running"))
	entries := eval[int](t, b, `history.length`)
	refused.Store(false)
	_, err = m.Fire(t.Context(), "vm-1", "pause", "user", nil)
	require.NoError(t, err)
	b.wait(t, `document.getElementById("live").dataset.state === "live"`)
	b.wait(t, marked("pausing"))
	require.Equal(t, entries, eval[int](t, b, `history.length`))
}

// TestMerge makes every page of a world like every other one.
func TestMerge(t *testing.T) {
	t.Parallel()
	address, _ := fleet(t)
	b := open(t, address, desktop)
	require.Empty(t, eval[[]string](t, b, `(async () => {
		const { merge } = await import("./static/live.js");
		const pages = ["./", "machine?machine=vm", "objects?machine=vm", "objects?machine=vm&state=running", "objects?machine=vm&stuck=1",
			"object?machine=vm&id=vm-000", "object?machine=vm&id=vm-002", "queues", "locks", "owners", "nowhere"];
		const bodies = await Promise.all(pages.map(async (page) => {
			const text = await (await fetch(page)).text();
			return () => new DOMParser().parseFromString(text, "text/html").body;
		}));
		const bad = [];
		bodies.forEach((from, i) => bodies.forEach((to, k) => {
			const body = from();
			merge(body, to());
			if (!body.isEqualNode(to())) bad.push(pages[i] + " became " + pages[k]);
		}));
		return bad;
	})()`))
}
