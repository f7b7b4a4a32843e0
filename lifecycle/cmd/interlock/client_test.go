package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// answers starts a server with one answer to every request. It returns its URL.
func answers(t *testing.T, media, text string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func document(t *testing.T, doc any) string {
	data, err := json.Marshal(doc)
	require.NoError(t, err)
	return string(data)
}

// TestIncompleteAnswers: an answer that is cut off, and documents with parts that are missing or
// cannot be read.
func TestIncompleteAnswers(t *testing.T) {
	late := lifecycle.Problem(lifecycle.ErrUnavailable)
	for name, c := range map[string]struct {
		media, text string
		args        []string
		code        int
		out, errs   string // patterns
	}{
		"a document that is cut off": {
			"application/json", `{"machines": [`, []string{"top"}, exitFailure, "^$", `^interlock top: http://.*: unexpected EOF\n$`,
		},
		"a problem that is cut off": {
			lifecycle.ProblemContentType, `{"code": `, []string{"top"}, exitFailure, "^$", `^interlock top: http://.*: 200 OK: unexpected EOF\n$`,
		},
		"a lock tree that does not answer": {
			"application/json", document(t, inspect.Overview{
				Time:  time.Now(),
				Locks: []inspect.LockSummary{{Name: "deploys", Problem: &late}},
			}), []string{"top"}, exitFailure, `(?m)^deploys +- +- +unavailable$`, `lock deploys: unavailable`,
		},
		"more objects than are counted": {
			"application/json", document(t, inspect.Overview{
				Time: time.Now(), Machines: []inspect.MachineSummary{{Name: "vm", Objects: 10000, More: true}},
			}), []string{"top"}, exitOK, `(?m)^vm +10000\+ +0 +0\+`, "^$",
		},
		"a store without history": {
			"application/json", document(t, inspect.ObjectPage{NoHistory: true}), []string{"history", "vm", "a"},
			exitFailure, "^$", `^interlock history: the store keeps no history\n$`,
		},
		"a history that does not answer": {
			"application/json", document(t, inspect.ObjectPage{HistoryProblem: &late}), []string{"history", "vm", "a"},
			exitFailure, "^$", `^interlock history: unavailable: `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := append([]string{c.args[0], "-addr", answers(t, c.media, c.text)}, c.args[1:]...)
			require.Equal(t, c.code, run(t.Context(), args, &out, &errs), errs.String())
			require.Regexp(t, c.out, out.String())
			require.Regexp(t, c.errs, errs.String())
		})
	}
}
