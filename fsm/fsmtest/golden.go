package fsmtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

// Update is the environment variable that makes [Matrix] and [Diagram] write their
// file instead of comparing, if it is set to anything but "" and "0".
const Update = "UPDATE_DOCS"

// Diagram compares a file with the picture of a table. The end of its name says
// which: .mmd is Mermaid, .dot is DOT, .md a Markdown table, .txt aligned text. A
// nil config draws the defaults.
func Diagram(t testing.TB, table *fsm.Table, file string, config *diagram.Config) {
	t.Helper()
	draw := map[string]func(*fsm.Table, *diagram.Config) string{
		".mmd": diagram.Mermaid, ".dot": diagram.DOT, ".md": diagram.Markdown, ".txt": diagram.Text,
	}[filepath.Ext(file)]
	if draw == nil {
		t.Errorf("fsmtest: %s: no picture ends in %q: it is .mmd, .dot, .md or .txt", file, filepath.Ext(file))
		return
	}
	golden(t, file, draw(table, config))
}

// golden compares a file with what it should hold, or writes it.
func golden(t testing.TB, file, want string) {
	t.Helper()
	setting := os.Getenv(Update)
	update := setting != "" && setting != "0"
	data, err := os.ReadFile(file)
	have := strings.ReplaceAll(string(data), "\r\n", "\n") // as a checkout may have them
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		t.Errorf("fsmtest: %v", err)
	case err == nil && have == want:
	case !update && err != nil:
		t.Errorf("fsmtest: %s does not exist; with %s=1 in the environment this test writes it", file, Update)
	case !update:
		t.Errorf("fsmtest: %s\nWith %s=1 in the environment this test writes the file anew.", difference(file, have, want), Update)
	default:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Errorf("fsmtest: %v", err)
			return
		}
		t.Logf("fsmtest: %s is written anew", file)
	}
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
	return fmt.Sprintf("%s:%d: differs from the table\nfile:  %s\ntable: %s", file, at+1, line(a), line(b))
}
