package conform

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-go/interlock/fsm"
)

// Check reports to t every difference between the table of a machine and a document
// that the map file does not name, and every fault of the map file.
func Check(t testing.TB, machine *fsm.Table, documentFile, mapFile string) {
	t.Helper()
	text, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	document, err := fsm.ParseTable(text)
	if err != nil {
		t.Fatalf("%s: %v", documentFile, err)
	}
	text, err = os.ReadFile(mapFile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseMap(string(text))
	if err != nil {
		t.Fatalf("%s: %v", mapFile, err)
	}
	for _, fault := range compare(machine, document, m) {
		t.Errorf("%s and %s: %s", machine.Name, documentFile, fault)
	}
}

// compare returns the faults that [Check] reports.
func compare(machine, document *fsm.Table, m *mapping) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	original := lines(document)
	for _, entry := range m.rename(document) {
		add("the document has no %s", entry)
	}
	var want []string
	for i, line := range lines(document) {
		if !slices.Contains(m.missing, original[i]) {
			want = append(want, line)
		}
	}
	for _, line := range m.missing {
		if !slices.Contains(original, line) {
			add("the document has no line %q", line)
		}
	}
	for _, line := range m.added {
		if slices.Contains(want, line) {
			add("the document has the added line %q", line)
		}
		want = append(want, line)
	}
	slices.Sort(want)
	want = slices.Compact(want) // two rows of a document may become one
	got := slices.DeleteFunc(lines(machine), func(line string) bool {
		state, _, leads := strings.Cut(line, " leads to ")
		return leads && strings.HasPrefix(line, "state ") && !slices.ContainsFunc(want, func(line string) bool { return strings.HasPrefix(line, state+" leads to ") })
	})
	if diff := cmp.Diff(count(want), count(got)); diff != "" {
		add("the tables differ (-document +machine):\n%s", diff)
	}
	return append(faults, additionFaults(machine, m.additions)...)
}

// count returns how often each line occurs.
func count(lines []string) map[string]int {
	n := make(map[string]int, len(lines))
	for _, line := range lines {
		n[line]++
	}
	return n
}

// additionFaults returns the faults of rows that go beyond the document, and of rows
// of the sweeper.
func additionFaults(machine *fsm.Table, additions []string) (faults []string) {
	for e, line := range rowLines(machine) {
		row := &machine.Rows[e.Row]
		switch {
		case strings.Contains(line, " by sweeper-->") && row.Timeout == 0:
			faults = append(faults, fmt.Sprintf("row %q has no timeout", line))
		case !slices.Contains(additions, line):
		case row.Doc == "":
			faults = append(faults, fmt.Sprintf("addition %q has no Doc", line))
		case !row.Forced && row.Timeout == 0 && !strings.Contains(line, " by observer-->"):
			faults = append(faults, fmt.Sprintf("addition %q is neither forced nor by an observer, and has no timeout", line))
		}
	}
	return faults
}
