package suitetest

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Documented fails a test unless doc.go in the working directory lists exactly
// these demands below the heading "Demands", numbered, in their order and words.
func Documented(t testing.TB, demands []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	_, listed, found := strings.Cut(file.Doc.Text(), "# Demands\n\n")
	if !found {
		t.Fatal("doc.go has no heading Demands")
	}
	listed, _, _ = strings.Cut(listed, "\n# ")
	var want []string // a line each, to be pasted; gofmt may break them
	for i, d := range demands {
		want = append(want, fmt.Sprintf("%d. %s", i+1, d))
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if words(listed) != words(strings.Join(want, " ")) {
		t.Errorf("doc.go is to list:\n//  %s", strings.Join(want, "\n//  "))
	}
}
