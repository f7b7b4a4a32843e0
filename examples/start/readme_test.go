package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/diagram"
)

// The README shows this program, its output, its picture and its test, the table of
// examples/service, and the names of metrics, spans and log messages.
// UPDATE_DOCS=1 writes them.
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
	_, service, found := strings.Cut(read("../service/vm.go"), "var vmTable")
	require.True(t, found)
	service, _, found = strings.Cut(service, "// quotaError")
	require.True(t, found)

	_, wiring, found := strings.Cut(read("../../lifecycle/prometheus/example_test.go"), "func Example() {\n\t")
	require.True(t, found)
	wiring, _, found = strings.Cut(wiring, "\n\n")
	require.True(t, found)
	wiring = strings.ReplaceAll(wiring, "\n\t", "\n")

	readme := read(path)
	want := readme
	for _, block := range []struct{ after, language, content string }{
		{"## Start", "go", program},
		{"It prints", "text", output},
		{"This picture", "mermaid", diagram.Mermaid(table.Table(), nil)},
		{"## Prove the table", "go", test},
		{"## Your first service", "sh", usage},
		{"Its table and its guard", "go", "var vmTable" + service},
		{"## Metrics, traces and logs", "go", wiring},
	} {
		want = replaceBlock(t, want, block.after, block.language, block.content)
	}
	want = replaceText(t, want, "<!-- the names, from the code -->\n", "<!-- end of the names -->\n", names())
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, readme, "UPDATE_DOCS=1 go test ./examples/start writes the README anew")
}

// replaceBlock replaces the content of the first fenced block of a language that
// follows a text.
func replaceBlock(t *testing.T, text, after, language, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, after)
	require.True(t, ok, "the README has no %q", after)
	between, rest, ok := strings.Cut(rest, "```"+language+"\n")
	require.True(t, ok, "the README has no %s block after %q", language, after)
	_, rest, ok = strings.Cut(rest, "```\n")
	require.True(t, ok)
	return before + after + between + "```" + language + "\n" + strings.TrimRight(content, "\n") + "\n```\n" + rest
}

// replaceText replaces the text between two lines.
func replaceText(t *testing.T, text, from, to, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, from)
	require.True(t, ok, "the README has no %q", from)
	_, after, ok := strings.Cut(rest, to)
	require.True(t, ok, "the README has no %q", to)
	return before + from + "\n" + content + "\n" + to + after
}
