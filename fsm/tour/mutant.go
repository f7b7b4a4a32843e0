package tour

import (
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// MutantKind is the kind of fault that a [Mutant] has.
type MutantKind uint8

// The kinds of mutants.
const (
	MutantDropped    MutantKind = iota // the row is missing
	MutantRetargeted                   // the row leads to another state
	MutantActor                        // another actor may fire the row
	MutantAnybody                      // every declared actor may fire the row
	MutantUnguarded                    // the row has no guard
	MutantOrigin                       // the row has no origin condition
	MutantForce                        // the row needs force and needed none, or the reverse
	MutantIgnored                      // the row ignores the event
)

var mutantNames = [...]string{"dropped", "retargeted", "actor", "anybody", "unguarded", "origin", "force", "ignored"}

// String returns the name in lower case.
func (k MutantKind) String() string {
	if int(k) < len(mutantNames) {
		return mutantNames[k]
	}
	return "mutant?"
}

// MutantConfig refines [Mutants]. The zero MutantConfig has the defaults.
type MutantConfig struct {
	// EveryTarget retargets every row to every other state. Default: to one state,
	// of the same kind if there is one, because a test notices that least.
	EveryTarget bool
	// Kinds are the kinds of mutants to make. Default: all.
	Kinds []MutantKind
}

// Mutant is a table with one small fault, which a test of the table should notice.
type Mutant struct {
	Kind  MutantKind
	Row   int        // of the original table
	Text  string     // the change as one line, different for every mutant of a table
	Table *fsm.Table // not compiled and not always sound
	// Rows are the rows of Table by their indexes in the original table.
	Rows []int
	// Equivalent reports that no test can notice the mutant: in every status that
	// objects get into, every request by every actor has the same outcome under the
	// same guards, and the deadline is the same.
	Equivalent bool
}

// String returns the text.
func (m Mutant) String() string { return m.Text }

// Mutants yields the mutants of a table, sound or not, row by row. The error is
// [ErrTooLarge]. A nil config is the default.
func Mutants(t *fsm.Table, config *MutantConfig) (iter.Seq[Mutant], error) {
	if config == nil {
		config = &MutantConfig{}
	}
	w, err := newWalk(t, false)
	if err != nil {
		return nil, err
	}
	return func(yield func(Mutant) bool) {
		for i := range t.Rows {
			if w.lost(&t.Rows[i]) != "" {
				continue
			}
			for _, f := range w.faults(i, config.EveryTarget) {
				if len(config.Kinds) > 0 && !slices.Contains(config.Kinds, f.kind) {
					continue
				}
				m := Mutant{Kind: f.kind, Row: i, Text: fmt.Sprintf("row %d (%s) %s", i, w.describe(i), f.text)}
				m.Table, m.Rows = mutated(t, i, f.apply)
				m.Equivalent = w.behaves(m.Table, i)
				if !yield(m) {
					return
				}
			}
		}
	}, nil
}

// fault is a change of a row; a nil apply drops it.
type fault struct {
	kind  MutantKind
	text  string
	apply func(*fsm.TableRow)
}

// faults lists the changes of one row.
func (w *walk) faults(i int, everyTarget bool) []fault {
	t, r := w.t, &w.t.Rows[i]
	list := []fault{{MutantDropped, "is dropped", nil}}
	for _, to := range w.targets(r, everyTarget) {
		list = append(list, fault{MutantRetargeted, "leads to " + t.States[to].Name, func(r *fsm.TableRow) {
			r.Then, r.To = fsm.ThenMove, to
		}})
	}
	list = append(list, w.actorFaults(r)...)
	if r.Guard != "" {
		list = append(list, fault{MutantUnguarded, "has no guard", func(r *fsm.TableRow) { r.Guard = "" }})
	}
	if len(r.Origin) > 0 {
		list = append(list, fault{MutantOrigin, "is for every origin", func(r *fsm.TableRow) { r.Origin = nil }})
	}
	text := "needs force"
	if r.Forced {
		text = "needs no force"
	}
	list = append(list, fault{MutantForce, text, func(r *fsm.TableRow) { r.Forced = !r.Forced }})
	if r.Then != fsm.ThenIgnore {
		list = append(list, fault{MutantIgnored, "is ignored", func(r *fsm.TableRow) {
			r.Then, r.To, r.Timeout, r.Supersede = fsm.ThenIgnore, -1, 0, false
		}})
	}
	return list
}

// actorFaults lists the changes of the actors of a row. The sweeper keeps a row
// with a deadline.
func (w *walk) actorFaults(r *fsm.TableRow) (list []fault) {
	t := w.t
	sweeper, ok := t.ActorIndex(fsm.Sweeper)
	due := ok && r.Timeout > 0
	is := func(a int) (string, func(*fsm.TableRow)) {
		if due && a != sweeper {
			return "is for " + string(t.Actors[a]) + " and " + string(fsm.Sweeper), func(r *fsm.TableRow) { r.Actors = []int{a, sweeper} }
		}
		return "is for " + string(t.Actors[a]), func(r *fsm.TableRow) { r.Actors = []int{a} }
	}
	all := w.actors()
	other := slices.IndexFunc(all, func(a int) bool { return len(r.Actors) > 0 && !slices.Contains(r.Actors, a) })
	switch {
	case len(t.Actors) < 2:
	case len(r.Actors) == 0:
		text, apply := is(0)
		list = append(list, fault{MutantActor, text + " only", apply})
	case other >= 0:
		text, apply := is(other)
		list = append(list, fault{MutantActor, text, apply})
		if len(t.Actors) > 2 || !due {
			list = append(list, fault{MutantAnybody, "is for anybody", func(r *fsm.TableRow) { r.Actors = all }})
		}
	}
	return list
}

// targets lists other states for a row to lead to.
func (w *walk) targets(r *fsm.TableRow, every bool) (list []int) {
	kind := fsm.Stable
	if r.Then == fsm.ThenMove {
		kind = w.t.States[r.To].Kind
	}
	n := len(w.t.States)
	for near := range 2 {
		for k := range n {
			s := k
			if r.Then == fsm.ThenMove {
				s = (r.To + 1 + k) % n // the next one first
			}
			same := w.t.States[s].Kind == kind
			switch {
			case r.Then == fsm.ThenMove && s == r.To, same != (near == 0):
			case r.Then == fsm.ThenIgnore && !slices.Contains(r.From, s):
				// The row moves the object to its own state.
			default:
				list = append(list, s)
			}
		}
	}
	if !every && len(list) > 1 {
		list = list[:1]
	}
	return list
}

// mutated returns a copy of the table with one changed row, and its rows by their
// original indexes.
func mutated(t *fsm.Table, row int, apply func(*fsm.TableRow)) (*fsm.Table, []int) {
	m := &fsm.Table{
		Name: t.Name, Title: t.Title, Initial: t.Initial, Initials: t.Initials,
		States: t.States, Events: t.Events, Actors: t.Actors, Rows: slices.Clone(t.Rows), Illegal: t.Illegal,
		Undeclared: t.Undeclared, UndeclaredActors: t.UndeclaredActors,
		Confidence: t.Confidence, Source: t.Source, Notes: t.Notes, Anomalies: t.Anomalies,
	}
	rows := make([]int, len(t.Rows))
	for i := range rows {
		rows[i] = i
	}
	if apply == nil {
		m.Rows, rows = slices.Delete(m.Rows, row, row+1), slices.Delete(rows, row, row+1)
		return m, rows
	}
	apply(&m.Rows[row])
	if r := &m.Rows[row]; r.Any { // the mutant's target may be a source, and is to stay one
		r.Any, r.Except = false, nil
	}
	return m, rows
}

// describe returns a row as text: from -event-> to.
func (w *walk) describe(i int) string {
	r := &w.t.Rows[i]
	from := "any"
	for k, s := range r.From {
		switch {
		case r.Any || k > 1 && k < len(r.From)-1:
		case !w.declared(s):
			from = "?"
		case k == 0:
			from = w.t.States[s].Name
		case k == 1 && len(r.From) > 2:
			from += "|..."
		default:
			from += "|" + w.t.States[s].Name
		}
	}
	to := "origin"
	switch r.Then {
	case fsm.ThenMove:
		to = w.t.States[r.To].Name
	case fsm.ThenIgnore:
		to = "ignored"
	}
	return fmt.Sprintf("%s -%s-> %s", from, w.t.Events[r.Event], to)
}
