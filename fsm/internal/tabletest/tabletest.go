// Package tabletest has what the tests of the packages below fsm share: the
// published tables, tables written as lines of text, and random tables.
//
// The functions that read files expect the working directory of a test in a
// package directly below fsm.
package tabletest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// Full reports whether tests try tables at the limits of their size. The race
// detector makes them ten times as slow, so they are smaller under it unless
// INTERLOCK_LONG is set.
var Full = !raceDetector || os.Getenv("INTERLOCK_LONG") != ""

// Sized returns the limit, or an eighth of it if tests are not [Full].
func Sized(limit int) int {
	if Full {
		return limit
	}
	return limit / 8
}

// CheckUntil calls [rapid.Check] until the drawn cases had all that a test wants to see,
// a hundred times at most. So a test need not be lucky with its hundred cases, of which rapid
// makes twenty with -short.
func CheckUntil(t *testing.T, seen func() bool, check func(*rapid.T)) {
	t.Helper()
	for range 100 {
		if rapid.Check(t, check); seen() {
			return
		}
	}
	t.Fatal("a hundred rounds did not have what the test wants to see")
}

// Parse makes a table of a JSON document.
func Parse(t testing.TB, document string) *fsm.Table {
	t.Helper()
	table, err := fsm.ParseTable([]byte(document))
	require.NoError(t, err)
	return table
}

// Read reads a published table. The file is one of those that [Files] lists.
func Read(t testing.TB, file string) *fsm.Table {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../testdata/tables", file))
	require.NoError(t, err)
	return Parse(t, string(data))
}

// Files lists the published tables of a directory: real, seeds, or * for both.
func Files(t testing.TB, dir string) (list []string) {
	t.Helper()
	files, err := filepath.Glob("../testdata/tables/" + dir + "/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		rel, err := filepath.Rel("../testdata/tables", file)
		require.NoError(t, err)
		list = append(list, rel)
	}
	return list
}

// Documented returns the table below a heading of the package comment in doc.go:
// the rest of each line by the id in its first column.
func Documented(t testing.TB, heading string) map[string]string {
	t.Helper()
	data, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(data), "// # "+heading+"\n")
	require.True(t, ok, heading)
	_, table, ok := strings.Cut(section, "//\tid ")
	require.True(t, ok, heading)
	lines := map[string]string{}
	for i, line := range strings.Split(table, "\n") {
		text, in := strings.CutPrefix(line, "//\t")
		if i == 0 {
			continue // the rest of the table's head
		}
		if !in {
			break
		}
		id, rest, _ := strings.Cut(text, " ")
		require.NotContains(t, lines, id)
		lines[id] = strings.TrimSpace(rest)
	}
	require.NotEmpty(t, lines)
	return lines
}
