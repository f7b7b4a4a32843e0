package fsm

import "time"

// The methods here are what a [Machine] does, by index and without running
// guards: for code that decides about objects of many machines, such as a store
// of records or a model checker. They need the table of a machine; on another
// table they panic.

// Candidates appends to rows those that a request may take, in order of trial:
// their source, event, actor and origin agree, and they are not forced only
// unless force is set. The caller runs the guards and takes the first row that
// has none or whose guard agrees. If there is no row at all, the error is the
// refusal that [Machine.Next] gives, and made beforehand where that one is.
func (t *Table) Candidates(rows []int, state, origin, event int, actor Actor, force bool) ([]int, error) {
	c, word := t.mustCompiled(), wordOf(state, origin)
	bit, n := c.actorBit(actor), len(rows)
	for i := c.first(state, event); i != 0; i = c.edges[i].next {
		if ed := &c.edges[i]; ed.actors&bit != 0 && c.agrees(ed, origin, force) {
			rows = append(rows, int(ed.row))
		}
	}
	if len(rows) == n {
		return rows, t.refuse(word, event, actor, force)
	}
	return rows, nil
}

// Refused returns the error of a request all of whose candidates were refused
// by their guards, reasons being theirs in the same order.
func (t *Table) Refused(state, origin int, actor Actor, rows []int, reasons []error) error {
	var err error
	for i, row := range rows {
		err = t.guardRefusal(err, row, wordOf(state, origin), actor, reasons[i])
	}
	return err
}

// After returns the status after a row was taken from one. Neither origin
// condition nor guard is looked at.
func (t *Table) After(state, origin, row int) (nextState, nextOrigin int) {
	c := t.mustCompiled()
	for i := c.first(state, t.Rows[row].Event); i != 0; i = c.edges[i].next {
		if ed := &c.edges[i]; int(ed.row) == row {
			w := c.moved(ed, wordOf(state, origin))
			return wordState(w), wordOrigin(w)
		}
	}
	panic("fsm: Table.After: the row does not leave the state")
}

// Deadline returns how long an object may be in a status before the sweeper
// acts, and the row that it fires first then: of the deadline rows whose origin
// condition agrees, the one with the shortest time, the first declared among
// equals. The row is -1 if there is none.
func (t *Table) Deadline(state, origin int) (within time.Duration, row int) {
	c := t.mustCompiled()
	row = -1
	for _, i := range c.late[state] {
		r := &t.Rows[c.edges[i].row]
		if (row < 0 || r.Within < within) && c.fits(&c.edges[i], origin) {
			within, row = r.Within, int(c.edges[i].row)
		}
	}
	return within, row
}

func (t *Table) mustCompiled() *compiled {
	if t.compiled == nil {
		panic("fsm: table " + t.Name + " was not made by a machine")
	}
	return t.compiled
}
