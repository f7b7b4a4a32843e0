package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/diagram"
)

// The README shows this program, its output, its picture and its test. METRICS.md shows the
// names of metrics, spans and log messages. UPDATE_DOCS=1 writes them.
func TestReadme(t *testing.T) {
	const path = "../../README.md"
	read := func(file string) string {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(data)
	}
	_, program, found := strings.Cut(read("main.go"), "handler.\n")
	require.True(t, found)
	_, output, found := strings.Cut(read("main_test.go"), "// Output:\n")
	require.True(t, found)
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")
	_, test, found := strings.Cut(read("table_test.go"), ")\n\n")
	require.True(t, found)

	_, usage, found := strings.Cut(read("../service/main.go"), "//\n//\t")
	require.True(t, found)
	usage, _, found = strings.Cut(usage, "\n//\n")
	require.True(t, found)
	usage = "cd examples/service\n" + strings.ReplaceAll(usage, "//\t", "")

	_, wiring, found := strings.Cut(read("../../lifecycle/prometheus/example_test.go"), "func Example() {\n\t")
	require.True(t, found)
	wiring, _, found = strings.Cut(wiring, "\n\n")
	require.True(t, found)
	wiring = strings.ReplaceAll(wiring, "\n\t", "\n")

	want := read(path)
	for _, block := range []struct{ after, language, content string }{
		{"## Start", "go", program},
		{"It prints", "text", output},
		{"This picture", "mermaid", diagram.Mermaid(table.Table(), nil)},
		{"## Prove the table", "go", test},
		{"## Your first service", "sh", usage},
		{"## Metrics, traces and logs", "go", wiring},
	} {
		want = replaceBlock(t, want, block.after, block.language, block.content)
	}
	upToDate(t, path, want)

	const metrics = "../../lifecycle/METRICS.md"
	upToDate(t, metrics, replaceText(t, read(metrics), "<!-- the names, from the code -->\n", "<!-- end of the names -->\n", names()))
}

// upToDate compares a document with what it has to be, or writes it.
func upToDate(t *testing.T, path, want string) {
	t.Helper()
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(document), "UPDATE_DOCS=1 go test ./examples/start writes %s anew", path)
}

// replaceBlock replaces the content of the first fenced block of a language that
// follows a text.
func replaceBlock(t *testing.T, text, after, language, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, after)
	require.True(t, ok, "the document has no %q", after)
	between, rest, ok := strings.Cut(rest, "```"+language+"\n")
	require.True(t, ok, "the document has no %s block after %q", language, after)
	_, rest, ok = strings.Cut(rest, "```\n")
	require.True(t, ok)
	return before + after + between + "```" + language + "\n" + strings.TrimRight(content, "\n") + "\n```\n" + rest
}

// replaceText replaces the text between two lines.
func replaceText(t *testing.T, text, from, to, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, from)
	require.True(t, ok, "the document has no %q", from)
	_, after, ok := strings.Cut(rest, to)
	require.True(t, ok, "the document has no %q", to)
	return before + from + "\n" + content + "\n" + to + after
}
