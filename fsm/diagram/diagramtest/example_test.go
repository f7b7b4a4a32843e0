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
// Here the file has drifted, and t only keeps what is said.
func ExampleDoc() {
	t := new(recorder)
	os.Setenv(diagramtest.Update, "") // compare, whatever the environment says
	diagramtest.Doc(t, "testdata/door/doc.go", doors.Table())
	fmt.Println(t.errors[0])
	// Output:
	// diagramtest: testdata/door/doc.go:9: differs from the machine
	// file:    //	| Open   | stable          |
	// machine: //	| Open   | stable, initial |
	// With UPDATE_DOCS=1 in the environment this test rewrites the file.
}

func ExampleMarkdown() {
	t := new(recorder)
	os.Setenv(diagramtest.Update, "")
	diagramtest.Markdown(t, "testdata/door/TABLES.md", doors.Table())
	fmt.Println(len(t.errors), "differences")
	// Output: 0 differences
}
