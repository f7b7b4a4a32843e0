package diagramtest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Update is the environment variable that makes [Doc] and [Markdown] rewrite
// the file instead of comparing, if it is set to anything but "" and "0".
const Update = "UPDATE_DOCS"

// Doc compares the sections of the tables in the package comment of a Go file,
// usually doc.go, with what the tables give: the states and rows as aligned
// text and the Mermaid source, as preformatted blocks. All tables of one file
// go into one call: a section of any other table is a difference too.
//
// The comment consists of // lines. A difference is an error of the test and
// names the line; so is a file without package comment.
func Doc(t testing.TB, file string, tables ...*fsm.Table) {
	t.Helper()
	check(t, file, goFile, tables)
}

// Markdown is [Doc] for a Markdown file: the tables are Markdown tables, and
// the picture is a fenced mermaid block that code hosts draw. Headings may have
// any level; new sections get level 2.
func Markdown(t testing.TB, file string, tables ...*fsm.Table) {
	t.Helper()
	check(t, file, markdownFile, tables)
}

// format is a kind of file.
type format struct {
	// section makes the section of a table.
	section func(*fsm.Table) section
	// rewrite returns the text with these sections and no others.
	rewrite func(text string, sections []section) (string, error)
	// create: an update may make the file.
	create bool
}

var (
	goFile       = format{section: docSection, rewrite: rewriteGo}
	markdownFile = format{section: markdownSection, rewrite: rewriteMarkdown, create: true}
)

func check(t testing.TB, file string, f format, tables []*fsm.Table) {
	t.Helper()
	setting := os.Getenv(Update)
	update := setting != "" && setting != "0"
	have, err := read(file, update && f.create)
	if err != nil {
		t.Errorf("diagramtest: %v", err)
		return
	}
	want, err := rewrite(have, f, tables)
	switch {
	case err != nil:
		t.Errorf("diagramtest: %s: %v", file, err)
	case want == have:
	case !update:
		t.Errorf("diagramtest: %s\nWith %s=1 in the environment this test rewrites the file.",
			difference(file, have, want), Update)
	default:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Errorf("diagramtest: %v", err)
			return
		}
		t.Logf("diagramtest: %s rewritten", file)
	}
}

// read returns a file with Unix line ends, as a checkout may have others. With
// create, a file that does not exist is empty.
func read(file string, create bool) (string, error) {
	text, err := os.ReadFile(file)
	if create && errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}

func rewrite(text string, f format, tables []*fsm.Table) (string, error) {
	if len(tables) == 0 {
		return "", errors.New("no table is given")
	}
	var sections []section
	seen := make(map[string]bool)
	for _, table := range tables {
		s := f.section(table)
		if seen[s.title] {
			return "", fmt.Errorf("two tables have the heading %q", s.title)
		}
		seen[s.title] = true
		sections = append(sections, s)
	}
	return f.rewrite(text, sections)
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
