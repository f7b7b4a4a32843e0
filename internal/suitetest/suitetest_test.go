package suitetest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/suitetest"
)

func TestRecord(t *testing.T) {
	cleaned := false
	for name, c := range map[string]struct {
		run             func(testing.TB)
		failed, skipped bool
		text            string
	}{
		"nothing": {func(testing.TB) {}, false, false, ""},
		"log":     {func(t testing.TB) { t.Log("a", 1); t.Logf("%d", 2) }, false, false, "a 1\n2"},
		"error":   {func(t testing.TB) { t.Error("a"); t.Log("b") }, true, false, "a\nb"},
		"fatal":   {func(t testing.TB) { t.Fatalf("%s", "a"); t.Log("b") }, true, false, "a"},
		"skip":    {func(t testing.TB) { t.Skip("why"); t.Error("b") }, false, true, "why"},
		"panic":   {func(testing.TB) { panic("out") }, true, false, "panic: out"},
		"cleanup": {func(t testing.TB) { t.Cleanup(func() { cleaned = true }); t.FailNow() }, true, false, ""},
	} {
		r := suitetest.Record(t, c.run)
		require.Equal(t, c.failed, r.Failed(), name)
		require.Equal(t, c.skipped, r.Skipped(), name)
		require.Equal(t, c.text, r.Text(), name)
	}
	require.True(t, cleaned)
}

func TestDocumented(t *testing.T) {
	t.Chdir(t.TempDir())
	require.True(t, suitetest.Record(t, func(t testing.TB) { suitetest.Documented(t, nil) }).Failed(), "there is no doc.go")
	write := func(text string) { require.NoError(t, os.WriteFile("doc.go", []byte(text), 0o600)) }
	write("// Package p is a package.\npackage p\n")
	require.True(t, suitetest.Record(t, func(t testing.TB) { suitetest.Documented(t, nil) }).Failed(), "there is no heading")
	write("// Package p is a package.\n//\n// # Demands\n//\n//  1. a/b: It\n//     holds.\n//  2. a/c: So.\n//\n// # Rejected\n//\n// All.\npackage p\n")
	suitetest.Documented(t, []string{"a/b: It holds.", "a/c: So."})
	t.Setenv("UPDATE_DOCS", "") // ignore the environment
	for _, wrong := range [][]string{{"a/b: It holds."}, {"a/c: So.", "a/b: It holds."}, {"a/b: It holds.", "a/c: No."}} {
		require.True(t, suitetest.Record(t, func(t testing.TB) { suitetest.Documented(t, wrong) }).Failed())
	}
	t.Setenv("UPDATE_DOCS", "1")
	suitetest.Documented(t, []string{"b/new: " + strings.Repeat("word ", 14) + "long.", "b/d: So."})
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Equal(t, "// Package p is a package.\n//\n// # Demands\n//\n//  1. b/new: word word word word word word word word word word word word word\n//     word long.\n//  2. b/d: So.\n//\n// # Rejected\n//\n// All.\npackage p\n", string(text))
}
