package inspect_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
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

// hostile are names that change a page, a script, an address or a picture if they are not
// escaped. Stores keep no NUL and no invalid UTF-8; names of queues may have them.
var hostile = map[string]string{
	"a script":           `"'><script>alert(1)</script>`,
	"line breaks":        "a\nb\r\nSet-Cookie: x",
	"a path":             "../../etc/passwd",
	"a query":            "a/b?c=d&e=f#g",
	"direction marks":    "\u202egnp.exe\u202c",
	"a script's address": "javascript:alert(1)",
	"an image":           "</title></textarea><img src=x onerror=alert(1)>",
	"a DOT attribute":    `\"];evil[label="x`,
	"a template":         "{{.Doc}}",
	"a broken escape":    "%00%ff",
	"a space":            " ",
	"the longest id":     strings.Repeat("x", lifecycle.MaxID-5),
}

var marks = regexp.MustCompile(`<[^>]*>`)

// TestHostile: names are shown, harm nothing, and every link leads to what it names.
func TestHostile(t *testing.T) {
	for what, name := range hostile {
		t.Run(what, func(t *testing.T) { testHostile(t, name) })
	}
}

func testHostile(t *testing.T, name string) {
	bad := name + "\x00\xff\u200f"
	ctx := t.Context()
	declared := strings.NewReplacer("\n", " ", "\r", " ").Replace(name) // tables have no control characters
	vms := lifecycle.Must(fsm.Must[vm](fsm.Spec[string, string]{
		Name: declared, Title: name, Initial: declared, Actors: []fsm.Actor{"user", fsm.Actor(declared)},
		States: []fsm.State[string]{{Name: declared}, {Name: declared + "-2", Kind: fsm.Transitional, Manual: name}},
		Rows:   fsm.Rows(fsm.Move(declared, declared, declared+"-2"), fsm.Move(declared+"-2", declared+" end", declared)),
	}), lifecycle.NewMemoryStore(), &lifecycle.Config[string]{Version: name})
	_, err := vms.Add(ctx, name, declared, "user", vm{Address: name}, nil)
	require.NoError(t, err)
	_, err = vms.Fire(ctx, name, declared, fsm.Actor(declared), &lifecycle.Change[vm]{Reason: name})
	require.NoError(t, err)
	q := queue.Must(&queue.Config[string]{Classes: map[string]queue.Limit{"x": {}}, HaltOnFailure: true})
	ticket, err := q.Submit(ctx, bad, &queue.Action{Name: bad, Run: func(context.Context) error { return errBoom }})
	require.NoError(t, err)
	require.ErrorIs(t, ticket.Wait(ctx), errBoom)
	tree := lock.Must(nil)
	grant, err := tree.TryLock(ctx, lock.Request{Path: lock.Root(), Mode: lock.X}, &lock.Options{Owner: name, Reason: name})
	require.NoError(t, err)
	page, err := inspect.New(&inspect.Config{
		Title: bad, Machines: []inspect.Machine{inspect.Of(vms, func(v vm) any { return v })},
		Queues: map[string]inspect.Queue{bad: inspect.OfQueue(q)}, Locks: map[string]lock.Locker{bad: tree},
	})
	require.NoError(t, err)

	query := "machine=" + url.QueryEscape(declared)
	for route, has := range map[string]string{
		"/":                         name,
		"/machine?" + query:         name,
		"/objects?" + query:         name,
		"/objects?stuck=1&" + query: name,
		"/object?" + query + "&id=" + url.QueryEscape(name): name,
		"/queues":           bad,
		"/locks":            name,
		"/owners":           "",
		"/picture?" + query: "",
		"/machine?machine=" + url.QueryEscape(bad): "", // an error
	} {
		t.Run(route, func(t *testing.T) {
			text := body(t, ask(page, "GET", route))
			require.NotContains(t, text, "<script>")
			require.NotContains(t, text, "<img")
			require.NotContains(t, text, "\u202e")
			require.NotContains(t, text, "\u200f")
			require.NotContains(t, text, "\x00")
			require.NotContains(t, text, "ZgotmplZ")
			for _, tag := range marks.FindAllString(text, -1) {
				require.NotRegexp(t, `[\s"']on\w+\s*=`, strings.ToLower(tag))
			}
			checkLinks(t, page, text)
			data := body(t, ask(page, "GET", route, "Accept", "application/json"))
			if strings.HasPrefix(route, "/picture") {
				return
			}
			require.True(t, json.Valid([]byte(data)))
			if name == has && has != "" {
				encoded, err := json.Marshal(name)
				require.NoError(t, err)
				require.Contains(t, data, string(encoded))
			}
		})
	}
	dot := body(t, ask(page, "GET", "/picture.dot?"+query))
	require.NotContains(t, dot, "\x00")
	require.NotContains(t, dot, "\u202e")
	require.NoError(t, grant.Unlock(ctx))
}

var (
	links = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	plain = strings.NewReplacer("&amp;", "&", "&#43;", "+", "&#39;", "'", "&lt;", "<", "&gt;", ">")
)

// checkLinks follows every link of a page.
func checkLinks(t *testing.T, page http.Handler, text string) {
	t.Helper()
	for _, link := range links.FindAllStringSubmatch(text, -1) {
		to := plain.Replace(link[1])
		if strings.HasPrefix(to, "#") {
			continue
		}
		to = "/" + strings.TrimPrefix(to, "./")
		require.Equal(t, http.StatusOK, ask(page, "GET", to).StatusCode, "%q", to)
	}
}

// TestLinks follows every link of every page of the world.
func TestLinks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, route := range routes {
			checkLinks(t, w.page, body(t, ask(w.page, "GET", route)))
		}
		synctest.Wait()
	})
}
