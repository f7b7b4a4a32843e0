package evolve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Compatibility says whether old and new binaries may run side by side on the
// same objects. A greater value is worse.
type Compatibility uint8

const (
	// Compatible: as long as one likes, and back again. What an old node does, the
	// new table does too; what a new node writes, an old node reads. An event that
	// only the new table takes is refused by old nodes, which is a note (see
	// [Config.Strict]).
	Compatible Compatibility = iota
	// NeedsDrain: compatible while no object is in one of [Report.Drain], or has
	// one as its origin, and nobody fires what is in [Report.Hold].
	NeedsDrain
	// NeedsMapping: compatible (once drained) if the names of [Report.Mapping]
	// are translated between a node and the records and callers of the other kind.
	NeedsMapping
	// Unsafe: an old or a new node would do what is in [Report.Hazards].
	Unsafe
)

var compatibilityNames = [...]string{"compatible", "drain", "mapping", "unsafe"}

// String returns the name in lower case: compatible, drain, mapping, unsafe.
func (c Compatibility) String() string {
	if int(c) < len(compatibilityNames) {
		return compatibilityNames[c]
	}
	return "compatibility?"
}

// MarshalText returns the name.
func (c Compatibility) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Config says what [Diff] may take for granted. The zero Config and nil
// are the defaults. It is read only while Diff runs.
type Config struct {
	// States, Events, Actors and Guards are new names by old ones. Default: what
	// has the same name is the same. No two old names may have one new name.
	States, Events, Actors, Guards map[string]string
	// NoGuess: a name that is gone and a new one that does the same are two things.
	// Default: they are one that was renamed, as a guess.
	NoGuess bool
	// Hold is what nobody asks for while both kinds of binaries run. Default:
	// everything is asked for. Deadlines cannot be held.
	Hold []Withheld
	// Strict makes an event that only the new table takes Unsafe too. Then nothing
	// happens in a Compatible fleet that either table forbids. Default: what the
	// new table allows beyond the old one is its purpose, and no more than a note.
	Strict bool
}

// Withheld is an event that nobody is to fire in a state. The state is the absent
// one, or empty, for an event that makes objects; in a [Config], an empty
// state means every state. The empty event stands for adding an object without
// one.
type Withheld struct {
	State string `json:"state,omitempty"`
	Event string `json:"event"`
}

// ErrMapping is the error of [Diff]: names to translate that do not fit the tables,
// or tables with too many pairs of state and origin to go through.
var ErrMapping = errors.New("check: diff")

// Report is what [Diff] has found. It is a plain value that nobody else uses.
type Report struct {
	Old         string        `json:"old"` // names of the tables
	New         string        `json:"new"`
	Level       Compatibility `json:"level"`       // the worst of Hazards
	Differences []Difference  `json:"differences"` // empty if nothing that matters to a node differs
	Hazards     []Hazard      `json:"hazards"`     // the worst first
	Mapping     []Renaming    `json:"mapping"`     // names that need translation
	Drain       []string      `json:"drain"`       // states, by their old names where they have one
	Hold        []Withheld    `json:"hold"`        // the entrances of Drain
	// Workaround is what would do instead, where Level is Unsafe: features that
	// nobody uses before the last old node is gone. Nil: nothing was found.
	Workaround *Workaround `json:"workaround,omitempty"`
}

// Workaround are conditions under which a change is better than [Unsafe].
type Workaround struct {
	Level Compatibility `json:"level"`
	Drain []string      `json:"drain"`
	Hold  []Withheld    `json:"hold"`
}

// Renaming is one thing under two names.
type Renaming struct {
	Subject string `json:"subject"` // machine, state, event or actor
	Old     string `json:"old"`
	New     string `json:"new"`
	Guess   bool   `json:"guess"` // nobody has said so: it was concluded from the rows
}

// Guessed reports whether part of the mapping is a guess. Then nothing below
// Unsafe has been earned before somebody has confirmed it.
func (e *Report) Guessed() bool {
	return slices.ContainsFunc(e.Mapping, func(r Renaming) bool { return r.Guess })
}

