package fsm

import (
	"errors"
	"fmt"
	"io"
)

// TableSchema is the value of the field "schema" of the documents that
// [ParseTable] reads and [WriteTable] writes.
const TableSchema = "lifecycle-table/1"

// Limits of a document; one that is over a limit is refused. Those of a table,
// [MaxStates], [MaxEvents], [MaxRows] and [MaxName], hold for documents too.
const (
	MaxDocument = 4 << 20  // bytes; a table of close to MaxRows rows may be longer, and is then not written
	MaxNesting  = 32       // objects and arrays in each other
	MaxText     = 64 << 10 // bytes of one text for people, and of the source
)

const (
	maxFields     = 256           // of one object
	maxNamed      = 2 * MaxStates // different names of states in a document, declared or not
	maxReadActors = 1 << 10       // more than MaxActors: such a table loads, and has a problem
	maxTexts      = 1 << 12       // in "notes", and in "known_anomalies"
)

// ReadTable is [ParseTable] of what r gives. It reads at most one byte more than
// [MaxDocument]. An error of r is returned wrapped, and then does not match
// [ErrInvalid].
func ReadTable(r io.Reader) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("fsm: reading a table: %w", err)
	}
	return ParseTable(data)
}

// ParseTable reads a table from a lifecycle-table/1 document, one JSON object:
//
//	{name, title?, schema?, confidence?, initial?, initials?, actors?+,
//	 states:      [{name, kind, absent?+, target?, manual?+, on_owner_death?, note?, code?}],
//	 transitions: [{from, event, actor?, actors?+, to?, guard?, return?+, ignore?, origin?+,
//	                forced?+, supersede?+, within?+, action?, section?, note?,
//	                any?+, except?+, row?+}],
//	 illegal?: [[state, event]], source?: {...}, notes?, known_anomalies?}
//
// Fields with ? may be missing; those with + extend the published form, and
// readers that do not know them see an ordinary table. A kind is stable,
// transitional, final or error, which is [Failed]; an [Absent] state is a stable
// one with absent. Only rows with return, and with ignore, may do without a
// target. Transitions with the same number in row are one row with several
// sources. A transition with neither actor nor actors is for every actor.
// Without a list of actors, those that the transitions name are declared, in
// order of appearance, as events always are. As in a [Spec], [Sweeper] may fire
// a row with a deadline, whether the document says so or not.
//
// Every well-formed document gives a table, sound or not: what is wrong with the
// table is in [Table.Problems]. Well formed is what is UTF-8, within the limits
// and nothing but the object, has no field twice, and has the right type, which
// is never null, in every field of the form. Other fields are ignored; the case
// of letters counts.
//
// The error is a [*DocumentError] and matches [ErrInvalid].
func ParseTable(data []byte) (*Table, error) {
	w := newWalker(data)
	d := &document{
		w: w, t: &Table{Initial: -1}, rows: make(map[int]int),
		states: newNumbering(), events: newNumbering(), actors: newNumbering(),
	}
	w.object(d.field, "name", "states", "transitions")
	w.end()
	if w.err == nil {
		d.resolve()
	}
	if w.err != nil {
		return nil, w.err
	}
	return d.t, nil
}

// UnmarshalJSON is [ParseTable] into a zero Table. A table that is in use by a
// machine is read only and refuses.
func (t *Table) UnmarshalJSON(data []byte) error {
	if t.compiled != nil {
		return errors.New("fsm: the table of a machine is read only")
	}
	if string(data) == "null" {
		return nil // as everywhere in encoding/json
	}
	read, err := ParseTable(data)
	if err == nil {
		*t = *read
	}
	return err
}

// document reads the fields of the form. While it reads, states, events and
// actors have numbers in the order in which the document names them; resolve
// turns them into indexes.
type document struct {
	w *walker
	t *Table

	states  numbering
	events  numbering // of the transitions, then of the illegal cells
	actors  numbering
	rows    map[int]int // by the number in the field "row": index of the row
	listed  bool        // the document lists its actors
	list    []Actor
	illegal []illegalCell
}

