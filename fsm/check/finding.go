package check

import (
	"fmt"
	"strconv"
	"strings"
)

// Severity says what a [Finding] asks of people.
type Severity uint8

const (
	Info    Severity = iota // a fact that is good to know
	Warning                 // probably a gap: look at it, or say why it is meant
	Error                   // wrong: no machine can be made of it, or objects get lost
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

// UnmarshalText reads what MarshalText writes.
func (s *Severity) UnmarshalText(text []byte) error {
	for i, name := range severities {
		if name == string(text) {
			*s = Severity(i)
			return nil
		}
	}
	return fmt.Errorf("check: unknown severity %s", clip(string(text)))
}

// MaxNamed is how many rows and how many events one [Finding] lists at most: the
// first ones. A table can be made so that every finding is about all of them.
const MaxNamed = 64

// Finding is one thing that [Lint] says about a table. It is a plain value; ID is
// stable and made for programs, the texts are for people and may change.
type Finding struct {
	ID       string   `json:"id"` // one of those in the table of the package documentation
	Severity Severity `json:"severity"`
	States   []string `json:"states"`  // that it is about, in order of declaration; may be empty
	Events   []string `json:"events"`  // likewise
	Actors   []string `json:"actors"`  // likewise
	Rows     []int    `json:"rows"`    // by index in the table, ascending: what to look at
	Message  string   `json:"message"` // what is so
	Advice   string   `json:"advice"`  // what to do, in one sentence
}

// String returns the finding as one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", f.Severity, f.ID, f.Message)
	if len(f.Rows) > 0 && !strings.HasPrefix(f.Message, "row ") {
		b.WriteString(" (row ")
		for i, row := range f.Rows {
			if i == few {
				fmt.Fprintf(&b, " and %d more", len(f.Rows)-few)
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.Itoa(row))
		}
		b.WriteByte(')')
	}
	b.WriteString(". ")
	b.WriteString(f.Advice)
	return b.String()
}

// Findings is what [Lint] returns. As JSON it is a list, never null.
type Findings []Finding

// String returns a line for each finding.
func (l Findings) String() string {
	lines := make([]string, len(l))
	for i, f := range l {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// AtLeast returns the findings of this severity and of graver ones.
func (l Findings) AtLeast(s Severity) Findings {
	graver := Findings{}
	for _, f := range l {
		if f.Severity >= s {
			graver = append(graver, f)
		}
	}
	return graver
}

// few is how many names or rows a text lists.
const few = 8

// some lists names for a text.
func some(names []string, word string) string {
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" %s %d more", word, len(names)-few)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " " + word + " " + names[n-1]
	}
	return strings.Join(names, "")
}

// clip makes a text from outside fit to be quoted in a line for people.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
