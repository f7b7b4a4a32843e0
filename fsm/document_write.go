package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// WriteTable writes a table as a lifecycle-table/1 document, with one state and one
// transition a line. [ReadTable] returns the table again, without the code of
// guards, and with the events in the order in which the rows name them. A table with
// faults is written too.
//
// WriteTable refuses a table that no document can hold, and then writes nothing: a
// text is not UTF-8 or over a limit, a row has no source, an index is out of range,
// or a list is too long. That error is a [*DocumentError] and matches [ErrInvalid].
// An error of w is returned wrapped.
func WriteTable(w io.Writer, t *Table) error {
	data, err := t.document()
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("fsm: writing a table: %w", err)
	}
	return nil
}

// MarshalJSON returns the document of [WriteTable] without spaces, or its error.
func (t *Table) MarshalJSON() ([]byte, error) {
	data, err := t.document()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Compact(&b, data)
	return b.Bytes(), err
}

// document refuses what [ParseTable] would refuse.
func (t *Table) document() ([]byte, error) {
	w := &writer{t: t}
	w.json = json.NewEncoder(&w.line)
	w.json.SetEscapeHTML(false) // readers see names as they are
	w.table()
	if w.err != nil {
		return nil, w.err
	}
	return w.out.Bytes(), nil
}

func (w *writer) table() {
	t := w.t
	w.limit("states", len(t.States), MaxStates)
	w.limit("actors", len(t.Actors)+len(t.UndeclaredActors), maxActors)
	w.limit("transitions", len(t.Rows), MaxRows)
	w.limit("events", len(t.Events), MaxEvents)
	w.field("name", w.name("name", t.Name))
	w.optional("title", w.text("title", t.Title))
	w.field("schema", tableSchema)
	w.optional("confidence", w.text("confidence", t.Confidence))
	if t.Initial >= 0 {
		w.field("initial", w.state("initial", t.Initial))
	}
	if len(t.Initials) > 0 {
		w.field("initials", w.names("initials", t.Initials, w.state))
	}
	w.field("actors", w.actors()) // also if empty: without the list, the actors of the rows would be declared
	w.lines("states", len(t.States), w.declaration)
	w.lines("transitions", len(t.Rows), w.row)
	if len(t.Illegal) > 0 {
		w.lines("illegal", len(t.Illegal), w.cell)
	}
	if len(t.Source) > 0 {
		w.field("source", w.source())
	}
	w.texts("notes", t.Notes)
	w.texts("known_anomalies", t.Anomalies)
	w.out.WriteString("\n}\n")
	w.size()
}

func (w *writer) limit(key string, n, limit int) {
	if n > limit {
		w.fail(key, "%d, more than %d", n, limit)
	}
}

func (w *writer) texts(key string, list []string) {
	w.limit(key, len(list), maxList)
	if len(list) > 0 {
		w.lines(key, len(list), func(i int) { w.element(w.text("", list[i])) })
	}
}

func (w *writer) actors() []string {
	list := []string{}
	w.list = "actors"
	for i, a := range w.t.Actors {
		w.index = i
		list = append(list, w.name("", string(a)))
	}
	w.list = ""
	return list
}

func (w *writer) declaration(i int) {
	s := &w.t.States[i]
	if int(s.Kind) >= len(kindForms) {
		w.fail("kind", "no kind has the number %d", s.Kind)
		return
	}
	f := stateForm{
		Name: w.name("name", s.Name), Kind: kindForms[s.Kind], Absent: s.Kind == Absent,
		Manual: w.text("manual", s.Manual), OnOwnerDeath: w.text("on_owner_death", s.OnOwnerDeath),
		Code: s.Code, Note: w.text("note", s.Doc),
	}
	if s.Target >= 0 {
		f.Target = new(w.state("target", s.Target))
	}
	w.element(f)
}

// row writes one transition for each source.
func (w *writer) row(i int) {
	r := &w.t.Rows[i]
	f := rowForm{
		Event: w.event(r.Event), Guard: w.name("guard", r.Guard), Origin: w.names("origin", r.Origin, w.state),
		Forced: r.Forced, Supersede: r.Supersede,
		Action: w.text("action", r.Action), Section: w.text("section", r.Section), Note: w.text("note", r.Doc),
		Any: r.Any, Except: w.names("except", r.Except, w.state),
	}
	if len(r.Actors) == 1 {
		f.Actor = new(w.actor("actor", r.Actors[0]))
	} else {
		f.Actors = w.names("actors", r.Actors, w.actor)
	}
	if r.Timeout != 0 {
		f.Within = durationForm(r.Timeout.String())
	}
	if len(r.From) > 1 {
		f.Row = &i
	}
	switch r.Then {
	case ThenMove:
		f.To = new(w.state("to", r.To))
	case ThenReturn:
		f.Return = true
	case ThenIgnore:
		f.Ignore = true
	default:
		w.fail("to", "no Then has the number %d", r.Then)
	}
	if len(r.From) == 0 {
		w.fail("from", "a row without source")
	}
	for _, from := range r.From {
		if w.err != nil {
			return
		}
		f.From = w.state("from", from)
		if f.Ignore {
			f.To = &f.From // for readers without the field ignore
		}
		w.element(f)
	}
}

func (w *writer) cell(i int) {
	c := w.t.Illegal[i]
	w.element([2]string{w.state("", c[0]), w.event(c[1])})
}

func (w *writer) source() json.RawMessage {
	r := newReader(w.t.Source)
	source := r.raw()
	r.end()
	if r.err != nil {
		w.fail("source", "%s", r.err.Text)
	}
	return source
}

// The methods that follow return a string of the document, checked. Key is the
// field, for the error.

func (w *writer) name(key, s string) string {
	w.check(key, s, MaxName)
	return s
}

func (w *writer) text(key, s string) text {
	w.check(key, s, maxText)
	return text(s)
}

func (w *writer) check(key, s string, limit int) {
	switch {
	case len(s) > limit:
		w.fail(key, "a string of %d bytes, more than %d", len(s), limit)
	case !utf8.ValidString(s):
		w.fail(key, "not UTF-8")
	}
}

func (w *writer) names(key string, list []int, name func(key string, i int) string) (names []string) {
	w.limit(key, len(list), maxList)
	for _, i := range list {
		if w.err == nil {
			names = append(names, name(key, i))
		}
	}
	return names
}

func (w *writer) state(key string, i int) string {
	name, ok := w.t.stateName(i)
	if !ok {
		w.fail(key, "no state has the index %d", i)
	}
	return w.name(key, name)
}

func (w *writer) actor(key string, i int) string {
	name, ok := w.t.actorName(i)
	if !ok {
		w.fail(key, "no actor has the index %d", i)
	}
	return w.name(key, name)
}

func (w *writer) event(i int) string {
	if i < 0 || i >= len(w.t.Events) {
		w.fail("event", "no event has the index %d", i)
		return ""
	}
	return w.name("event", w.t.Events[i])
}
