package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/fsm/internal/prose"
	"github.com/interlock-go/interlock/internal/visible"
)

// Severity is the weight of a [Finding].
type Severity uint8

// The severities, the least first.
const (
	Info    Severity = iota // a fact about the table
	Warning                 // probably a gap: correct it, or skip it with a reason
	Error                   // a fault: fsm.New refuses the table, or objects get lost
)

var severities = [...]string{"info", "warning", "error"}

// String returns "info", "warning" or "error".
func (s Severity) String() string {
	if int(s) < len(severities) {
		return severities[s]
	}
	return "severity?"
}

// MarshalText is [Severity.String].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// maxNamed is the number of rows and of events that one [Finding] lists: the first
// ones.
const maxNamed = 64

// Finding is one result of [Lint]. It is a plain value. ID is stable. The texts may
// change.
type Finding struct {
	ID       string   `json:"id"` // see the package documentation
	Severity Severity `json:"severity"`
	States   []string `json:"states"`  // in order of declaration; may be empty
	Events   []string `json:"events"`  // in order of declaration, 64 at most; may be empty
	Rows     []int    `json:"rows"`    // by index in the table, ascending, 64 at most
	Message  string   `json:"message"` // the fact
	Advice   string   `json:"advice"`  // the remedy, in one sentence
}

// String returns the finding as one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s. %s", f.Severity, f.ID, f.place(), f.Advice)
}

// place returns the message with the rows.
func (f Finding) place() string {
	text := visible.Text(f.Message)
	if len(f.Rows) == 0 || strings.HasPrefix(text, "row ") {
		return text
	}
	var rows []string
	for _, row := range f.Rows {
		rows = append(rows, strconv.Itoa(row))
	}
	return text + " (row " + prose.List(rows, "and") + ")"
}

// Findings is the result of [Lint]. As JSON it is a list, never null.
type Findings []Finding

// String returns a line for each finding. Successive findings of one kind, with the same
// advice, are a heading and an indented line for each place.
func (l Findings) String() string {
	var lines []string
	for i := 0; i < len(l); {
		first, n := l[i], 1
		for i+n < len(l) && l[i+n].ID == first.ID && l[i+n].Severity == first.Severity && l[i+n].Advice == first.Advice {
			n++
		}
		if n == 1 {
			lines = append(lines, first.String())
		} else {
			lines = append(lines, fmt.Sprintf("%s %s in %d places. %s", first.Severity, first.ID, n, first.Advice))
			for _, f := range l[i : i+n] {
				lines = append(lines, "  "+f.place())
			}
		}
		i += n
	}
	return strings.Join(lines, "\n")
}

// AtLeast returns the findings of a severity and of graver ones.
func (l Findings) AtLeast(s Severity) Findings {
	graver := Findings{}
	for _, f := range l {
		if f.Severity >= s {
			graver = append(graver, f)
		}
	}
	return graver
}
