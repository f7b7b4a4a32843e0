package conform

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Finding is one difference between a machine and its document that the mapping
// does not account for, or one fault of the mapping.
type Finding struct {
	Code string // for programs: one of the constants
	Text string // one line
}

// The codes of findings.
const (
	Missing     = "missing"     // in the document, not in the machine
	Unmapped    = "unmapped"    // in the machine, neither in the document nor listed
	Differs     = "differs"     // another kind, initial state or target state
	Forbidden   = "forbidden"   // a row where the document forbids one
	Stale       = "stale"       // an entry of the mapping that matches nothing
	NoReason    = "no-reason"   // an entry that changes something and does not say why
	NotOurs     = "not-ours"    // an addition by an actor of the document, without force
	Undescribed = "undescribed" // an addition without Doc in the machine
	NoDeadline  = "no-deadline" // a row by the sweeper that is no deadline
)

// Compare returns everything in which the machine is not what the document and
// the mapping say. It is empty if the machine conforms.
func Compare(t *fsm.Table, d *Document, m *Mapping) []Finding {
	c := comparison{
		t: t, d: d, m: m,
		states: make(map[string]State), rows: make(map[Row]int),
		represented: make(map[Row]bool), used: make(map[*Rename]bool),
	}
	for _, a := range arrows(t) {
		if _, twice := c.rows[a.Row]; twice {
			c.add(Unmapped, "machine row %s is there twice", a.Row)
		}
		c.rows[a.Row] = a.index
		c.order = append(c.order, a.Row)
	}
	c.compareStates()
	c.compareRows()
	c.compareAdditions()
	c.compareRest()
	return c.findings
}

type comparison struct {
	t *fsm.Table
	d *Document
	m *Mapping

	states      map[string]State // by name in the document: the state of the machine
	rows        map[Row]int      // of the machine, expanded, with their indexes
	order       []Row            // of the machine, in order of declaration
	represented map[Row]bool     // rows of the machine that are accounted for
	used        map[*Rename]bool
	findings    []Finding
}

func (c *comparison) add(code, format string, args ...any) {
	c.findings = append(c.findings, Finding{Code: code, Text: fmt.Sprintf(format, args...)})
}

func (c *comparison) compareStates() {
	for _, e := range c.m.States {
		doc := c.d.state(e.Document.Name)
		switch {
		case e.Document.Name != "" && (doc == nil || doc.Kind != e.Document.Kind):
			c.add(Stale, "state %s (%s) is not in the document", e.Document.Name, e.Document.Kind)
			continue
		case e.Document == e.Machine:
			c.add(Stale, "state %s: the entry says that nothing differs", e.Document.Name)
		case e.Reason == "":
			c.add(NoReason, "state %s (%s): no reason", e.Machine.Name, e.Machine.Kind)
		}
		if doc == nil {
			continue
		}
		if c.states[doc.Name].Name != "" {
			c.add(Stale, "state %s is mapped twice", doc.Name)
		}
		c.states[doc.Name] = e.Machine
	}
	wanted := make(map[string]State)
	for _, s := range c.d.States {
		if _, mapped := c.states[s.Name]; !mapped {
			c.states[s.Name] = State{Name: s.Name, Kind: s.Kind}
		}
		want := c.states[s.Name]
		wanted[want.Name] = want
		c.compareState(s, want)
	}
	for _, e := range c.m.States {
		if e.Document.Name == "" {
			wanted[e.Machine.Name] = e.Machine
			c.compareState(State{}, e.Machine)
		}
	}
	for i := range c.t.States {
		if s := &c.t.States[i]; wanted[s.Name].Name == "" {
			c.add(Unmapped, "state %s (%s) is not in the document", s.Name, s.Kind)
		}
	}
	c.compareInitial()
}

// compareState compares a state of the machine with what is wanted.
func (c *comparison) compareState(doc, want State) {
	i, ok := c.t.StateIndex(want.Name)
	if !ok {
		c.add(Missing, "state %s (%s) is not in the machine", want.Name, want.Kind)
		return
	}
	got := &c.t.States[i]
	if got.Kind != want.Kind {
		c.add(Differs, "state %s: the machine has %s instead of %s", want.Name, got.Kind, want.Kind)
	}
	if doc.Target == "" {
		return
	}
	target := c.states[doc.Target]
	if target.Name == "" {
		target.Name = doc.Target
	}
	if got.Target < 0 || c.t.States[got.Target].Name != target.Name {
		c.add(Differs, "state %s: the machine does not say that it is heading for %s", want.Name, target.Name)
	}
}

