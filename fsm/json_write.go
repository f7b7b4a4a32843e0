package fsm

import (
	"fmt"
	"io"
)

// WriteTable writes a table as a lifecycle-table/1 document for people: one
// state and one transition a line, and a newline at the end. Everything of the
// table is in it but the code of guards, and [ReadTable] gives it back, events
// in the order in which the rows name them. A table with faults is written too.
//
// A table that no document can hold is refused with a [*DocumentError] that
// matches [ErrInvalid], and nothing is written: a text that is not UTF-8 or over
// a limit, a row without source, an index of nothing, too many of something. An
// error of w is returned wrapped.
func WriteTable(w io.Writer, t *Table) error {
	data, err := encodeTable(t, true)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("fsm: writing a table: %w", err)
	}
	return nil
}

// MarshalJSON returns the document of [WriteTable] without spaces, or its error.
func (t *Table) MarshalJSON() ([]byte, error) { return encodeTable(t, false) }

// encodeTable writes the fields in a fixed order and leaves out what is empty.
// What [ParseTable] would refuse is refused here: what is written can be read.
func encodeTable(t *Table, readable bool) ([]byte, error) {
	e := encoder{t: t, emitter: newEmitter(readable)}
	e.table()
	if e.err != nil {
		return nil, e.err
	}
	return e.b.Bytes(), nil
}

type encoder struct {
	*emitter
	t *Table
}

func (e encoder) table() {
	t := e.t
	e.limit("states", len(t.States), MaxStates)
	e.limit("actors", len(t.Actors), maxReadActors)
	e.limit("transitions", len(t.Rows), MaxRows)
	e.limit("events", len(t.Events), MaxEvents)
	e.open('{', true)
	e.must("name", t.Name)
	e.text("title", t.Title)
	e.must("schema", TableSchema)
	e.text("confidence", t.Confidence)
	if t.Initial >= 0 {
		e.must("initial", e.state("initial", t.Initial))
	}
	e.names("initials", t.Initials, e.state)
	e.key("actors") // even if there are none: without the list, those that rows name would be declared
	e.open('[', false)
	for i, a := range t.Actors {
		e.element(fmt.Sprintf("actors[%d]", i), string(a), MaxName)
	}
	e.close(']')
	e.array("states", len(t.States), e.declaration)
	e.array("transitions", len(t.Rows), e.row)
	if len(t.Illegal) > 0 {
		e.array("illegal", len(t.Illegal), e.cell)
	}
	if len(t.Source) > 0 {
		e.object("source", t.Source)
	}
	e.texts("notes", t.Notes)
	e.texts("known_anomalies", t.Anomalies)
	e.close('}')
	e.finish()
}

// array writes one element a line. While it does, paths are of the element; in
// transitions they have the number of the row.
func (e encoder) array(key string, n int, element func(i int)) {
	e.key(key)
	e.open('[', true)
	for i := 0; i < n && e.err == nil; i++ {
		e.part, e.index = key, i
		element(i)
	}
	e.part = ""
	e.close(']')
}

func (e encoder) texts(key string, list []string) {
	e.limit(key, len(list), maxTexts)
	if len(list) > 0 {
		e.array(key, len(list), func(i int) { e.element("", list[i], MaxText) })
	}
}

func (e encoder) declaration(i int) {
	s := &e.t.States[i]
	e.item('{')
	e.must("name", s.Name)
	e.must("kind", e.kind(s.Kind))
	e.flag("absent", s.Kind == Absent)
	if s.Target >= 0 {
		e.must("target", e.state("target", s.Target))
	}
	e.text("manual", s.Manual)
	e.text("on_owner_death", s.OnOwnerDeath)
	if s.Code != nil {
		e.number("code", *s.Code)
	}
	e.text("note", s.Doc)
	e.close('}')
}

func (e encoder) kind(k Kind) string {
	name, ok := documentKind(k)
	if !ok {
		e.fail("kind", "no kind has the number %d", k)
	}
	return name
}

// row writes one transition for each source.
func (e encoder) row(i int) {
	r := &e.t.Rows[i]
	if len(r.From) == 0 {
		e.fail("from", "a row without source")
	}
	for _, from := range r.From {
		if e.err != nil {
			return
		}
		e.transition(r, from)
	}
}

func (e encoder) transition(r *TableRow, from int) {
	e.item('{')
	e.must("from", e.state("from", from))
	e.must("event", e.event(r.Event))
	switch len(r.Actors) {
	case 0:
	case 1:
		e.must("actor", e.actor("actor", r.Actors[0]))
	default:
		e.names("actors", r.Actors, e.actor)
	}
	switch r.Then {
	case ThenMove:
		e.must("to", e.state("to", r.To))
	case ThenReturn:
		e.flag("return", true)
	case ThenIgnore:
		e.must("to", e.state("from", from)) // for readers that know nothing of ignored events
		e.flag("ignore", true)
	default:
		e.fail("to", "no Then has the number %d", r.Then)
	}
	if r.Guard != "" {
		e.must("guard", r.Guard)
	}
	e.names("origin", r.Origin, e.state)
	e.flag("forced", r.Forced)
	e.flag("supersede", r.Supersede)
	if r.Within != 0 {
		e.must("within", r.Within.String())
	}
	e.text("action", r.Action)
	e.text("section", r.Section)
	e.text("note", r.Doc)
	e.flag("any", r.Any)
	e.names("except", r.Except, e.state)
	if len(r.From) > 1 {
		e.number("row", e.index)
	}
	e.close('}')
}

// cell writes an illegal cell, a state and an event.
func (e encoder) cell(i int) {
	c := e.t.Illegal[i]
	e.item('[')
	e.element("", e.state("", c[0]), MaxName)
	e.element("", e.event(c[1]), MaxName)
	e.close(']')
}

func (e encoder) names(key string, list []int, name func(key string, i int) string) {
	e.limit(key, len(list), maxNamed)
	if len(list) == 0 || e.err != nil {
		return
	}
	e.key(key)
	e.open('[', false)
	for _, i := range list {
		e.element(key, name(key, i), MaxName)
	}
	e.close(']')
}

func (e encoder) state(key string, i int) string {
	name, ok := e.t.stateName(i)
	if !ok {
		e.fail(key, "no state has the index %d", i)
	}
	return name
}

func (e encoder) actor(key string, i int) string {
	name, ok := e.t.actorName(i)
	if !ok {
		e.fail(key, "no actor has the index %d", i)
	}
	return name
}

func (e encoder) event(i int) string {
	if i < 0 || i >= len(e.t.Events) {
		e.fail("event", "no event has the index %d", i)
		return ""
	}
	return e.t.Events[i]
}
