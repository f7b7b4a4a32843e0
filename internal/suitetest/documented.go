package suitetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// Documented fails a test unless doc.go in the working directory lists exactly these
// demands below the heading "Demands", numbered and in order. It ignores line breaks.
// With UPDATE_DOCS=1 in the environment it rewrites the list.
func Documented(t testing.TB, demands []string) {
	t.Helper()
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(source), heading)
	if !found {
		t.Fatal("doc.go has no heading Demands")
	}
	listed := rest[:max(strings.Index(rest, "//\n// # "), 0)]
	if listed == "" {
		listed, _, _ = strings.Cut(rest, "package ")
	}
	var want strings.Builder
	for i, d := range demands {
		paragraph(&want, fmt.Sprintf("//  %d. %s", i+1, d))
	}
	words := func(text string) string { return strings.Join(strings.Fields(strings.ReplaceAll(text, "//", "")), " ") }
	if words(listed) == words(want.String()) {
		return // however the lines are broken
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Errorf("UPDATE_DOCS=1 in the environment writes doc.go anew, which is to list:\n%s", want.String())
		return
	}
	text := before + heading + want.String() + strings.TrimPrefix(rest, listed)
	if err := os.WriteFile("doc.go", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const heading = "// # Demands\n//\n"

// paragraph writes an item of a list in the format of gofmt.
func paragraph(b *strings.Builder, item string) {
	const width, indent = 81, "//    "
	line := ""
	for _, word := range strings.Split(item, " ") {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}
