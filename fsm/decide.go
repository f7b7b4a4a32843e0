package fsm

import (
	"sync"
	"time"
)

// The methods in this file are those of a [Machine], by index and without guards.
// They are for code that decides about objects of many machines, such as a store
// of records or a model checker.

// Candidates appends to rows the rows that a request may take, in order of trial.
// Their source, event, actor and origin fit the request. Forced rows are among them
// only if force is set. The caller runs the guards and takes the first row that has
// no guard or whose guard returns nil. If there is no such row, the error is the
// refusal of [Machine.Next].
//
// The table is that of a machine, comes from a file or from [Table.WithRows]. In a table
// with faults, a row that names an undeclared state is never taken, and actors over
// [MaxActors] are refused. In a table without actors every row is for every actor. The
// call panics for an index out of range and for a Table that the caller has put together.
func (t *Table) Candidates(rows []int, state, origin, event int, actor Actor, force bool) ([]int, error) {
	// Panics: the index behind the last event would find rows of another state, and no row may
	// compare the origin.
	_, _, _ = t.States[state], t.States[origin], t.Events[event]
	c, word := t.decider(), wordOf(state, origin)
	bit, n := c.actorBit(actor), len(rows)
	for ed := c.first(state, event); ed != nil; ed = ed.next {
		if ed.actors&bit != 0 && c.agrees(ed, origin, force) {
			rows = append(rows, int(ed.row))
		}
	}
	if len(rows) == n {
		return rows, t.refuse(word, event, actor)
	}
	return rows, nil
}

// Refused returns the error of a request if the guards of all its candidates refused.
// The reasons are in the order of the rows. REQUIRES: there is a row.
func (t *Table) Refused(state, origin int, actor Actor, rows []int, reasons []error) error {
	var refused *TransitionError
	for i, row := range rows {
		refused = t.guardRefusal(refused, row, wordOf(state, origin), actor, reasons[i])
	}
	return refused
}

// After returns the status that a row leads to from a status. It checks neither
// origin condition nor guard. It takes the tables that [Table.Candidates] takes, and
// panics also if the row does not leave the state.
func (t *Table) After(state, origin, row int) (nextState, nextOrigin int) {
	c := t.decider()
	for ed := c.first(state, t.Rows[row].Event); ed != nil; ed = ed.next {
		if int(ed.row) == row {
			w := ed.move(wordOf(state, origin))
			return wordState(w), wordOrigin(w)
		}
	}
	panic("fsm: Table.After: the row does not leave the state")
}

// Timeout returns how long an object may be in a status before the sweeper acts, and
// the row that the sweeper then fires. This is the row with the shortest timeout among
// the rows with a timeout that fit the origin, and the first declared of equal ones. The
// row is -1 if there is none. Timeout takes the tables that [Table.Candidates] takes.
func (t *Table) Timeout(state, origin int) (timeout time.Duration, row int) {
	c := t.decider()
	row = -1
	for _, ed := range c.out[state] {
		r := &t.Rows[ed.row]
		if r.Timeout > 0 && (row < 0 || r.Timeout < timeout) && c.fits(ed, origin) {
			timeout, row = r.Timeout, int(ed.row)
		}
	}
	return timeout, row
}

// compileLater prepares a table that no machine has made for decisions. It is compiled for the
// first one, because most of these tables are only read.
func (t *Table) compileLater() {
	t.decides = sync.OnceValue(func() *compiled { return compile(t.declared()) })
}

func (t *Table) decider() *compiled {
	switch {
	case t.compiled != nil:
		return t.compiled
	case t.decides == nil:
		panic("fsm: table " + t.Name + " was neither made by a machine nor read from a file")
	}
	return t.decides()
}
