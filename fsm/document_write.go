package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// writer writes a table in the form of a document. It keeps its first fault.
type writer struct {
	t    *Table
	path string // of the element that is written, with a period behind it
	out  bytes.Buffer
	err  *DocumentError
}

func (w *writer) fail(key, format string, args ...any) {
	if w.err == nil {
		path := strings.TrimSuffix(w.path+key, ".")
		w.err = &DocumentError{Path: path, Offset: -1, Text: fmt.Sprintf(format, args...)}
	}
}

func (w *writer) form() *tableForm {
	t := w.t
	f := &tableForm{
		Name: t.Name, Title: text(t.Title), Schema: new(tableSchema), Confidence: text(t.Confidence),
		Initials: w.states("initials", t.Initials),
		// The list is written if it is empty too: without it, the actors of the rows
		// would be declared.
		Actors: append([]string{}, convert[string](t.Actors)...),
		States: []stateForm{}, Transitions: []rowForm{},
	}
	if t.Initial >= 0 {
		f.Initial = new(w.state("initial", t.Initial))
	}
	for i := range t.States {
		w.path = fmt.Sprintf("states[%d].", i)
		f.States = append(f.States, w.stateForm(&t.States[i]))
	}
	for i := range t.Rows {
		w.path = fmt.Sprintf("transitions[%d].", len(f.Transitions))
		r := w.rowForm(&t.Rows[i])
		if len(t.Rows[i].From) > 1 {
			r.Row = &i
		}
		for _, from := range t.Rows[i].From {
			r.From = w.state("from", from)
			if r.Ignore {
				r.To = new(r.From) // for readers without the field ignore
			}
			f.Transitions = append(f.Transitions, r)
			if len(f.Transitions) > MaxDocument/len(`{"from":"","event":""}`) {
				return f // the document is too long, and the others may need gigabytes
			}
		}
	}
	return f
}

func (w *writer) stateForm(s *TableState) stateForm {
	if int(s.Kind) >= len(kindForms) {
		w.fail("kind", "no kind has the number %d", s.Kind)
		return stateForm{}
	}
	f := stateForm{
		Name: s.Name, Kind: kindForms[s.Kind], Absent: s.Kind == Absent, Manual: text(s.Manual), Note: text(s.Doc),
	}
	if s.Target >= 0 {
		f.Target = new(w.state("target", s.Target))
	}
	return f
}

// rowForm returns the transition of a row without its source.
func (w *writer) rowForm(r *TableRow) rowForm {
	f := rowForm{
		Event: w.event(r.Event), Guard: r.Guard, Origin: w.states("origin", r.Origin),
		Forced: r.Forced, Supersede: r.Supersede, Return: r.Then == ThenReturn, Ignore: r.Then == ThenIgnore,
		Note: text(r.Doc), Any: r.Any, Except: w.states("except", r.Except),
	}
	sweeper, declared := w.t.ActorIndex(Sweeper)
	if r.Timeout > 0 && !(declared && (len(r.Actors) == 0 || slices.Contains(r.Actors, sweeper))) {
		w.fail("within", "the row is not for the sweeper") // a reader would add it
	}
	if len(r.Actors) == 0 && r.Timeout > 0 { // a reader would let the sweeper alone fire it
		f.Actors = convert[string](w.t.Actors)
	}
	for _, a := range r.Actors {
		if a < 0 || a >= len(w.t.Actors)+len(w.t.UndeclaredActors) {
			w.fail("actors", "no actor has the index %d", a)
		}
		f.Actors = append(f.Actors, w.t.ActorName(a))
	}
	if len(f.Actors) == 1 {
		f.Actor, f.Actors = &f.Actors[0], nil
	}
	if r.Timeout != 0 {
		f.Within = new(r.Timeout.String())
	}
	switch {
	case r.Then == ThenMove:
		f.To = new(w.state("to", r.To))
	case r.Then > ThenIgnore:
		w.fail("to", "no Then has the number %d", r.Then)
	}
	if len(r.From) == 0 {
		w.fail("from", "a row without source")
	}
	return f
}

func (w *writer) state(key string, i int) string {
	if i < 0 || i >= len(w.t.States)+len(w.t.Undeclared) {
		w.fail(key, "no state has the index %d", i)
	}
	return w.t.StateName(i)
}

func (w *writer) states(key string, list []int) (names []string) {
	for _, i := range list {
		names = append(names, w.state(key, i))
	}
	return names
}

func (w *writer) event(i int) string {
	if i < 0 || i >= len(w.t.Events) {
		w.fail("event", "no event has the index %d", i)
		return ""
	}
	return w.t.Events[i]
}

// layout writes a form with a field on each line. A list of the form with the tag
// "lines" has an element on each line.
func (w *writer) layout(f *tableForm) {
	separator := "{\n "
	for field, value := range reflect.ValueOf(f).Elem().Fields() {
		key, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		if option == "omitempty" && value.IsZero() {
			continue
		}
		fmt.Fprintf(&w.out, "%s%q: ", separator, key)
		separator = ",\n "
		if !strings.HasSuffix(field.Tag.Get("form"), "lines") || value.Len() == 0 {
			w.path = key
			w.value(value.Interface())
			continue
		}
		w.out.WriteString("[")
		for i := 0; i < value.Len() && w.err == nil; i++ {
			if i > 0 {
				w.out.WriteString(",")
			}
			w.out.WriteString("\n  ")
			w.path = fmt.Sprintf("%s[%d]", key, i)
			w.value(value.Index(i).Interface())
		}
		w.out.WriteString("\n ]")
	}
	w.out.WriteString("\n}\n")
}

// value writes a value in one line.
func (w *writer) value(value any) {
	if w.err != nil {
		return
	}
	start := w.out.Len()
	encoder := json.NewEncoder(&w.out)
	encoder.SetEscapeHTML(false) // for readers of the document
	if err := encoder.Encode(value); err != nil {
		w.fail("", "%s", err)
		return
	}
	w.out.Truncate(w.out.Len() - 1) // the line feed
	// Encode writes this escape only in place of bytes that are not UTF-8.
	written := bytes.ReplaceAll(w.out.Bytes()[start:], []byte(`\\`), nil)
	if bytes.Contains(written, []byte(`\ufffd`)) {
		w.fail("", "not UTF-8")
	}
	if w.out.Len() > MaxDocument {
		w.fail("", "the document has more than %d bytes", MaxDocument)
	}
}