// Hazard is something that happens while both kinds of binaries run, and what it
// takes to be safe from it.
type Hazard struct {
	ID      string        `json:"id"`
	Level   Compatibility `json:"level"` // Compatible: a note
	State   string        `json:"state,omitempty"`
	Event   string        `json:"event,omitempty"`
	Message string        `json:"message"` // one sentence
	// Witness is a shortest way there, from no object or from one in the field.
	// Guards are taken as conditions that may or may not hold.
	Witness []Act `json:"witness,omitempty"`
}

// The ids of hazards: see the table in the package documentation.
const (
	UnknownToOld   = "unknown-to-old"
	UnknownToNew   = "unknown-to-new"
	Forbidden      = "forbidden"
	Ignored        = "ignored"
	TwoResults     = "two-results"
	RefusedByOld   = "refused-by-old"
	DeadlineAction = "deadline-action"
	DeadlineTime   = "deadline-time"
	DeadlineAdded  = "deadline-added"
	Undo           = "undo"
	Stranded       = "stranded"
	Renamed        = "renamed"
	TooManyGuards  = "too-many-guards"
	Kind           = "kind"
	EntryForbidden = "entry-forbidden"
)

// IDs returns the ids that hazards of [Diff] may have, in the order of the
// table in the package documentation.
func IDs() []string {
	return []string{
		UnknownToOld, UnknownToNew, Forbidden, Ignored, TwoResults, RefusedByOld,
		EntryForbidden, DeadlineAction, DeadlineAdded, DeadlineTime, Kind, Undo,
		Stranded, Renamed, TooManyGuards,
	}
}

// Act is one step of a way through two tables: what a node does to an object. A
// [TourStep] is the same through one.
type Act struct {
	Node  string `json:"node"`            // old or new; empty: the object is in the field as it is
	Event string `json:"event,omitempty"` // empty: the object is added
	Actor string `json:"actor,omitempty"`
	Force bool   `json:"force,omitempty"` // the row is forced only
	// The guards that have to agree, and to refuse, so that Row is taken.
	Agree  []string `json:"agree,omitempty"`
	Refuse []string `json:"refuse,omitempty"`
	Row    int      `json:"row"` // of the node's table; -1: none
	// By the names of the node's table; State is empty where there is no object.
	State    string `json:"state,omitempty"`
	Origin   string `json:"origin,omitempty"`
	To       string `json:"to,omitempty"`
	ToOrigin string `json:"to_origin,omitempty"`
}

// Diff compares two versions of a table: what differs, and what that means for a
// fleet in which old and new binaries run side by side on the objects in the
// field, in both directions, and for going back.
//
// It plays every object through both tables at once: each step is taken by an old
// or a new node, from what the other has written. Objects begin as either table
// says, or rest in any state of the old one. The hazards are what an old node
// cannot read or does although the new table says otherwise, what a new node
// cannot read, and what only one of them can bring to rest.
//
// Guards of the same name are taken to decide alike, guards of different names
// independently, and the sweeper to fire deadlines and what names it. Operation
// ids count: a row that begins an operation is not the same as one that goes on
// with it. An override may do anything and is left out. So is what a table does
// not say: payloads, handlers, the configuration of a manager, and other tables
// that look at these states, be it in a precondition, a relation or an aggregate.
//
// Every table is compared, sound or not. A table without an initial state is
// taken to begin in any state of rest. Titles, notes, sources, sections, actions
// and the order of declarations make no difference, the order of trial does.
//
// The time is that of every pair of state and origin that can occur, times its
// rows and their actors.
//
// The verdict for two steps says nothing about both at once: the second may take
// back what the first did, or fall on objects that the first has left behind.
// Compare what will run side by side.
//
// The error matches [ErrMapping].
func Diff(old, new *fsm.Table, config *Config) (*Report, error) {
	if config == nil {
		config = &Config{}
	}
	j, err := join(old, new, config)
	if err != nil {
		return nil, err
	}
	e := &Report{
		Old: old.Name, New: new.Name, Differences: []Difference{}, Hazards: []Hazard{},
		Mapping: j.renamings(), Drain: []string{}, Hold: []Withheld{},
	}
	j.differences(e)
	if err := j.judge(e, config); err != nil {
		return nil, err
	}
	return e, nil
}

func diffError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMapping, fmt.Sprintf(format, args...))
}
