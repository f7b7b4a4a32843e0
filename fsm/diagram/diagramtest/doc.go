// Package diagramtest keeps the tables and pictures in a package's
// documentation equal to the machine that runs: a test fails when they differ,
// and the same test writes them.
//
// A package with machines has one test:
//
//	func TestDocumentation(t *testing.T) {
//		diagramtest.Doc(t, "doc.go", ClusterInst.Table(), CloudletUpgrade.Table())
//	}
//
// The sections are made, and made anew after a change of a table, by
//
//	UPDATE_DOCS=1 go test -run TestDocumentation .
//
// A section begins with the heading "Table of NAME", NAME being the machine's
// name, and ends at the next heading or with the comment or file. Everything
// in between is generated; what people write stands before the first such
// section or under a heading of its own. A section that is missing is added at
// the end when the file is rewritten.
//
// # Guarantees
//
//   - After a passing test every given table has exactly one section, its
//     content is what [diagram.Text], [diagram.Markdown] and [diagram.Mermaid]
//     give for the table, and no section of another table is left.
//   - Nothing else of the file is changed, and a file that needs no change is
//     not written. What is generated has the form that gofmt gives it.
//   - Whatever the names in a table are, a section stays inside its comment.
//
// # No guarantees
//
//   - The text between two sections is not looked at: that it agrees with the
//     table is up to who writes it.
//   - A file is written in place. Two tests that rewrite the same file at once
//     may lose one of the changes; give all tables of a file to one call.
package diagramtest
