package conform

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Check fails t with a line for every [Finding] of the machine against a
// document and a mapping in files, and for every small change of the machine
// that the comparison would not notice.
func Check(t testing.TB, table *fsm.Table, documentFile, mappingFile string) {
	t.Helper()
	d, err := ReadDocument(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadMapping(mappingFile)
	if err != nil {
		t.Fatal(err)
	}
	CheckDocument(t, table, d, m)
}

// CheckDocument is [Check] with a document and a mapping that the test has
// already. A nil mapping says that machine and document are the same.
func CheckDocument(t testing.TB, table *fsm.Table, d *Document, m *Mapping) {
	t.Helper()
	if m == nil {
		m = &Mapping{}
	}
	findings := Compare(table, d, m)
	for _, f := range findings {
		t.Errorf("%s and %s: %s: %s", table.Name, d.Name, f.Code, f.Text)
	}
	if len(findings) > 0 {
		return
	}
	for _, change := range unnoticed(table, func(t *fsm.Table) []Finding { return Compare(t, d, m) }) {
		t.Errorf("%s and %s: the comparison does not notice: %s", table.Name, d.Name, change)
	}
}

// unnoticed returns the changes of a table after which compare finds nothing.
func unnoticed(table *fsm.Table, compare func(*fsm.Table) []Finding) (changes []string) {
	for mutant := range mutants(table) {
		if len(compare(mutant.table)) == 0 {
			changes = append(changes, mutant.change)
		}
	}
	return changes
}
