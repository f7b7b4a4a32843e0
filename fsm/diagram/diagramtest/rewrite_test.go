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

// The scripts contain files. The output is the error of a comparison, and the file
// after an update.
//
//	go tables=(door,lamp,twin)
func TestRewrite(t *testing.T) {
	datadriven.Walk(t, "testdata/rewrite", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			file := filepath.Join(t.TempDir(), "doc.go")
			var tables []*fsm.Table
			for _, arg := range d.CmdArgs {
				for _, name := range arg.Vals {
					tables = append(tables, byName(name))
				}
			}
			before := d.Input + "\n"
			require.NoError(t, os.WriteFile(file, []byte(before), 0o640))

			checked := call(t, "", file, tables)
			require.Equal(t, checked.errors, call(t, "0", file, tables).errors)
			require.Equal(t, before, content(t, file), "a check writes nothing")
			updated := call(t, "1", file, tables)
			after := content(t, file)
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode())

			if len(updated.errors) > 0 {
				require.Equal(t, before, after, "nothing is written after an error")
				require.Equal(t, checked.errors, updated.errors)
			} else {
				require.Empty(t, call(t, "0", file, tables).errors, "what was written passes")
				require.Empty(t, call(t, "1", file, tables).logs, "and is not written again")
				formatted, err := format.Source([]byte(after))
				require.NoError(t, err)
				require.Equal(t, string(formatted), after)
			}
			if after == before {
				after = "unchanged\n"
			}
			return strings.ReplaceAll(strings.Join(append(checked.errors, ""), "\n")+after, filepath.Dir(file)+"/", "")
		})
	})
}

func call(t *testing.T, update, file string, tables []*fsm.Table) *recorder {
	t.Setenv(diagramtest.Update, update)
	r := &recorder{TB: t}
	diagramtest.Doc(r, file, tables...)
	return r
}

func content(t require.TestingT, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func TestMissingFile(t *testing.T) {
	for _, update := range []string{"", "1"} {
		require.Len(t, call(t, update, filepath.Join(t.TempDir(), "doc.go"), []*fsm.Table{doors.Table()}).errors, 1)
	}
}

// A checkout may have Windows line ends.
func TestLineEnds(t *testing.T) {
	file, tables := filepath.Join(t.TempDir(), "doc.go"), []*fsm.Table{doors.Table()}
	require.NoError(t, os.WriteFile(file, []byte("// Package p is p.\npackage p\n"), 0o600))
	require.Empty(t, call(t, "1", file, tables).errors)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(content(t, file), "\n", "\r\n")), 0o600))
	require.Empty(t, call(t, "", file, tables).errors)
}