type illegalCell struct {
	state int
	event string
}

func (d *document) field(key string) bool {
	w, t := d.w, d.t
	switch key {
	case "name":
		t.Name = w.text(MaxName)
	case "title":
		t.Title = w.text(MaxText)
	case "schema":
		if s := w.text(MaxName); s != TableSchema {
			w.fail("want %q, found %q", TableSchema, clip(s))
		}
	case "confidence":
		t.Confidence = w.text(MaxText)
	case "initial":
		t.Initial = d.state()
	case "initials":
		w.list(maxNamed, func(int) { t.Initials = append(t.Initials, d.state()) })
	case "actors":
		d.listed = true
		w.list(maxReadActors, func(int) { d.list = append(d.list, Actor(w.text(MaxName))) })
	case "states":
		w.list(MaxStates, d.declare)
	case "transitions":
		w.array(d.transition)
	case "illegal":
		w.array(d.cell)
	case "source":
		t.Source = w.raw(MaxText)
	case "notes":
		w.list(maxTexts, func(int) { t.Notes = append(t.Notes, w.text(MaxText)) })
	case "known_anomalies":
		w.list(maxTexts, func(int) { t.Anomalies = append(t.Anomalies, w.text(MaxText)) })
	default:
		return false
	}
	return true
}

// documentKind is the name of a kind in a document. [Absent] is a stable state
// with a field of its own.
func documentKind(k Kind) (name string, ok bool) {
	switch k {
	case Stable, Absent:
		return "stable", true
	case Transitional:
		return "transitional", true
	case Failed:
		return "error", true
	case Final:
		return "final", true
	}
	return "", false
}

// declare reads one element of "states".
func (d *document) declare(int) {
	w := d.w
	start := w.next()
	s := TableState{Target: -1}
	var absent bool
	w.object(func(key string) bool {
		switch key {
		case "name":
			s.Name = w.text(MaxName)
		case "kind":
			s.Kind = d.kind()
		case "absent":
			absent = w.boolean()
		case "target":
			s.Target = d.state()
		case "manual":
			s.Manual = w.text(MaxText)
		case "on_owner_death":
			s.OnOwnerDeath = w.text(MaxText)
		case "code":
			s.Code = new(w.integer())
		case "note":
			s.Doc = w.text(MaxText)
		default:
			return false
		}
		return true
	}, "name", "kind")
	if absent {
		if s.Kind != Stable {
			w.failAt(start, "an absent state of kind %s, want stable", s.Kind)
		}
		s.Kind = Absent
	}
	d.t.States = append(d.t.States, s)
}

func (d *document) kind() Kind {
	read := d.w.text(MaxText)
	for _, k := range []Kind{Stable, Transitional, Failed, Final} {
		if name, _ := documentKind(k); name == read {
			return k
		}
	}
	d.w.fail("want stable, transitional, final or error, found %q", clip(read))
	return Stable
}

// cell reads one element of "illegal": a state and an event.
func (d *document) cell(int) {
	w := d.w
	start, n := w.next(), 0
	var c illegalCell
	w.array(func(i int) {
		switch n++; i {
		case 0:
			c.state = d.state()
		case 1:
			c.event = w.text(MaxName)
		default:
			w.skip()
		}
	})
	if n != 2 {
		w.failAt(start, "want a state and an event, found %d elements", n)
	}
	d.illegal = append(d.illegal, c)
}

func (d *document) state() int {
	return d.number(&d.states, d.w.text(MaxName), maxNamed, "names of states")
}

func (d *document) actor(name string) int {
	return d.number(&d.actors, name, maxReadActors, "actors")
}

// number returns the number of a name.
func (d *document) number(n *numbering, name string, limit int, what string) int {
	i := n.of(name)
	if len(n.names) > limit {
		d.w.fail("more than %d %s", limit, what)
	}
	return i
}
