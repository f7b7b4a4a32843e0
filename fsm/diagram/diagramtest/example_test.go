package diagramtest_test

import (
	"fmt"
	"os"

	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
)

// In a package with machines this is one line of a test:
//
//	diagramtest.Doc(t, "doc.go", doors.Table())
//
// Here the file differs from the machine, and t records the error.
func ExampleDoc() {
	t := new(recorder)
	os.Setenv(diagramtest.Update, "") // compare, do not rewrite
	diagramtest.Doc(t, "testdata/door/doc.go", doors.Table())
	fmt.Println(t.errors[0])
	// Output:
	// diagramtest: testdata/door/doc.go:9: differs from the machine
	// file:    //	| Open   | stable          |
	// machine: //	| Open   | stable, initial |
	// With UPDATE_DOCS=1 in the environment this test rewrites the file.
}
