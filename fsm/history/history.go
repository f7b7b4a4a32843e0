package history

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// TableVersion is a table that objects lived by, and when. Several machines and
// several versions of each may be given at once.
type TableVersion struct {
	// Name is what rows call the version in their field Version.
	Name  string
	Table *fsm.Table
	// Since is when the version came into force. A row that names no version is of
	// the newest one of its machine that was in force by then; without a time, of the
	// newest of all. The zero Since is the beginning.
	Since time.Time
}

// Config says how strict [Check] is. The zero Config is the default:
// every change of every object is there, from the first one.
type Config struct {
	// Gaps is for feeds that skip rows, repeat them and begin in the middle. What
	// is missing is counted and is no finding, and nothing is said about a row
	// that hangs on one that is missing. Everything else is judged as before.
	Gaps bool

	// IgnoreOthers passes over rows of machines of which there is no table.
	IgnoreOthers bool

	// ClockSlack is by how much time may go backwards between two rows of an
	// object. Default 0.
	ClockSlack time.Duration

	// Override is the event of rows that skip the table: a person put the object
	// where it is. Only the sequence, the time and the operation of such a row are
	// judged. Default "(override)", which is what package lifecycle writes.
	Override string

	// MaxObjects is how many objects may be alive at once. Default 1,048,576, of
	// about 200 bytes each and their ids.
	MaxObjects int

	// KeepEnded is how many objects are remembered after their end, the last ones,
	// so that a row that comes later is judged by it; a row of one that is
	// forgotten is one of a new object. Default 4096; below 0: none.
	KeepEnded int

	// KeepFindings is how many findings the summary keeps, the first ones. Default
	// 100; below 0: none.
	KeepFindings int

	// Found is told every finding as it is found, if it is not nil.
	Found func(Finding)
}

// The errors of Check, beside those of the history.
var (
	// ErrEmpty: there was not a single row to judge, and nothing is shown.
	ErrEmpty = errors.New("check: the history is empty")
	// ErrTooManyObjects: more objects are alive than MaxObjects; the rest of the
	// history was not looked at.
	ErrTooManyObjects = errors.New("check: too many objects are alive at once")
)

// Check judges a history by the tables of its time: whether what is said to have
// happened could have happened by them. Rows of many objects may be interleaved;
// those of one object come in order. Guards are not run.
//
// It takes one pass. What it keeps grows with the objects that are alive at once
// and not with the length: see the fields of [Config]. After a finding it
// goes on from what the row says, so that one mistake is one finding.
//
// The summary is there in every case and says how far it came. Errors:
// [ErrEmpty], [ErrTooManyObjects], [fsm.ErrInvalid] for tables that cannot be
// used (none, nil, without a name, or two of one machine and one name), and what
// the history ends with; a [*LineError] is a finding and does not end it. A nil
// config is the default.
func Check(rows iter.Seq2[Row, error], tables []TableVersion, config *Config) (*Summary, error) {
	c, err := newConformer(tables, config)
	if err != nil {
		return c.sum, err
	}
	var row Row // one for all: it is passed on by reference
	for next, err := range rows {
		row = next
		switch line, unreadable := errors.AsType[*LineError](err); {
		case unreadable:
			c.sum.Unreadable++
			c.found(&Row{Line: line.Line}, Unreadable, line.Text, "a line of the documented form")
			continue
		case err != nil:
			return c.sum, err
		}
		if err := c.row(&row); err != nil {
			return c.sum, err
		}
	}
	if c.sum.Rows == 0 {
		return c.sum, ErrEmpty
	}
	return c.sum, nil
}

// Finding is one thing in a history that the table of its time does not
// allow. It is a plain value; ID is stable and made for programs, the texts are for
// people and may change.
type Finding struct {
	ID       string `json:"id"` // one of those in the table of the package documentation
	Line     int    `json:"line,omitempty"`
	Row      int    `json:"row"` // counted from 1, unreadable lines left out
	Machine  string `json:"machine,omitempty"`
	Object   string `json:"object,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	Message  string `json:"message"`  // what is so
	Expected string `json:"expected"` // what would have been right
}

// String returns the finding as one line.
func (f Finding) String() string {
	at := where(f.Line, f.Machine, f.Object, f.Sequence)
	if f.Line == 0 {
		at = fmt.Sprintf("row %d %s", f.Row, at)
	}
	return fmt.Sprintf("%s: %s: %s; expected %s", at, f.ID, f.Message, f.Expected)
}

// Summary is what [Check] has seen. It is a plain value.
type Summary struct {
	Rows       int `json:"rows"`       // that were judged, and nothing else
	Unreadable int `json:"unreadable"` // lines
	Ignored    int `json:"ignored"`    // rows of other machines, with IgnoreOthers
	Overrides  int `json:"overrides"`  // rows that skip the table

	Objects int `json:"objects"` // that came into being, or were there when the feed began
	Alive   int `json:"alive"`   // at the end
	Most    int `json:"most"`    // at once

	// With Gaps: rows that are missing by the sequence numbers, breaks in histories
	// without them, and rows that came again and were passed over.
	Missing  int `json:"missing"`
	Repeated int `json:"repeated"`

	Counts   map[string]int `json:"counts"`   // of findings, by id
	Findings []Finding      `json:"findings"` // the first KeepFindings
}

// OK reports whether a history was judged and nothing was found.
func (s *Summary) OK() bool { return s.Rows > 0 && len(s.Counts) == 0 }

// String returns a line about the history, and a line for each finding that is
// kept.
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
	if rest := found - len(s.Findings); rest > 0 && len(s.Findings) > 0 {
		text += fmt.Sprintf("\nand %d more", rest)
	}
	return text
}

// counted is a number of things, for people.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
