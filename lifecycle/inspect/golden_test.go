package inspect_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// routes are the routes with a document, by the name of their golden files.
var routes = map[string]string{
	"overview": "/",
	"machine":  "/machine?machine=vm",
	"objects":  "/objects?machine=vm",
	"state":    "/objects?machine=vm&state=running&state=creating&limit=1",
	"stuck":    "/objects?machine=vm&stuck=1",
	"object":   "/object?machine=vm&id=vm-late",
	"working":  "/object?machine=vm&id=vm-new",
	"rests":    "/object?machine=vm&id=vm-up",
	"removed":  "/object?machine=vm&id=vm-gone",
	"queues":   "/queues",
	"locks":    "/locks",
	"owners":   "/owners",
}

var random = regexp.MustCompile(`[0-9a-f]{32}`) // commit tokens

// TestGolden compares every document and page of the world with testdata.
func TestGolden(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for name, url := range routes {
			answer := ask(w.page, "GET", url)
			require.Equal(t, "text/html; charset=utf-8", answer.Header.Get("Content-Type"), name)
			golden(t, name+".html", answer)
			answer = ask(w.page, "GET", url, "Accept", "application/json")
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"), name)
			golden(t, name+".json", answer)
		}
		golden(t, "picture.html", ask(w.page, "GET", "/picture?machine=vm"))
		golden(t, "picture.dot", ask(w.page, "GET", "/picture.dot?machine=vm"))
		golden(t, "picture-at.dot", ask(w.page, "GET", "/picture.dot?machine=vm&at=running"))
	})
}

// golden compares an answer with a file. UPDATE_DOCS=1 writes the file.
func golden(t *testing.T, name string, answer *http.Response) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.StatusCode, name)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	got := random.ReplaceAllString(string(body), strings.Repeat("0", 32))
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "UPDATE_DOCS=1 go test writes testdata anew")
}