func (c *comparison) compareInitial() {
	var want, got []string
	for _, s := range c.d.entries() {
		want = append(want, c.states[s].Name)
	}
	if len(c.t.Initials) == 0 && c.t.Initial >= 0 {
		got = append(got, c.t.States[c.t.Initial].Name)
	}
	for _, s := range c.t.Initials {
		got = append(got, c.t.States[s].Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		c.add(Differs, "initial state: the machine has %q instead of %q", got, want)
	}
}

func (c *comparison) compareRows() {
	entries := make(map[Row]*RowEntry)
	for i := range c.m.Rows {
		e := &c.m.Rows[i]
		switch {
		case entries[e.Document] != nil:
			c.add(Stale, "document row %s is mapped twice", e.Document)
		case !slices.Contains(c.d.Rows, e.Document):
			c.add(Stale, "document row %s is not in the document", e.Document)
		}
		entries[e.Document] = e
	}
	for _, r := range c.d.Rows {
		e := entries[r]
		if e == nil {
			c.expect(r, c.translate(r, true))
			continue
		}
		if e.Reason == "" && !slices.Equal(e.Machine, []Row{c.translate(r, false)}) {
			c.add(NoReason, "document row %s is represented by another form: no reason", r)
		}
		for _, want := range e.Machine {
			c.expect(r, want)
		}
	}
	for _, cell := range c.d.Illegal {
		no := c.translate(Row{From: cell[0], Event: cell[1]}, true)
		for _, r := range c.order {
			if r.From == no.From && r.Event == no.Event {
				c.add(Forbidden, "machine row %s: the document forbids %s in %s", r, cell[1], cell[0])
			}
		}
	}
}

// expect looks for the row of the machine that is to represent doc.
func (c *comparison) expect(doc, want Row) {
	if _, ok := c.rows[want]; !ok {
		c.add(Missing, "document row %s: the machine has no row %s", doc, want)
		return
	}
	c.represented[want] = true
}

// translate is a row of the document in the names of the machine. use says that
// the names are needed, so that they are not stale.
func (c *comparison) translate(r Row, use bool) Row {
	r.From, r.To = c.stateName(r.From), c.stateName(r.To)
	r.Event = c.rename(c.m.Events, r.Event, use)
	r.Actor = c.rename(c.m.Actors, r.Actor, use)
	return r
}

func (c *comparison) stateName(document string) string {
	if s, ok := c.states[document]; ok {
		return s.Name
	}
	return document
}

func (c *comparison) rename(list []Rename, name string, use bool) string {
	for i := range list {
		if list[i].Document == name {
			c.used[&list[i]] = c.used[&list[i]] || use
			return list[i].Machine
		}
	}
	return name
}

func (c *comparison) compareAdditions() {
	for _, a := range c.m.Additions {
		if a.Reason == "" {
			c.add(NoReason, "addition %s: no reason", a.Row)
		}
		listed := c.find(a.Row)
		if len(listed) == 0 {
			c.add(Stale, "addition %s is not in the machine", a.Row)
		}
		for _, r := range listed {
			row := &c.t.Rows[c.rows[r]]
			if c.represented[r] {
				c.add(Stale, "addition %s represents a row of the document, or is listed twice", r)
			}
			c.represented[r] = true
			if row.Doc == "" {
				c.add(Undescribed, "addition %s: the row has no Doc", r)
			}
			if !a.Prose && !r.Forced && r.Actor != string(fsm.Sweeper) && r.Actor != observer {
				c.add(NotOurs, "addition %s is neither forced nor by %s or %s", r, fsm.Sweeper, observer)
			}
		}
	}
}

// observer is the actor of what was seen outside.
const observer = "observer"

// find returns the rows of the machine that an addition lists.
func (c *comparison) find(listed Row) (rows []Row) {
	if _, ok := c.rows[listed]; ok {
		return []Row{listed}
	}
	if listed.To != origin {
		return nil
	}
	listed.Return = true
	for _, r := range c.order {
		target := listed
		target.To = r.To
		if r == target {
			rows = append(rows, r)
		}
	}
	return rows
}

// compareRest reports what nothing accounts for.
func (c *comparison) compareRest() {
	for _, r := range c.order {
		if !c.represented[r] {
			c.add(Unmapped, "machine row %s is neither in the document nor listed", r)
		}
		if r.Actor == string(fsm.Sweeper) && c.t.Rows[c.rows[r]].Timeout == 0 {
			c.add(NoDeadline, "machine row %s never becomes due", r)
		}
	}
	for _, list := range [][]Rename{c.m.Actors, c.m.Events} {
		for i := range list {
			switch n := &list[i]; {
			case !c.used[n] || n.Document == n.Machine:
				c.add(Stale, "rename %s = %s changes no row", n.Document, n.Machine)
			case n.Reason == "":
				c.add(NoReason, "rename %s = %s: no reason", n.Document, n.Machine)
			}
		}
	}
}
