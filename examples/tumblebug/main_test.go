package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The story, by real requests to a real server.
func TestStory(t *testing.T) {
	want, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var out strings.Builder
	require.NoError(t, run(ctx, &out))
	require.Equal(t, string(want), out.String())
}

// What is wrong makes the story, and the program, fail.
func TestStorySeesWhatIsWrong(t *testing.T) {
	c := newCloud(time.Millisecond)
	system, err := tumblebug.New(lifecycle.NewMemoryStore(), c, &tumblebug.Config{Poll: time.Millisecond})
	require.NoError(t, err)
	server := httptest.NewServer(serve(system))
	defer server.Close()
	fresh := func() *story {
		return &story{
			ctx: t.Context(), out: &strings.Builder{}, cloud: c, system: system, client: server.Client(),
			url: server.URL + "/tumblebug/ns/" + ns + "/mci/",
		}
	}
	s := fresh()
	s.create(tumblebug.MciReq{Name: "m", SubGroups: []tumblebug.SubGroup{group("a", 1, "aws", "r")}})
	s.rests("m", "Running:1 (R:1/1)")
	require.NoError(t, s.err)
	s.rests("m", "Suspended:1 (R:0/1)")
	require.ErrorContains(t, s.err, "m is Running:1 (R:1/1), not Suspended:1 (R:0/1)")
	s = fresh()
	s.held("m")
	require.ErrorContains(t, s.err, "not on hold")
	s = fresh()
	s.post("m?action=resume", 200)
	require.ErrorContains(t, s.err, "HTTP 403, not 200")
	require.NoError(t, system.Close(t.Context()))
}

func TestEndpoints(t *testing.T) {
	system, err := tumblebug.New(lifecycle.NewMemoryStore(), newCloud(0), &tumblebug.Config{Poll: time.Millisecond})
	require.NoError(t, err)
	server := httptest.NewServer(serve(system))
	defer server.Close()
	_, err = system.CreateMci(t.Context(), ns, tumblebug.MciReq{Name: "mci-01", SubGroups: []tumblebug.SubGroup{group("g1", 5, "aws", "r")}})
	require.NoError(t, err)
	_, err = system.Wait(t.Context(), ns, "mci-01")
	require.NoError(t, err)
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{http.MethodGet, "mci-01?option=status", 200},
		{http.MethodGet, "mci-01", 200},
		{http.MethodGet, "mci-01?option=everything", 400},
		{http.MethodGet, "mci-02?option=status", 404},
		{http.MethodPost, "mci-01", 400},
		{http.MethodPost, "mci-01?action=create", 400},
		{http.MethodPost, "mci-01?action=continue", 409},
		{http.MethodPost, "mci-01?action=resume&force=perhaps", 400},
		{http.MethodPost, "mci-01/vm/g1-9?action=suspend", 404},
		{http.MethodPost, "mci-01/vm/g1-1?action=refine", 400},
		{http.MethodPost, "mci-01/vm/g1-1?action=resume", 403},
		{http.MethodPost, "mci-01/vm/g1-1?action=resume&force=perhaps", 400},
		{http.MethodPut, "mci-01", 405},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+"/tumblebug/ns/"+ns+"/mci/"+c.path, nil)
		require.NoError(t, err)
		resp, err := server.Client().Do(req)
		require.NoError(t, err)
		var body map[string]any
		if c.code != 405 {
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&body))
		}
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.code, resp.StatusCode, c.path)
		if c.code == 200 {
			require.Equal(t, "mci-01", body["id"])
			require.Equal(t, "Running:5 (R:5/5)", body["status"])
			require.Equal(t, "None", body["targetStatus"])
			require.Equal(t, "None", body["targetAction"])
			require.Len(t, body["statusCount"], 11)
			require.Len(t, body["vm"], 5)
		}
	}
	require.NoError(t, system.Close(t.Context()))
}
