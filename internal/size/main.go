// Command size prints the size of the packages below the working directory: lines of
// code without tests, lines of test code, and exported identifiers.
//
//	go run ./internal/size
//
// A line counts if it holds more than white space and comments. The identifiers
// are those that "go doc -all" lists: constants, variables, functions, types, and
// the fields and methods of exported types. A command exports nothing.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"log"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

type size struct{ code, test, exported int }

func main() {
	log.SetFlags(0)
	packages, err := measure(os.DirFS("."))
	if err != nil {
		log.Fatalf("size: %v", err)
	}
	fmt.Print(report(packages))
}

// report returns a line for every package, largest first, and the total.
func report(packages map[string]size) string {
	var b strings.Builder
	var total size
	line := func(s size, name string) { fmt.Fprintf(&b, "%6d %6d %9d  %s\n", s.code, s.test, s.exported, name) }
	fmt.Fprintf(&b, "%6s %6s %9s  %s\n", "code", "tests", "exported", "package")
	dirs := slices.Sorted(maps.Keys(packages))
	slices.SortStableFunc(dirs, func(a, b string) int { return packages[b].code - packages[a].code })
	for _, dir := range dirs {
		p := packages[dir]
		line(p, dir)
		total = size{total.code + p.code, total.test + p.test, total.exported + p.exported}
	}
	line(total, "total")
	return b.String()
}

// measure returns the sizes of the directories that hold Go files.
func measure(tree fs.FS) (map[string]size, error) {
	packages := make(map[string]size)
	return packages, fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		name := path.Base(file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (len(name) > 1 && name[0] == '.' || name == "testdata" || name == "vendor"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p := packages[path.Dir(file)]
		if strings.HasSuffix(name, "_test.go") {
			p.test += lines(source)
		} else {
			p.code += lines(source)
			p.exported += exported(syntax)
		}
		packages[path.Dir(file)] = p
		return nil
	})
}

// lines counts the lines on which a token stands. A comment is not a token.
func lines(source []byte) (n int) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, 0)
	last := 0 // the last line that is counted
	for {
		pos, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return n
		case tok == token.SEMICOLON && text == "\n":
			continue // the scanner inserts it at the end of a line
		}
		first := file.Line(pos)
		end := first + strings.Count(text, "\n")
		n += end - max(last, first-1)
		last = end
	}
}

// exported counts the identifiers that a file adds to the API of its package.
func exported(file *ast.File) (n int) {
	if file.Name.Name == "main" || !ast.FileExports(file) {
		return 0
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl: // FileExports keeps the methods of types that are not exported
			if node.Recv == nil || visible(node.Recv.List[0].Type) {
				n++
			}
			return false
		case *ast.FuncType:
			return false
		case *ast.ValueSpec:
			n += len(node.Names)
			return false
		case *ast.TypeSpec:
			n++
			node.TypeParams = nil
		case *ast.Field:
			n += max(1, len(node.Names)) // an embedded type has no names
		}
		return true
	})
	return n
}

// visible reports whether the type of a receiver is exported.
func visible(receiver ast.Expr) bool {
	return ast.IsExported(strings.TrimPrefix(types.ExprString(receiver), "*"))
}
