package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestMain is the service in the processes that run starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`)

func TestOutput(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	got := times.ReplaceAllString(out.String(), "TIME")
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile("testdata/output.txt", []byte(got), 0o666))
	}
	want, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, io.Discard), context.Canceled)
}

// A service whose cloudlet hangs ends with its context.
func TestHanging(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := cloudlet{dir: t.TempDir(), hangs: make(chan struct{})}
	for _, cluster := range []string{id(0), id(wanted - 1)} {
		ended := make(chan error, 1)
		go func() { ended <- c.do(ctx, cluster, 1) }()
		<-c.hangs
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	executed, err := c.executed(id(0))
	require.NoError(t, err)
	require.Equal(t, []string{"operation 1"}, executed)
	executed, err = c.executed(id(wanted - 1))
	require.NoError(t, err)
	require.Empty(t, executed)
}

// The program is a test of the store only if verify detects every fault.
func TestVerifyDetectsFaults(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, dir string)
		err   string
	}{
		"nothing": {func(*testing.T, string) {}, ""},
		"created twice": {func(t *testing.T, dir string) {
			require.NoError(t, cloudlet{dir: dir}.execute(id(3), 1))
		}, "c-03: the cloudlet executed 2 creations, not one"},
		"not created": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(cloudlet{dir: dir}.file(id(3))))
		}, "c-03: the cloudlet executed 0 creations, not one"},
		"not recorded": {func(t *testing.T, dir string) {
			old, err := filepath.Glob(filepath.Join(dir, "clusters.db*"))
			require.NoError(t, err)
			for _, file := range old {
				require.NoError(t, os.Remove(file))
			}
		}, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var out strings.Builder
			require.NoError(t, serve(t.Context(), &out, dir, false))
			test.spoil(t, dir)
			db, store, err := open(t.Context(), dir)
			require.NoError(t, err)
			defer db.Close()
			err = verify(t.Context(), &out, lifecycle.Must(edgecloud.ClusterInst, store, nil), cloudlet{dir: dir})
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}
