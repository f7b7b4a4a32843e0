package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const queue = "../../queue"

// TestMutantsOfQueue is what "make test" can afford: every mutant applies and
// has the right types, and of every class there are some.
func TestMutantsOfQueue(t *testing.T) {
	mutants, err := read(filepath.Join(queue, "testdata", "mutants"))
	require.NoError(t, err)
	check := compiler(t, queue)
	require.NoError(t, check(nil))
	classes := map[string]int{}
	for _, m := range mutants {
		classes[m.class]++
		files, err := m.apply(queue)
		require.NoError(t, err)
		require.NoError(t, check(files), m.name)
	}
	for _, class := range []string{
		"unfair", "last in, first out", "leaked limit", "early drain", "lost cancel", "overtaking retry", "two at once",
	} {
		require.GreaterOrEqual(t, classes[class], 3, class)
	}
}

// compiler returns a function that checks the types of a package in which some
// files are replaced.
func compiler(t *testing.T, dir string) func(map[string]string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	imports := importer.Default() // it keeps what it has imported
	source := map[string]string{}
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			source[filepath.Base(path)] = string(text)
		}
	}
	return func(changed map[string]string) error {
		var files []*ast.File
		for name, text := range source {
			if other, ok := changed[name]; ok {
				text = other
			}
			f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		_, err := (&types.Config{Importer: imports}).Check("p", fset, files, nil)
		return err
	}
}

func TestParse(t *testing.T) {
	m, err := parse("m", `class: unfair
breaks: what comes later
  goes first

@@ a.go
 one

-two
+three

@@ b.go
-four
`)
	require.NoError(t, err)
	require.Equal(t, &mutant{
		name: "m", class: "unfair", breaks: "what comes later goes first",
		hunks: []hunk{{"a.go", "one\n\ntwo\n", "one\n\nthree\n"}, {"b.go", "four\n", ""}},
	}, m)

	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	write("a.go", "one\n\ntwo\ntwo\n")
	write("b.go", "three\nfour\n")
	files, err := m.apply(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.go": "one\n\nthree\ntwo\n", "b.go": "three\n"}, files)
	write("b.go", "fourteen\n") // whole lines only
	_, err = m.apply(dir)
	require.ErrorContains(t, err, "not in b.go")
	write("b.go", "four\nfour\n")
	_, err = m.apply(dir)
	require.ErrorContains(t, err, "more than once in b.go")

	for _, wrong := range []string{
		"", "class: x\nbreaks: y\n", "kind: x\n", "class: x\n\n@@ a.go\n-a\n",
		"class: x\nbreaks: y\n@@ a.go\n a\n", "class: x\nbreaks: y\n@@ a.go\n+a\n", "class: x\nbreaks: y\n@@ a.go\n*a\n",
	} {
		_, err := parse("wrong", wrong)
		require.Error(t, err, wrong)
	}
}

func TestKiller(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{"=== RUN   TestA\n--- FAIL: TestA (0.00s)\nFAIL\n", "TestA"},
		{"=== RUN   TestA\n=== RUN   TestA/b\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n", "TestA/b"},
		{"=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\npanic: boom [recovered]\n", "TestB, by panic: boom"},
		{"=== RUN   TestA\nfatal error: all goroutines are asleep\n", "TestA, by panic: all goroutines are asleep"},
		{"=== RUN   TestA\npanic: test timed out after 1m0s\n", "TestA, by time-out"},
		{"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\ngoleak: Errors on successful test run\n", "goleak, after all tests"},
	} {
		got, err := killer(tt.output, false)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	got, err := killer("=== RUN   TestA\n", true)
	require.NoError(t, err)
	require.Equal(t, "TestA, by time-out of the command", got)
	for _, output := range []string{"FAIL p [build failed]", "=== RUN   TestA\nPASS\n"} {
		_, err := killer(output, false)
		require.Error(t, err)
	}
}
