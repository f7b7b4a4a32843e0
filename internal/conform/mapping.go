package conform

import (
	"fmt"
	"os"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Mapping says how a machine represents a document. The package documentation
// has the form of the file. The zero Mapping says that both are the same.
type Mapping struct {
	Actors, Events []Rename
	States         []StateEntry
	Rows           []RowEntry
	Additions      []Addition
}

// Rename is a name of the document and what it is called in the machine.
type Rename struct{ Document, Machine, Reason string }

// StateEntry is a state of the document and what it is in the machine. Without
// a name in Document, it is a state that the machine adds.
type StateEntry struct {
	Document, Machine State
	Reason            string
}

// RowEntry is a row of the document and the rows that represent it.
type RowEntry struct {
	Document Row
	Machine  []Row
	Reason   string
}

// Addition is a row that only the machine has.
type Addition struct {
	Row    Row
	Prose  bool // the document says so outside its table
	Reason string
}

// origin as the target of an addition stands for every target of a return row.
const origin = "origin"

// ReadMapping reads a mapping file.
func ReadMapping(file string) (*Mapping, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := ParseMapping(string(data))
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, file)
	}
	return m, nil
}

// ParseMapping reads the text of a mapping file.
func ParseMapping(text string) (*Mapping, error) {
	p := mappingParser{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := p.line(strings.TrimRight(line, " \t\r\n")); err != nil {
			return nil, fmt.Errorf("conform: mapping line %d: %w", number, err)
		}
	}
	for i := range p.m.Rows {
		if e := &p.m.Rows[i]; len(e.Machine) == 0 {
			return nil, fmt.Errorf("conform: mapping: nothing represents %s", e.Document)
		}
	}
	return &p.m, nil
}

// MustMapping is [ParseMapping] for a literal in a test. It panics with the
// error.
func MustMapping(text string) *Mapping {
	m, err := ParseMapping(text)
	if err != nil {
		panic(err.Error())
	}
	return m
}

type mappingParser struct {
	m       Mapping
	section string
	reason  string
	entries int // of the section so far
}

func (p *mappingParser) line(line string) error {
	switch entry := strings.TrimSpace(line); {
	case entry == "" || entry[0] == '#':
		return nil
	case line[0] != ' ' && line[0] != '\t':
		return p.header(line)
	case p.section == "":
		return fmt.Errorf("an entry before the first section")
	}
	p.entries++
	line = strings.TrimSpace(line)
	switch p.section {
	case "actors":
		return p.rename(&p.m.Actors, line)
	case "events":
		return p.rename(&p.m.Events, line)
	case "states":
		return p.state(line)
	case "rows":
		return p.row(line)
	}
	r, err := ParseRow(line)
	p.m.Additions = append(p.m.Additions, Addition{Row: r, Prose: p.section == "prose", Reason: p.reason})
	return err
}

func (p *mappingParser) header(line string) error {
	word, rest, colon := strings.Cut(line, ":")
	switch word {
	case "actors", "events", "states", "rows", "additions", "prose":
		if !colon {
			break
		}
		p.section, p.reason, p.entries = word, strings.TrimSpace(rest), 0
		return nil
	}
	if p.section == "" || p.entries > 0 {
		return fmt.Errorf("%q begins no section", line)
	}
	p.reason = strings.TrimSpace(p.reason + " " + line)
	return nil
}

func (p *mappingParser) rename(list *[]Rename, line string) error {
	document, machine, ok := strings.Cut(line, " = ")
	if !ok {
		return fmt.Errorf("%q is not of the form DOCUMENT = MACHINE", line)
	}
	*list = append(*list, Rename{strings.TrimSpace(document), strings.TrimSpace(machine), p.reason})
	return nil
}

func (p *mappingParser) state(line string) error {
	document, machine, ok := strings.Cut(" "+line, " = ")
	if !ok {
		return fmt.Errorf("%q is not of the form NAME KIND = NAME KIND", line)
	}
	e := StateEntry{Reason: p.reason}
	var err error
	if e.Machine, err = parseState(machine); err != nil {
		return err
	}
	if document = strings.TrimSpace(document); document != "" {
		if e.Document, err = parseState(document); err != nil {
			return err
		}
	}
	p.m.States = append(p.m.States, e)
	return nil
}

func parseState(s string) (State, error) {
	s = strings.TrimSpace(s)
	i := strings.LastIndexByte(s, ' ')
	for k := fsm.Stable; i > 0 && k <= fsm.Absent; k++ {
		if k.String() == s[i+1:] {
			return State{Name: strings.TrimSpace(s[:i]), Kind: k}, nil
		}
	}
	return State{}, fmt.Errorf("%q is not a state and its kind", s)
}

func (p *mappingParser) row(line string) error {
	if represents, ok := strings.CutPrefix(line, "= "); ok {
		if p.entries == 1 {
			return fmt.Errorf("%q represents no row", line)
		}
		r, err := ParseRow(represents)
		last := &p.m.Rows[len(p.m.Rows)-1]
		last.Machine = append(last.Machine, r)
		return err
	}
	r, err := ParseRow(line)
	p.m.Rows = append(p.m.Rows, RowEntry{Document: r, Reason: p.reason})
	return err
}
