package diagramtest_test

import (
	"go/ast"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
)

// names generates names with a meaning in Go and in doc comments, and any others.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"# Table of x", "Table of x", "*/", "//go:build x", "```", "~~~", "``", "''", "[x]: y", "- x", "1. x", "\ufeff",
			"\u2028", "  ", "", "\n", "\r\n// # X", "\x00", "Deprecated: x", "`", "\t", "<!--", "]", "_x_", "..",
		}),
		rapid.StringN(0, 10, -1),
	)
}

func hostileTable(t *rapid.T) *fsm.Table {
	name := func(label string) string { return names().Draw(t, label) }
	return &fsm.Table{
		Name:   name("machine"),
		States: []fsm.TableState{{Name: name("a"), Target: -1, Doc: name("state doc")}, {Name: name("b"), Target: -1, Manual: name("manual")}},
		Events: []string{name("event")}, Actors: []fsm.Actor{fsm.Actor(name("actor"))},
		Rows: []fsm.TableRow{{From: []int{0}, To: 1, Actors: []int{0}, Guard: name("guard"), Doc: name("row doc")}},
	}
}

// A section stays inside the comment for all names. The comment parser reads it as a
// heading, text and two preformatted blocks, and gofmt does not change it.
func TestHostileGo(t *testing.T) {
	t.Setenv(diagramtest.Update, "1")
	file := filepath.Join(t.TempDir(), "doc.go")
	rapid.Check(t, func(rt *rapid.T) {
		table := hostileTable(rt)
		require.NoError(rt, os.WriteFile(file, []byte("// Package x is x.\npackage x\n\nvar X = 1\n"), 0o644))
		r := &recorder{TB: t}
		diagramtest.Doc(r, file, table)
		require.Empty(rt, r.errors)

		source := content(rt, file)
		parsed, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
		require.NoError(rt, err)
		require.Len(rt, parsed.Decls, 1)
		formatted, err := format.Source([]byte(source))
		require.NoError(rt, err)
		require.Equal(rt, string(formatted), source)

		blocks := new(comment.Parser).Parse(docText(parsed)).Content
		require.Len(rt, blocks, 6)
		require.IsType(rt, &comment.Heading{}, blocks[1])
		require.Equal(rt, diagram.Text(table, nil), blocks[3].(*comment.Code).Text)
		require.Equal(rt, diagram.Mermaid(table, nil), blocks[5].(*comment.Code).Text)

		logged := len(r.logs)
		diagramtest.Doc(r, file, table)
		require.Len(rt, r.logs, logged, "found again")
	})
}

func docText(f *ast.File) string { return f.Doc.Text() }
