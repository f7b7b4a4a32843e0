package aggregate

import (
	"fmt"
	"iter"
	"sync"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Roster keeps the state of every child of one parent in memory, and the counts
// of these states. The caller applies the history rows of the children, as
// [lifecycle.Observer.Changed] reports them, and lists the children from time to
// time ([Recount]).
//
// The row with the highest sequence number of a child counts. A sequence number
// never repeats for a key, therefore:
//
//   - A row that arrives twice or late changes nothing.
//   - A later row of the same child replaces a lost row.
//   - The next Recount replaces a lost row that was the last of its child. A
//     roster that is recounted from time to time is correct in the end.
//
// A process fills a new roster by Recount. An observer reports only the changes of
// its own process: if several processes move the children, the rows of the others
// have to arrive in messages, or the roster has to be recounted.
//
// [NewRoster] makes a roster; the zero Roster is not usable. It is safe for
// concurrent use and must not be copied. It uses memory for every child, and for
// a removed child until a whole Recount has started and ended after the removal.
type Roster[S, C comparable] struct {
	rule *Aggregate[S, C]

	mu       sync.Mutex
	counts   map[S]int            // = children that exist, by state
	children map[string]member[S] // by id
	pass     uint64               // number of the last Recount that has started
	running  int                  // Recounts that have not returned
}

// member is the last known change of a child. The member of a removed child
// stays, because without its sequence number a late row would add the child again.
type member[S comparable] struct {
	state    S
	exists   bool
	sequence uint64
	pass     uint64 // the last Recount that must not remove the child
}

// NewRoster returns a roster without children. It panics without a rule.
func NewRoster[S, C comparable](rule *Aggregate[S, C]) *Roster[S, C] {
	if rule == nil {
		panic("aggregate: NewRoster needs a rule")
	}
	return &Roster[S, C]{rule: rule, counts: make(map[S]int), children: make(map[string]member[S])}
}

// Apply records a history row of a child. It reports whether the row is newer than
// the roster. The cost does not depend on the number of children. The caller
// selects the rows that belong to children of this parent.
//
// After an error nothing has changed. The error matches [lifecycle.ErrInvalid] for
// a row of another machine than the children's, and [lifecycle.ErrForeign] for a
// state that this machine does not declare.
func (r *Roster[S, C]) Apply(row lifecycle.HistoryRow) (bool, error) {
	table := r.rule.children.Table()
	if row.Machine != table.Name {
		return false, fmt.Errorf("aggregate: apply row of %s %q to %q: %w: the children are of machine %q",
			row.Machine, row.ID, r.rule.name, lifecycle.ErrInvalid, table.Name)
	}
	i, ok := table.StateIndex(row.To)
	if !ok {
		return false, fmt.Errorf("aggregate: apply row of %s %q to %q: %w: the machine has no state %q",
			row.Machine, row.ID, r.rule.name, lifecycle.ErrForeign, row.To)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A row is newer than what the running Recounts list, so none of them removes
	// the child because the list lacks it.
	return r.set(row.ID, member[S]{
		state: r.rule.children.StateAt(i), exists: table.States[i].Kind != fsm.Absent,
		sequence: row.Sequence, pass: r.pass,
	}), nil
}

// set records a member if it is newer than the roster.
// REQUIRES: r.mu is held.
func (r *Roster[S, C]) set(id string, m member[S]) bool {
	before, known := r.children[id]
	if known && m.sequence <= before.sequence {
		return false
	}
	m.pass = max(m.pass, before.pass)
	r.replace(id, before, m)
	return true
}

// replace records the change of a member and moves the counts.
// REQUIRES: r.mu is held.
func (r *Roster[S, C]) replace(id string, before, now member[S]) {
	if before.exists {
		r.counts[before.state]--
	}
	if now.exists {
		r.counts[now.state]++
	}
	r.children[id] = now
}

// Now returns the result for the children that the roster has.
func (r *Roster[S, C]) Now() Result[C] {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, _ := r.rule.Of(r.counts) // the counts have declared states and no negative numbers
	return result
}

// Settle calls write with the present result, and again until the result has not
// changed during the call. Write moves the parent to the result, unless the parent
// is there. An error of write ends Settle and is returned. Call Settle after every
// Apply that returns true, from any number of goroutines.
//
// The repetition keeps an old result from being the last. Without it: A computes
// stable; a child fails; B computes and writes degraded; A writes stable. With it,
// A computes again and writes degraded. The last writer always computes once more.
//
// Every process has its own roster. A process whose roster has missed a row writes
// the old result until it gets a later row or recounts.
func (r *Roster[S, C]) Settle(write func(Result[C]) error) error {
	for now := r.Now(); ; {
		if err := write(now); err != nil {
			return err
		}
		before := now
		if now = r.Now(); now == before {
			return nil
		}
	}
}

// Recount compares a roster with a list of all children of its parent, as
// [lifecycle.Manager.All] yields them. A child is removed from the roster if it is
// not in the list and no row of it was applied while Recount read the list. It is
// safe to apply rows and to run other Recounts at the same time.
//
// An error of the list is returned. The error matches [fsm.ErrUnknownState] for a
// record in a state that the children's machine does not declare. After an error
// the records before it are applied, and no child is removed.
func Recount[S, C comparable, T any](r *Roster[S, C], children iter.Seq2[lifecycle.Record[S, T], error]) error {
	pass := r.start()
	defer r.end()
	for rec, err := range children {
		if err == nil {
			err = r.rule.check(rec.State)
		}
		if err != nil {
			return err
		}
		r.list(rec.ID, member[S]{state: rec.State, exists: !r.rule.absent(rec.State), sequence: rec.Sequence, pass: pass})
	}
	r.removeUnlisted(pass)
	return nil
}

// start returns the number of a Recount that starts.
func (r *Roster[S, C]) start() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running++
	r.pass++
	return r.pass
}

func (r *Roster[S, C]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
}

// list records a child of a list. The child counts for this Recount and not for a
// later one, because the page of the list may be older than the later Recount.
func (r *Roster[S, C]) list(id string, m member[S]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.set(id, m) {
		known := r.children[id]
		known.pass = max(known.pass, m.pass)
		r.children[id] = known
	}
}

// removeUnlisted removes the children that neither the list of a Recount nor a row
// has confirmed since this Recount started.
func (r *Roster[S, C]) removeUnlisted(pass uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, m := range r.children {
		switch {
		case m.pass >= pass:
		case m.exists:
			r.replace(id, m, member[S]{sequence: m.sequence, pass: pass})
		case r.running == 1:
			// The child was removed before this list started, so a row from before
			// the removal is very late. Another running Recount may have read the
			// child before the removal; it needs the sequence number.
			delete(r.children, id)
		}
	}
}
