// Package diagramtest compares the tables and pictures in the documentation of a
// package with its machines.
//
//	func TestDocumentation(t *testing.T) {
//		diagramtest.Doc(t, "doc.go", ClusterInst.Table(), CloudletUpgrade.Table())
//	}
//
// The test fails after a change of a table. It rewrites the documentation with
//
//	UPDATE_DOCS=1 go test -run TestDocumentation .
//
// A section starts with the heading "Table of NAME", where NAME is the name of the
// machine, and ends at the next heading or with the comment. The whole section is
// generated. Other text stands before the first section or below a heading of its
// own. [Doc] appends a missing section to the comment.
//
// # Guarantees
//
//   - After a passing test every table has exactly one section. Its content is that
//     of [diagram.Text] and [diagram.Mermaid]. No section of another table is left.
//   - Doc changes nothing else in the file, and does not write an unchanged file. The
//     generated text has the form of gofmt.
//   - A section stays inside its comment for every name in a table.
//
// # Limits
//
//   - Doc does not read the text between two sections.
//   - Doc writes a file in place. Two tests that rewrite the same file at once may
//     lose a change.
package diagramtest
