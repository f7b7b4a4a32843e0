package diagramtest

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/suitetest"
)

// Update is the environment variable that makes [Doc] rewrite the file instead of
// comparing it, unless its value is "" or "0". The table of a mutant is always compared.
const Update = "UPDATE_DOCS"

// Doc compares the sections of the tables in the package comment of a Go file with the
// tables: the states and rows as aligned text, and the Mermaid source. One call gets
// all tables of the file, because a section of another table is a difference too.
//
// The comment consists of // lines. Doc reports the first line that differs to t, and
// a file without a package comment. A file with Windows line ends is equal to one
// with Unix line ends, which a rewritten file has.
func Doc(t testing.TB, file string, tables ...*fsm.Table) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("diagramtest: %v", err)
		return
	}
	have := strings.ReplaceAll(string(text), "\r\n", "\n")
	want, err := rewrite(have, tables)
	update := os.Getenv(Update) != "" && os.Getenv(Update) != "0" && !suitetest.IsMutant(t.Context())
	switch {
	case err != nil || want == have:
	case update:
		if err = os.WriteFile(file, []byte(want), 0o644); err == nil {
			t.Logf("diagramtest: %s rewritten", file)
		}
	default:
		t.Errorf("diagramtest: %s\nWith %s=1 in the environment this test rewrites the file.", difference(file, have, want), Update)
	}
	if err != nil {
		t.Errorf("diagramtest: %s: %v", file, err)
	}
}

// rewrite returns the text of a Go file with the sections of the tables and no others.
func rewrite(text string, tables []*fsm.Table) (string, error) {
	if len(tables) == 0 {
		return "", errors.New("no table is given")
	}
	var sections []section
	for _, table := range tables {
		s := newSection(table)
		if slices.ContainsFunc(sections, func(x section) bool { return x.title == s.title }) {
			return "", fmt.Errorf("two tables have the heading %q", s.title)
		}
		sections = append(sections, s)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return "", err
	}
	if f.Doc == nil {
		return "", errors.New("no package comment")
	}
	for _, c := range f.Doc.List {
		if !strings.HasPrefix(c.Text, "//") {
			return "", errors.New("the package comment must consist of // lines")
		}
	}
	lines := strings.Split(text, "\n")
	first := fset.PositionFor(f.Doc.Pos(), false).Line - 1
	last := fset.PositionFor(f.Doc.End(), false).Line // exclusive
	return strings.Join(slices.Concat(lines[:first], replace(lines[first:last], sections), lines[last:]), "\n"), nil
}

// difference names the first line that differs.
func difference(file, have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	line := func(list []string) string {
		if at < len(list) {
			return list[at]
		}
		return "(end of file)"
	}
	return fmt.Sprintf("%s:%d: differs from the machine\nfile:    %s\nmachine: %s", file, at+1, line(a), line(b))
}
