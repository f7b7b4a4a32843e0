package private_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	program := func(path string, mode os.FileMode) string {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, mode))
		return path
	}
	v14, v15 := program("lib/14/bin/serve", 0o755), program("lib/15/bin/serve", 0o755)
	program("lib/16/bin/serve", 0o644) // no program
	first, inPath := program("path/first", 0o755), program("path/both", 0o755)
	both := program("lib/15/bin/both", 0o755)
	t.Setenv("PATH", filepath.Join(dir, "path")+":.")

	for name, test := range map[string]struct {
		variable string
		names    []string
		want     []string
	}{
		"the highest version": {"", []string{"serve"}, []string{v15}},
		"PATH first":          {"", []string{"first", "both"}, []string{first, inPath}},
		"chosen":              {"lib/14/bin", []string{"serve"}, []string{v14}},
		"chosen, not PATH":    {"lib/15/bin", []string{"both"}, []string{both}},
		"one is missing":      {"", []string{"serve", "none"}, nil},
		"chosen, missing":     {"lib", []string{"serve"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.variable != "" {
				t.Setenv("TEST_BIN", filepath.Join(dir, test.variable))
			}
			found, err := private.Find("TEST_BIN", []string{filepath.Join(dir, "lib/*/bin")}, test.names...)
			require.Equal(t, test.want, found)
			if test.want == nil {
				require.ErrorIs(t, err, private.ErrMissing)
				require.ErrorContains(t, err, "TEST_BIN", "how to choose")
			}
		})
	}
}

func TestNotInstalled(t *testing.T) {
	t.Setenv("INTERLOCK_POSTGRES_BIN", t.TempDir())
	t.Setenv("INTERLOCK_MARIADB_BIN", t.TempDir())
	_, err := private.StartPostgres(nil)
	require.ErrorIs(t, err, private.ErrMissing)
	_, err = private.StartMariaDB(nil)
	require.ErrorIs(t, err, private.ErrMissing)
}
