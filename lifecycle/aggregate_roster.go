package lifecycle

import (
	"fmt"
	"iter"
	"sync"
)

// Roster knows the state of every child of one parent, and what they come to.
// It is fed with the history rows of the children, as [Observer.Changed] or
// [Manager.History] give them, and with lists of them ([Recount]).
//
// The newest word about a child holds, by its sequence number, which never
// repeats for a key: a row that comes twice or late changes nothing, and one
// that is lost is made up for by any later one of that child. What only the last
// row of a child could have told is told by the next [Recount], so that a roster
// which is recounted now and then is right in the end, whatever is lost.
//
// [NewRoster] makes one; the zero Roster is not usable. It is safe for
// concurrent use and must not be copied. It keeps the id, state and sequence
// number of every child in memory, and the numbers of those that are gone until a
// whole Recount has come after: a row that is later than that brings a child back,
// until the next one. A process that starts fills it by Recount. An observer tells
// of the changes of its own process only: where several move the children, the rows
// of the others come from their messages, or from a Recount.
type Roster[S, C comparable] struct {
	rule *Aggregate[S, C]

	mu       sync.Mutex
	counts   Counts            // = the children by state
	children map[string]member // by id
	pass     uint64            // number of the last Recount that began
	passes   int               // Recounts under way
}

// member is what is known of a child, or of one that is gone: without its
// number a late row would bring it back.
type member struct {
	state    string // empty: gone
	sequence uint64
	pass     uint64 // the last Recount for which this counts
}

// NewRoster returns a roster of no children. It panics without a rule.
func NewRoster[S, C comparable](rule *Aggregate[S, C]) *Roster[S, C] {
	if rule == nil {
		panic("lifecycle: NewRoster needs a rule")
	}
	return &Roster[S, C]{rule: rule, children: make(map[string]member)}
}

// Apply takes a row of a child's history, and reports whether it was news. It
// costs the same whatever the number of children. Which rows are of children of
// this parent is for the caller to know; of a child that has got another parent, a
// row whose To is empty takes it away from here.
//
// Errors, with nothing changed: [ErrInvalid] for a row of another machine than
// that of the children, [ErrForeign] for a state that the rule does not know.
func (r *Roster[S, C]) Apply(row HistoryRow) (bool, error) {
	if r.rule.machine != "" && row.Machine != r.rule.machine {
		return false, fmt.Errorf("%w: a row of %s in a roster of %s", ErrInvalid, row.Key.text(), r.rule.machine)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set(row.ID, row.Sequence, row.To, r.pass, false)
}

// set takes a word about a child, which counts for all Recounts up to pass: a row
// for those that have begun, a list for its own and no later one, because a page
// may be older than that. Only a list says that a child is there although nothing
// is new; a row may come late, when it is gone. REQUIRES: r.mu is held.
func (r *Roster[S, C]) set(id string, sequence uint64, state string, pass uint64, listed bool) (bool, error) {
	class, known := r.rule.class[state]
	if !known {
		return false, fmt.Errorf("%w: aggregate %s does not know state %q of %q", ErrForeign, r.rule.name, state, id)
	}
	if class == uncounted {
		state = ""
	}
	before, seen := r.children[id]
	if seen && sequence <= before.sequence {
		if listed {
			before.pass = max(before.pass, pass)
			r.children[id] = before
		}
		return false, nil
	}
	if err := r.rule.move(&r.counts, before.state, state); err != nil {
		return false, err
	}
	r.children[id] = member{state: state, sequence: sequence, pass: max(before.pass, pass)}
	return true, nil
}

// Expect says how many children there will be at least: see [Counts.Expect].
func (r *Roster[S, C]) Expect(n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.Expect(n)
}

// Counts returns a copy of the counts, for a payload or for people.
func (r *Roster[S, C]) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.Clone()
}

// Now returns what the children come to.
func (r *Roster[S, C]) Now() Aggregated[C] {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, _ := r.rule.Of(&r.counts) // only states that the rule knows are counted
	return result
}

// Settle calls write with what the children come to, and again with what they
// have come to meanwhile, until that has not changed. Write brings the parent
// there, or finds it there; its error ends Settle and is returned. Call Settle
// after every Apply that was news, in any number of goroutines.
//
// Looking again is what makes it right: A finds the children stable; a child
// fails; B finds them degraded and writes that; A writes stable. B has gone, but
// A looks again and writes degraded. The last to write always looks afterwards.
// But each looks at its own roster: another process that has not heard of the child
// writes what it knows, until it has, or recounts.
func (r *Roster[S, C]) Settle(write func(Aggregated[C]) error) error {
	for now := r.Now(); ; {
		if err := write(now); err != nil {
			return err
		}
		then := now
		if now = r.Now(); now == then {
			return nil
		}
	}
}

// Recount takes a list of all children of a roster's parent, such as
// [Manager.All] yields, or as many of it as are children of this parent. Rows
// may be applied meanwhile. Who is not in the list, and of whom no row came
// while it was read, is gone.
//
// An error of the list is returned; what it had yielded until then is taken, and
// nobody is gone. The error is [fsm.ErrUnknownState] for a state that the rule
// does not know, with the same left.
func Recount[S, C comparable, T any](r *Roster[S, C], children iter.Seq2[Record[S, T], error]) error {
	r.mu.Lock()
	r.pass++
	r.passes++
	pass := r.pass
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.passes--
		r.mu.Unlock()
	}()
	for rec, err := range children {
		if err != nil {
			return err
		}
		state, err := r.rule.stateName(rec.State)
		if err != nil {
			return err
		}
		r.mu.Lock()
		_, err = r.set(rec.ID, rec.Sequence, state, pass, true)
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, m := range r.children {
		switch {
		case m.pass >= pass:
		case m.state == "":
			// A row from before the removal would be later than a whole list. But
			// another Recount may have read the child before the removal, and is to
			// find it gone: the number stays while there is one.
			if r.passes == 1 {
				delete(r.children, id)
			}
		default:
			if err := r.rule.move(&r.counts, m.state, ""); err != nil {
				return err
			}
			r.children[id] = member{sequence: m.sequence, pass: pass}
		}
	}
	return nil
}
