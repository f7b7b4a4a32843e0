package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// The pages load nothing from elsewhere and run no inline code. Only the page that draws the
// picture may compile WebAssembly, and be shown in a frame of the machine's page.
const (
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	picturePolicy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)

// secure sets the headers that every answer has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
}

// documents read the document of a route. The path is the name of the template.
var documents = map[string]func(p *Page, ctx context.Context, r *http.Request) (view, error){
	"":        (*Page).overview,
	"machine": (*Page).machinePage,
	"objects": (*Page).objectList,
	"object":  (*Page).objectPage,
	"queues":  (*Page).queuePage,
	"locks":   (*Page).lockPage,
	"owners":  (*Page).ownerPage,
}

// ServeHTTP answers the routes of the package documentation. It answers GET and HEAD only.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if err := p.serve(w, r); err != nil {
		p.fail(w, r, err)
	}
}

// serve answers a request, or returns an error and has answered nothing.
func (p *Page) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return &refusal{http.StatusMethodNotAllowed, "method-not-allowed", "the page is read only"}
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // Query omits such a parameter, and a filter with it
		return fmt.Errorf("%w: the query: %w", lifecycle.ErrInvalid, err)
	}
	if format := r.URL.Query().Get("format"); !slices.Contains([]string{"", "json", "html"}, format) {
		return fmt.Errorf("%w: format %q is neither json nor html", lifecycle.ErrInvalid, format)
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if name, ok := strings.CutPrefix(path, "static/"); ok {
		return static(w, r, name)
	}
	switch path {
	case "events":
		return p.events(w, r)
	case "picture":
		return p.picture(w, r)
	}
	ctx, cancel := withTimeout(r.Context())
	defer cancel()
	store := storeOf(r.URL.Query().Get("machine"))
	if path == "picture.dot" {
		text, err := p.dot(ctx, r)
		if err == nil {
			w.Header().Set("Content-Type", "text/vnd.graphviz; charset=utf-8")
			fmt.Fprint(w, text)
		}
		return late(store, err)
	}
	read, ok := documents[path]
	if !ok {
		return notFound("there is no such page")
	}
	v, err := read(p, ctx, r)
	if err != nil {
		return late(store, err)
	}
	v.Route = path
	return p.write(w, r, http.StatusOK, v)
}

// fail answers with an error. It writes what [lifecycle.Problem] shows, without the details
// of a store.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	problem := p.problem(r.Context(), err)
	if problem.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	if err := p.write(w, r, problem.Status, view{Heading: problem.Title, Doc: *problem, Route: "problem"}); err != nil {
		panic(err) // a problem can always be written
	}
}

// write answers with a document, as JSON or as a page. After an error it has answered
// nothing. Names and texts in a page come from anywhere: package template escapes them, and
// visible shows what else would change the page.
func (p *Page) write(w http.ResponseWriter, r *http.Request, status int, v view) error {
	if v.Doc != nil && wantsJSON(r) {
		return writeJSON(w, status, v.Doc)
	}
	v.Service = p.config.Title
	var body bytes.Buffer
	if err := templates()[cmp.Or(v.Route, "overview")].Execute(&body, v); err != nil {
		return err
	}
	send(w, status, "text/html; charset=utf-8", &body)
	return nil
}

func writeJSON(w http.ResponseWriter, status int, doc any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(doc); err != nil {
		return err
	}
	media := "application/json"
	if _, ok := doc.(lifecycle.ProblemDetails); ok {
		media = lifecycle.ProblemContentType
	}
	send(w, status, media, &body)
	return nil
}

func send(w http.ResponseWriter, status int, media string, body *bytes.Buffer) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // an error means that the client is gone
}

// wantsJSON reports whether a request is for the document instead of the page.
func wantsJSON(r *http.Request) bool {
	switch r.URL.Query().Get("format") {
	case "json":
		return true
	case "html":
		return false
	}
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}
