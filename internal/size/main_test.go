package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const library = `// Package p is a sample.
package p

import "io" /* a comment
of two lines */

const (
	A, b = 1, 2
	C    = ` + "`one\n\n\nfour`" + `
)

var V, w = A, b

type T[K comparable] struct {
	io.Reader
	X, y int
	hidden
	Pairs struct{ Inner K }
}

type hidden struct{ Unseen int }

type I interface {
	io.Writer
	M(Param int)
	m()
}

func (t *T[K]) Method() { type Local struct{ Unseen int } }
func (hidden) Unseen()  {}
func F()                {}
func f()                {}
`

func TestMeasure(t *testing.T) {
	tree := fstest.MapFS{
		"p/p.go":              {Data: []byte(library)},
		"p/p_test.go":         {Data: []byte("package p\n\nfunc TestP() {\n}\n")},
		"p/testdata/x.go":     {Data: []byte("not Go")},
		"p/.hidden/x.go":      {Data: []byte("not Go")},
		"p/notes.txt":         {Data: []byte("no Go file")},
		"cmd/main.go":         {Data: []byte("package main\n\nfunc Exported() {}\n")},
		"cmd/main_other.go":   {Data: []byte("package main\n")},
		"vendor/x/dropped.go": {Data: []byte("package x\n")},
	}
	packages, err := measure(tree)
	require.NoError(t, err)
	require.Equal(t, map[string]size{
		// A, C, V, T, Reader, X, Pairs, Inner, I, Writer, M, Method, F
		"p":   {code: 26, test: 3, exported: 13},
		"cmd": {code: 3},
	}, packages)
	require.Equal(t, ""+
		"  code  tests  exported  package\n"+
		"    26      3        13  p\n"+
		"     3      0         0  cmd\n"+
		"    29      3        13  total\n", report(packages))

	tree["broken.go"] = &fstest.MapFile{Data: []byte("package")}
	_, err = measure(tree)
	require.ErrorContains(t, err, "broken.go:1")
}
