package fsm

import "unsafe"

// named returns the column of a string event that is found by its address, else
// one that no machine has.
//
//go:noinline
func (m *Machine[S, E, T]) named(e E) uint64 {
	if m.columns == 0 || m.events.kind != byString {
		return missing
	}
	return m.columnBook.find(*(*string)(unsafe.Pointer(&e)))
}

// placeOf returns the place of a state, or 0 if it is not found at once.
func (m *Machine[S, E, T]) placeOf(s S) uint64 {
	if value := integer(s) - m.states.base; value < uint64(len(m.values)) {
		return uint64(m.values[value])
	}
	return 0
}

// namedPlace is placeOf for strings.
//
//go:noinline
func (m *Machine[S, E, T]) namedPlace(s S) uint64 {
	if m.states.kind != byString {
		return 0
	}
	return m.placeBook.find(*(*string)(unsafe.Pointer(&s))) + 1
}

// quick returns the cell of a request, if it has one that asks for nothing but
// this actor, and everything is spelled by the same constants.
func (m *Machine[S, E, T]) quick(at Status[S], e E, actor Actor) *cell[S] {
	column, place, home := integer(e)-m.base, m.placeOf(at.State), m.placeOf(at.Origin)
	if unsafe.Sizeof(e) == unsafe.Sizeof("") {
		column = m.named(e)
	}
	if unsafe.Sizeof(at.State) == unsafe.Sizeof("") {
		place, home = m.namedPlace(at.State), m.namedPlace(at.Origin)
	}
	if place == 0 || home == 0 || column >= m.columns || m.self != m {
		return nil
	}
	cell := m.cell(place, column)
	if uint64(cell.place) != place ||
		unsafe.StringData(cell.actor) != unsafe.StringData(string(actor)) || len(cell.actor) != len(actor) {
		return nil
	}
	return cell
}
