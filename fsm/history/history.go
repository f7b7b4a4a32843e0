package history

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/prose"
	"github.com/interlock-go/interlock/internal/visible"
)

// TableVersion is a table with the time from which it applies. One call may have
// several machines and several versions of each.
type TableVersion struct {
	// Name is the text that rows have in their field Version.
	Name  string
	Table *fsm.Table
	// Since is the time from which the version applies to rows without a version. The zero
	// Since is the beginning. Check compares such a row with the newest version of its
	// machine at the time of the row, or with the newest of all if the row has no time.
	// Of several versions with the same Since, Check takes the one without a Name: leave
	// Since zero if all rows of the other versions name theirs.
	Since time.Time
}

// Config sets how strict [Check] is. The zero Config has the defaults: the history
// has every change of every object, from the first one.
type Config struct {
	// Gaps is for feeds that skip rows, repeat them, or start in the middle. Check
	// counts missing rows instead of reporting them, and makes no finding that
	// depends on a missing row.
	Gaps bool

	// IgnoreOthers skips rows of machines without a table.
	IgnoreOthers bool

	// ClockSlack is the time by which a row may be older than the row before it.
	// Default: 0.
	ClockSlack time.Duration
}

// keepEnded is the number of ended objects that Check remembers, the last ones, to find
// late rows.
var keepEnded = 1 << 12

// maxFindings is the number of findings that a summary keeps.
const maxFindings = 100

// override is the event of rows that skip the table, see lifecycle.Manager.Override.
// Check does not compare them with the rows of the table.
const override = "(override)"

// migration is the event of rows that lead from the name of a state in one version to its
// name in another, see lifecycle.Migrate. Check does not compare them with the rows of the
// table either, and their operation is that of the row before.
const migration = "(migrate)"

// ErrEmpty reports a history without a row to check.
var ErrEmpty = errors.New("history: no rows")

// Check compares a history with the tables of its time. Rows of several objects may be
// interleaved. The rows of one object come in order. Check remembers the last 4096 objects
// that have ended; a late row of another one counts as one of a new object. A nil config is
// the default.
//
// The summary is never nil and covers the rows up to an error. The errors are
// [ErrEmpty], [fsm.ErrInvalid] for unusable tables (none, nil,
// without a name, with more than [fsm.MaxStates], [fsm.MaxEvents] or [fsm.MaxActors], or two
// with one machine and version), and the errors of the history. A [*LineError] is a finding and no error.
func Check(rows iter.Seq2[Row, error], tables []TableVersion, config *Config) (*Summary, error) {
	c := &checker{config: *cmp.Or(config, &Config{}), sum: &Summary{Counts: make(map[string]int), Findings: []Finding{}}}
	var err error
	if c.machines, err = newMachines(tables); err != nil {
		return c.sum, err
	}
	var row Row // one variable for all rows
	for next, err := range rows {
		row = next
		switch line, unreadable := errors.AsType[*LineError](err); {
		case unreadable:
			c.sum.Unreadable++
			c.found(&Row{Line: line.Line}, "unreadable", line.Text, "a JSON object in the form of history.Read")
			continue
		case err != nil:
			return c.sum, err
		}
		c.row(&row)
	}
	if c.sum.Rows == 0 {
		return c.sum, ErrEmpty
	}
	return c.sum, nil
}

// Finding is one violation in a history. It is a plain value. ID is stable. The texts
// may change.
type Finding struct {
	ID       string `json:"id"` // see the package documentation
	Line     int    `json:"line,omitempty"`
	Row      int    `json:"row"` // from 1, among those of Summary.Rows; for an unreadable line, the row before it
	Machine  string `json:"machine,omitempty"`
	Object   string `json:"object,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	Message  string `json:"message"`  // the violation
	Expected string `json:"expected"` // what the table allows instead
}

// String returns the finding as one line.
func (f Finding) String() string {
	at := fmt.Sprintf("row %d", f.Row)
	if f.Line > 0 {
		at = fmt.Sprintf("line %d", f.Line)
	}
	if f.Machine != "" {
		at += " " + f.Machine
	}
	if f.Object != "" {
		at += " " + prose.Quote(f.Object)
	}
	if f.Sequence > 0 {
		at += fmt.Sprintf(" #%d", f.Sequence)
	}
	return visible.Text(fmt.Sprintf("%s: %s: %s; expected %s", at, f.ID, f.Message, f.Expected))
}

// Summary is the result of [Check]. It is a plain value.
type Summary struct {
	Rows       int `json:"rows"`       // checked
	Unreadable int `json:"unreadable"` // lines that Read could not read
	Ignored    int `json:"ignored"`    // rows that IgnoreOthers skipped
	Overrides  int `json:"overrides"`  // rows with the event "(override)", which skip the table

	Objects int `json:"objects"` // created, or alive when the feed began
	Alive   int `json:"alive"`   // at the end
	Most    int `json:"most"`    // at once

	// With Gaps: the rows that are missing by their sequence numbers or by a break
	// in the states, and the repeated rows that Check skipped.
	Missing  int `json:"missing"`
	Repeated int `json:"repeated"`

	Counts   map[string]int `json:"counts"`   // of findings, by id
	Findings []Finding      `json:"findings"` // the first 100
}

// OK reports whether Check read at least one row and made no finding.
func (s *Summary) OK() bool { return s.Rows > 0 && len(s.Counts) == 0 }

// String returns a line about the history, and a line for each kept finding.
func (s *Summary) String() string {
	text := counted(s.Rows, "row") + " of " + counted(s.Objects, "object")
	if s.Overrides > 0 {
		text += ", " + counted(s.Overrides, "override")
	}
	for _, part := range []struct {
		n    int
		what string
	}{{s.Missing, "missing"}, {s.Repeated, "repeated"}, {s.Ignored, "of other machines"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	found := 0
	for _, n := range s.Counts {
		found += n
	}
	text += ": " + counted(found, "finding")
	for _, f := range s.Findings {
		text += "\n" + f.String()
	}
	if rest := found - len(s.Findings); rest > 0 {
		text += fmt.Sprintf("\nand %d more", rest)
	}
	return text
}

// counted returns a number of things as text.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
