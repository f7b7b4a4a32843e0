package interlock_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/diagram"
)

// The README shows code that is compiled, a picture that is generated and a
// counterexample that is found: UPDATE_DOCS=1 writes them anew.
func TestReadmeShowsWhatRuns(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(source), "// vms is the table of the README's example.\n")
	table, body, _ := strings.Cut(table, "func Example() {\n")
	body, output, _ := strings.Cut(body, "\t// Output:\n")
	code := table + strings.ReplaceAll("\n"+body+strings.TrimSuffix(output, "}\n"), "\n\t", "\n")[1:]
	source, err = os.ReadFile("prove_test.go")
	require.NoError(t, err)
	_, test, _ := strings.Cut(string(source), "// TestVM is the README's test of its table.\n")
	trace, err := os.ReadFile("internal/models/testdata/document-duplicate.txt") // its test makes it anew
	require.NoError(t, err)

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	first, proof, found := strings.Cut(string(readme), "## Prove it\n")
	require.True(t, found)
	first = replaceBlock(t, first, "go", code)
	first = replaceBlock(t, first, "mermaid", diagram.Mermaid(vms.Table(), nil))
	proof = replaceBlock(t, proof, "go", test)
	proof = replaceBlock(t, proof, "text", string(trace))
	want := first + "## Prove it\n" + proof
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(readme), "UPDATE_DOCS=1 go test . writes the README anew")
}

// replaceBlock replaces the first fenced block of a language.
func replaceBlock(t *testing.T, text, language, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, "```"+language+"\n")
	require.True(t, ok, "the README has no %s block", language)
	_, after, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)
	return before + "```" + language + "\n" + strings.TrimSuffix(content, "\n") + "\n```\n" + after
}
