package diagramtest_test

import (
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
)

// TestRewrite takes files and shows what a check says of them and what an
// update makes of them.
//
//	go|markdown tables=(door,lamp,twin)
func TestRewrite(t *testing.T) {
	datadriven.Walk(t, "testdata/rewrite", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			file, run := filepath.Join(t.TempDir(), "doc.go"), diagramtest.Doc
			if d.Cmd == "markdown" {
				file, run = filepath.Join(filepath.Dir(file), "TABLES.md"), diagramtest.Markdown
			}
			var tables []*fsm.Table
			for _, arg := range d.CmdArgs {
				for _, name := range arg.Vals {
					tables = append(tables, byName(name))
				}
			}
			before := d.Input + "\n"
			require.NoError(t, os.WriteFile(file, []byte(before), 0o640))

			said := call(t, "", run, file, tables)
			require.Equal(t, said.errors, call(t, "0", run, file, tables).errors)
			require.Equal(t, before, content(t, file), "a check writes nothing")
			updated := call(t, "1", run, file, tables)
			after := content(t, file)
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode())

			if len(updated.errors) > 0 {
				require.Equal(t, before, after, "nothing is written after an error")
				require.Equal(t, said.errors, updated.errors)
			} else {
				require.Empty(t, call(t, "0", run, file, tables).errors, "what was written passes")
				require.Empty(t, call(t, "1", run, file, tables).logs, "and is not written again")
				if d.Cmd == "go" {
					formatted, err := format.Source([]byte(after))
					require.NoError(t, err)
					require.Equal(t, string(formatted), after)
				}
			}
			if after == before {
				after = "unchanged\n"
			}
			return strings.ReplaceAll(strings.Join(append(said.errors, ""), "\n")+after, filepath.Dir(file)+"/", "")
		})
	})
}

func call(t *testing.T, update string, run func(testing.TB, string, ...*fsm.Table), file string, tables []*fsm.Table) *recorder {
	t.Setenv(diagramtest.Update, update)
	r := &recorder{TB: t}
	run(r, file, tables...)
	return r
}

func content(t require.TestingT, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// The page that ExampleMarkdown finds up to date.
func TestDocumentation(t *testing.T) {
	diagramtest.Markdown(t, "testdata/door/TABLES.md", doors.Table())
}

func TestMissingFile(t *testing.T) {
	dir, tables := t.TempDir(), []*fsm.Table{doors.Table()}
	for _, update := range []string{"", "1"} {
		require.Len(t, call(t, update, diagramtest.Doc, filepath.Join(dir, "doc.go"), tables).errors, 1)
	}
	md := filepath.Join(dir, "TABLES.md")
	require.Len(t, call(t, "", diagramtest.Markdown, md, tables).errors, 1)
	require.NoFileExists(t, md)
	require.Empty(t, call(t, "1", diagramtest.Markdown, md, tables).errors, "an update makes it")
	require.Empty(t, call(t, "", diagramtest.Markdown, md, tables).errors)
	require.True(t, strings.HasPrefix(content(t, md), "## Table of door\n"))
}

func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "no", "such")
	r := call(t, "1", diagramtest.Markdown, filepath.Join(dir, "TABLES.md"), []*fsm.Table{doors.Table()})
	require.Len(t, r.errors, 1)
	require.Empty(t, r.logs)
}

// A checkout may have other line ends than those that were committed.
func TestLineEnds(t *testing.T) {
	file, tables := filepath.Join(t.TempDir(), "TABLES.md"), []*fsm.Table{doors.Table()}
	call(t, "1", diagramtest.Markdown, file, tables)
	dos := strings.ReplaceAll(content(t, file), "\n", "\r\n")
	require.NoError(t, os.WriteFile(file, []byte(dos), 0o644))
	require.Empty(t, call(t, "", diagramtest.Markdown, file, tables).errors)
}
