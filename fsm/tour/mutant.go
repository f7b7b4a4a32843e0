package tour

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/visible"
)

// Mutant is a table with one small fault, which a test of the table should notice: a row
// is missing, leads to another state, is for other actors, has no guard or no origin
// condition, needs force and needed none or the reverse, or ignores the event. The fault
// applies to all sources of the row.
type Mutant struct {
	Row   int        // of the original table
	Text  string     // the change as one line, different for every mutant of a table
	Table *fsm.Table // not always sound
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
// [ErrTooLarge].
func Mutants(t *fsm.Table) (iter.Seq[Mutant], error) {
	w, err := newWalk(t)
	if err != nil {
		return nil, err
	}
	all := make([]int, len(t.Rows))
	for i := range all {
		all[i] = i
	}
	return func(yield func(Mutant) bool) {
		for i := range t.Rows {
			if !w.fires(&t.Rows[i]) {
				continue
			}
			for _, f := range w.faults(i) {
				m := Mutant{Row: i, Text: visible.Text(fmt.Sprintf("row %d (%s) %s", i, t.Describe(i), f.text))}
				rows := slices.Clone(t.Rows)
				m.Rows = slices.Clone(all)
				if f.apply == nil {
					rows, m.Rows = slices.Delete(rows, i, i+1), slices.Delete(m.Rows, i, i+1)
				} else {
					// The mutant's target may be a source of the wildcard, and has to stay one.
					rows[i].Any, rows[i].Except = false, nil
					f.apply(&rows[i])
				}
				m.Table = t.WithRows(rows)
				m.Equivalent = w.equivalent(m.Table, i)
				if !yield(m) {
					return
				}
			}
		}
	}, nil
}

// fault is a change of a row; a nil apply drops it.
type fault struct {
	text  string
	apply func(*fsm.TableRow)
}

// faults lists the changes of one row.
func (w *walk) faults(i int) []fault {
	t, r := w.t, &w.t.Rows[i]
	list := []fault{{"is dropped", nil}}
	if to := w.target(r); to >= 0 {
		list = append(list, fault{"leads to " + t.States[to].Name, func(r *fsm.TableRow) { r.Then, r.To = fsm.ThenMove, to }})
	}
	list = append(list, w.actorFaults(r)...)
	if r.Guard != "" {
		list = append(list, fault{"has no guard", func(r *fsm.TableRow) { r.Guard = "" }})
	}
	if len(r.Origin) > 0 {
		list = append(list, fault{"is for every origin", func(r *fsm.TableRow) { r.Origin = nil }})
	}
	text := "needs force"
	if r.Forced {
		text = "needs no force"
	}
	list = append(list, fault{text, func(r *fsm.TableRow) { r.Forced = !r.Forced }})
	if r.Then != fsm.ThenIgnore {
		list = append(list, fault{"is ignored", func(r *fsm.TableRow) {
			r.Then, r.To, r.Timeout, r.Supersede = fsm.ThenIgnore, -1, 0, false
		}})
	}
	return list
}

// actorFaults lists the changes of the actors of a row: to another one, and to all. The
// sweeper keeps a row with a deadline.
func (w *walk) actorFaults(r *fsm.TableRow) (list []fault) {
	actors := w.t.Actors
	sweeper, ok := w.t.ActorIndex(fsm.Sweeper)
	due := ok && r.Timeout > 0
	other := 0
	for slices.Contains(r.Actors, other) {
		other++
	}
	if len(actors) < 2 || other >= len(actors) {
		return nil
	}
	only := fault{"is for " + string(actors[other]), func(r *fsm.TableRow) { r.Actors = []int{other} }}
	if due && other != sweeper {
		only = fault{only.text + " and " + string(fsm.Sweeper), func(r *fsm.TableRow) { r.Actors = []int{other, sweeper} }}
	}
	if len(r.Actors) == 0 {
		only.text += " only"
		return []fault{only}
	}
	list = append(list, only)
	if len(actors) > 2 || !due {
		list = append(list, fault{"is for every actor", func(r *fsm.TableRow) { r.Actors = nil }})
	}
	return list
}

// target returns another state for a row to lead to, -1 for none: the next one of the
// same kind if there is one, because a test notices that least.
func (w *walk) target(r *fsm.TableRow) int {
	n, start, kind := len(w.t.States), 0, fsm.Stable
	if r.Then == fsm.ThenMove {
		start, kind = r.To+1, w.t.States[r.To].Kind
	}
	found := -1
	for k := range n {
		s := (start + k) % n
		if r.Then == fsm.ThenMove && s == r.To || r.Then == fsm.ThenIgnore && !slices.Contains(r.From, s) {
			continue // an ignored event becomes a move of the object to its own state
		}
		if w.t.States[s].Kind == kind {
			return s
		}
		if found < 0 {
			found = s
		}
	}
	return found
}

// equivalent reports whether objects behave alike under this table and another one that
// differs in one row: in every status of its sources that objects get into here,
// every request has the same outcomes in the same order. Then objects get into the
// same statuses there.
func (w *walk) equivalent(other *fsm.Table, row int) bool {
	r := &w.t.Rows[row]
	stranger := fsm.Actor("stranger")
	for slices.Contains(w.actors, stranger) {
		stranger += "'"
	}
	for _, at := range w.statuses {
		if !slices.Contains(r.From, at.state) {
			continue
		}
		if dueIn(w.t, at) != dueIn(other, at) {
			return false
		}
		for _, actor := range append(slices.Clip(w.actors), stranger) {
			for _, force := range []bool{false, true} {
				if !slices.Equal(outcomes(w.t, at, r.Event, actor, force), outcomes(other, at, r.Event, actor, force)) {
					return false
				}
				_, mine := refusal(w.t, at, r.Event, actor, force)
				_, others := refusal(other, at, r.Event, actor, force)
				if mine != others {
					return false
				}
			}
		}
	}
	return true
}

// outcome is the result of a request if a guard agrees and the guards before it do
// not.
type outcome struct {
	guard              string
	to                 status
	ignored, supersede bool
}

// outcomes lists the possible results of a request: none after a row without a
// guard, each guard once, and no guard that makes no difference.
func outcomes(t *fsm.Table, at status, event int, actor fsm.Actor, force bool) (list []outcome) {
	rows, _ := t.Candidates(nil, at.state, at.origin, event, actor, force)
	for _, i := range rows {
		r := &t.Rows[i]
		x := outcome{guard: r.Guard, ignored: r.Then == fsm.ThenIgnore}
		x.supersede = r.Supersede && !t.States[at.state].Kind.Resting()
		x.to.state, x.to.origin = t.After(at.state, at.origin, i)
		if x.guard != "" {
			if !slices.ContainsFunc(list, func(before outcome) bool { return before.guard == x.guard }) {
				list = append(list, x)
			}
			continue
		}
		for len(list) > 0 {
			last := list[len(list)-1]
			if last.guard = ""; last != x {
				break
			}
			list = list[:len(list)-1]
		}
		return append(list, x)
	}
	return list
}

// deadline is the row that the sweeper fires for an object that stays in a status.
type deadline struct {
	timeout time.Duration
	event   int
	to      status
}

// dueIn returns the deadline in a status, the zero deadline for none.
func dueIn(t *fsm.Table, at status) (d deadline) {
	timeout, row := t.Timeout(at.state, at.origin)
	if row >= 0 {
		d.timeout, d.event = timeout, t.Rows[row].Event
		d.to.state, d.to.origin = t.After(at.state, at.origin, row)
	}
	return d
}
