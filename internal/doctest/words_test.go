package doctest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// refused are the words and phrases that the documentation does not use.
var refused = regexp.MustCompile(`(?i)\b(who|whoever|whom|somebody|someone|nobody|everybody|anybody|` +
	`says|said|tells|told|as it is|no news|the word)\b`)

func TestWords(t *testing.T) {
	byPlace, err := violations(os.DirFS(root))
	require.NoError(t, err)
	for place, found := range byPlace {
		t.Errorf("%s:\n%s", place, strings.Join(found, "\n"))
	}
}

// violations returns the lines with refused words by directory, and by name for the
// documents.
func violations(tree fs.FS) (map[string][]string, error) {
	byPlace := make(map[string][]string)
	return byPlace, fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		name := path.Base(file)
		switch {
		case err != nil:
			return err
		case file == ".github":
			return nil
		case d.IsDir() && (len(name) > 1 && name[0] == '.' || name == "testdata" || name == "vendor"):
			return fs.SkipDir
		case file == "README.md", file == "CHANGELOG.md", file == ".github/CONTRIBUTING.md", file == ".github/SECURITY.md":
		case d.IsDir(), path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		place, check := file, documentLines
		if path.Ext(name) == ".go" {
			place, check = path.Dir(file), commentLines
		}
		lines, err := check(file, text)
		for _, l := range lines {
			for _, word := range refused.FindAllString(l.text, -1) {
				byPlace[place] = append(byPlace[place], fmt.Sprintf("%s:%d: %q in %q", file, l.number, word, strings.TrimSpace(l.text)))
			}
		}
		return err
	})
}

// line is one line of documentation.
type line struct {
	number int
	text   string
}

// code is an identifier or a command in Markdown.
var code = regexp.MustCompile("`[^`]*`")

func documentLines(_ string, text []byte) (lines []line, err error) {
	number := 0
	for l := range bytes.Lines(text) {
		number++
		lines = append(lines, line{number, code.ReplaceAllString(string(l), "`code`")})
	}
	return lines, nil
}

// commentLines returns the lines of the comments that "go doc -all" prints.
func commentLines(file string, text []byte) (lines []line, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.FileExports(f)
	if f.Name.Name == "main" {
		f.Decls = nil
	}
	ast.Inspect(f, func(node ast.Node) bool {
		if fun, ok := node.(*ast.FuncDecl); ok && fun.Recv != nil && !exportedReceiver(fun) {
			return false
		}
		if c, ok := node.(*ast.Comment); ok {
			for i, l := range strings.Split(c.Text, "\n") {
				lines = append(lines, line{fset.Position(c.Pos()).Line + i, l})
			}
		}
		return true
	})
	return lines, nil
}

// exportedReceiver reports whether the type of a method is exported.
func exportedReceiver(fun *ast.FuncDecl) bool {
	return ast.IsExported(strings.TrimPrefix(types.ExprString(fun.Recv.List[0].Type), "*"))
}

func TestViolations(t *testing.T) {
	const source = `// Package p says.
package p

// T holds
// somebody.
type T[K any] struct {
	A, b int // who
	c    int // whom
}

// Told is fine as Whoever; as it is not.
func (t *T[K]) M() {
	// nobody
}

// told
func f() {}

type t struct{}

// said
func (t) M() {}

/* anybody
and the word */
const C = 1 // the words, withheld: whole words only
`
	byPlace, err := violations(fstest.MapFS{
		"p/p.go":                  {Data: []byte(source)},
		"p/p_test.go":             {Data: []byte("// Package p says.\npackage p\n")},
		"cmd/main.go":             {Data: []byte("// Command cmd tells.\npackage main\n\n// said\nfunc F() {}\n")},
		"testdata/x.go":           {Data: []byte("no Go")},
		"README.md":               {Data: []byte("fine: `Said`\n\nEverybody\n")},
		".github/CONTRIBUTING.md": {Data: []byte("who\n")},
		"notes/README.md":         {Data: []byte("Everybody\n")},
	})
	require.NoError(t, err)
	require.Equal(t, map[string][]string{
		"p": {
			`p/p.go:1: "says" in "// Package p says."`,
			`p/p.go:5: "somebody" in "// somebody."`,
			`p/p.go:7: "who" in "// who"`,
			`p/p.go:11: "Told" in "// Told is fine as Whoever; as it is not."`,
			`p/p.go:11: "Whoever" in "// Told is fine as Whoever; as it is not."`,
			`p/p.go:11: "as it is" in "// Told is fine as Whoever; as it is not."`,
			`p/p.go:24: "anybody" in "/* anybody"`,
			`p/p.go:25: "the word" in "and the word */"`,
		},
		"cmd":                     {`cmd/main.go:1: "tells" in "// Command cmd tells."`},
		".github/CONTRIBUTING.md": {`.github/CONTRIBUTING.md:1: "who" in "who"`},
		"README.md":               {`README.md:3: "Everybody" in "Everybody"`},
	}, byPlace)
	_, err = violations(fstest.MapFS{"p.go": {Data: []byte("no Go")}})
	require.Error(t, err)
}
