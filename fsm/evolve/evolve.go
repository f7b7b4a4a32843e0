package evolve

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// Compatibility is the verdict on two versions that run side by side on the same
// objects. A greater value is worse.
type Compatibility uint8

const (
	// Compatible: for any time, and back again. The new table allows everything that
	// an old node does, and an old node reads everything that a new one writes. An old
	// node may refuse an event that only the new table allows, which is a note.
	Compatible Compatibility = iota
	// NeedsDrain: compatible while no object is in one of [Report.Drain], or has
	// one as its origin, and no caller fires an event of [Report.Hold].
	NeedsDrain
	// NeedsMapping: compatible, once drained, if the names of [Report.Mapping] are
	// translated between a node and the records and callers of the other version.
	NeedsMapping
	// Unsafe: an old or a new node would do what is in [Report.Hazards].
	Unsafe
)

var compatibilityNames = [...]string{"compatible", "drain", "mapping", "unsafe"}

// String returns compatible, drain, mapping or unsafe.
func (c Compatibility) String() string {
	if int(c) < len(compatibilityNames) {
		return compatibilityNames[c]
	}
	return "compatibility?"
}

// MarshalText returns the name.
func (c Compatibility) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Config refines [Diff]. The zero Config has the defaults.
type Config struct {
	// States, Events, Actors and Guards map old names to new ones. Default: no
	// name changes. Two old names cannot have one new name.
	States, Events, Actors, Guards map[string]string
	// Hold are the events that no caller fires while both versions run. Default:
	// none. The sweeper fires nevertheless.
	Hold []Withheld
}

// Withheld is an event that no caller fires in a state. The state is the absent one,
// or empty, for an event that creates objects. In a [Config], an empty state stands
// for every state, and the empty event for adding an object without an event.
type Withheld struct {
	State string `json:"state,omitempty"`
	Event string `json:"event"`
}

// The errors of Diff.
var (
	// ErrMapping reports names in a [Config] that do not fit the tables.
	ErrMapping = errors.New("evolve: bad mapping")
	// ErrTooLarge reports tables with more than a million pairs of state and origin, or
	// with more states or actors in both together than package fsm allows in one.
	ErrTooLarge = errors.New("evolve: tables are too large to compare")
)

// Report is the result of [Diff]. It is a plain value.
type Report struct {
	Old         string        `json:"old"` // names of the tables
	New         string        `json:"new"`
	Level       Compatibility `json:"level"`       // the worst of Hazards
	Differences []Difference  `json:"differences"` // empty if the tables agree in all that matters to a node
	Hazards     []Hazard      `json:"hazards"`     // the worst first
	Mapping     []Renaming    `json:"mapping"`     // the names that need translation
	States      []StateName   `json:"states"`      // every old state and its new name, see [Report.Code]
	Drain       []string      `json:"drain"`       // states to keep empty, by their old names if they have one
	Hold        []Withheld    `json:"hold"`        // the events that lead into the states of Drain
}

// Renaming is a machine, state, event or actor that has another name in the new table.
type Renaming struct {
	Subject string `json:"subject"` // machine, state, event or actor
	Old     string `json:"old"`
	New     string `json:"new"`
}

// Hazard is a fault, or an event to note, that can occur while both versions run.
type Hazard struct {
	ID      string        `json:"id"`    // see the package documentation
	Level   Compatibility `json:"level"` // Compatible: a note
	State   string        `json:"state,omitempty"`
	Event   string        `json:"event,omitempty"`
	Message string        `json:"message"` // one sentence
	// Witness is a shortest path to the hazard from no object, or from an object in the
	// field if there is no such path. Guards may agree or refuse.
	Witness []Act `json:"witness,omitempty"`
}

// Act is one step of a witness: what a node does to an object.
type Act struct {
	Node  string `json:"node"`            // old or new; empty: the object is in the field already
	Event string `json:"event,omitempty"` // empty: the node adds the object
	Actor string `json:"actor,omitempty"` // empty: the anonymous actor, or any that adds the object
	Force bool   `json:"force,omitempty"` // the row is forced only
	// Agree and Refuse are the guards that have to agree, and to refuse, for Row to
	// fire.
	Agree  []string `json:"agree,omitempty"`
	Refuse []string `json:"refuse,omitempty"`
	Row    int      `json:"row"` // of the node's table; -1: none
	// The names are those of the node's table. State is empty if no object exists.
	State    string `json:"state,omitempty"`
	Origin   string `json:"origin,omitempty"`
	To       string `json:"to,omitempty"`
	ToOrigin string `json:"to_origin,omitempty"`
}

// Diff compares two versions of a table: what differs, and what that means for old
// and new nodes that run side by side on the objects in the field. The error is
// [ErrMapping] or [ErrTooLarge]. A nil config is the default.
//
// Diff plays every object through both tables at once. An old or a new node takes
// each step, on the record that any node has written. Objects start as either table
// allows, or rest in any state of the old one. A table without an entry state may
// start in any state of rest. The time grows with the pairs of state and origin that
// can occur, times their rows and actors. If the guards of an event have other names in
// the new table, it grows with the product of their numbers: map them.
func Diff(old, new *fsm.Table, config *Config) (*Report, error) {
	config = cmp.Or(config, &Config{})
	p, err := newPair(old, new, config)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Old: old.Name, New: new.Name, Differences: p.differences(),
		Hazards: []Hazard{}, Mapping: []Renaming{}, States: []StateName{},
	}
	for _, name := range stateNames(old) {
		r.States = append(r.States, StateName{name, p.states.name[newVersion][p.states.key[oldVersion][name]]})
	}
	for _, n := range []*names{p.machine, p.states, p.events, p.actors} {
		r.Mapping = append(r.Mapping, n.renamed()...)
	}
	if err := p.judge(r, config); err != nil {
		return nil, err
	}
	return r, nil
}

func mappingError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMapping, fmt.Sprintf(format, args...))
}
