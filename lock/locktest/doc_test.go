package locktest

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The package documentation lists the demands that run: with their names, in
// their order, in their words.
func TestDocumentationListsTheDemands(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	_, listed, found := strings.Cut(file.Doc.Text(), "# Demands\n\n")
	require.True(t, found)
	listed, _, found = strings.Cut(listed, "\n# ")
	require.True(t, found)

	var want []string // a line each, to be pasted; gofmt may break them
	for i, d := range demands() {
		want = append(want, fmt.Sprintf("%d. %s: %s", i+1, d.name, d.says))
	}
	require.Equal(t, strings.Fields(strings.Join(want, " ")), strings.Fields(listed),
		"doc.go is to list:\n//  %s", strings.Join(want, "\n//  "))
}
