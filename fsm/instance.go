package fsm

import (
	"context"
	"sync/atomic"
	"unsafe"
)

// Instance is one object in memory: a machine and an atomic status. Of several
// goroutines that fire at once, each move has exactly one winner, self
// transitions included; the others get [ErrConflict].
//
// [Machine.Instance] and [Machine.InstanceAt] make one, without allocation and
// of 16 bytes on 64-bit systems; the zero Instance panics. An Instance is safe
// for concurrent use and must not be copied after its first use.
type Instance[S, E comparable, T any] struct {
	word    atomic.Uint64 // place of the state, origin and a count: see grid.go
	machine *Machine[S, E, T]
}

// Instance returns a new object in the initial state.
func (m *Machine[S, E, T]) Instance() (in Instance[S, E, T]) {
	in.machine = m.self
	in.word.Store(m.grid.word(wordOf(m.table.Initial, m.table.Initial)))
	return
}

// InstanceAt returns an object with this status, which is taken as it is; see
// [Machine.ParseStatus] for one that comes from outside. The error is
// [ErrUnknownState].
func (m *Machine[S, E, T]) InstanceAt(at Status[S]) (in Instance[S, E, T], err error) {
	state, origin := m.states.of(at.State), m.states.of(at.Origin)
	if state < 0 || origin < 0 {
		err = &TransitionError{
			Machine: m.table.Name, From: nameOf(at.State), Origin: nameOf(at.Origin), Row: -1, Err: ErrUnknownState,
		}
		return
	}
	in.machine = m.self
	in.word.Store(m.grid.word(wordOf(int(state), int(origin))))
	return
}

// Status returns the present status.
func (in *Instance[S, E, T]) Status() Status[S] {
	m := in.machine
	return m.statusOf(m.status(in.word.Load()))
}

// State returns the present state.
func (in *Instance[S, E, T]) State() S { return in.Status().State }

// Fire moves the object by event e, if the table lets this actor, and returns
// the step that it took. The order is fixed: row, actor, origin, guard,
// compare-and-set, observer. A guard runs before the compare-and-set and
// without any lock; if the object moves meanwhile, Fire returns [ErrConflict]
// and does not try again.
//
// Errors: those of [Machine.Next], and ErrConflict. After an error the object
// is where it was, or where the winner put it.
func (in *Instance[S, E, T]) Fire(ctx context.Context, e E, actor Actor, payload *T) (Step[S], error) {
	m := in.machine
	w := in.word.Load()
	column := integer(e) - m.base
	if unsafe.Sizeof(e) == unsafe.Sizeof("") {
		column = m.named(e)
	}
	if column < m.columns {
		cell := m.cell(w&placeBits, column)
		// Actors are nearly always the same constants, so that comparing the
		// addresses is enough; who spells an actor anew goes the long way.
		if uint64(cell.place) == w&placeBits &&
			unsafe.StringData(cell.actor) == unsafe.StringData(string(actor)) && len(cell.actor) == len(actor) {
			if in.word.CompareAndSwap(w, w&cell.keep+cell.word) {
				return Step[S]{Status: Status[S]{State: cell.state, Origin: cell.origin}, Row: int(cell.row)}, nil
			}
			return in.lose(w, int(cell.row), actor)
		}
	}
	// From here on nothing of the above is needed any more. That everything is
	// loaded again keeps the registers free for the way that moves: what it had
	// to put on the stack, the compare-and-set would have to wait for.
	m = in.machine
	column = integer(e) - m.base
	if unsafe.Sizeof(e) == unsafe.Sizeof("") {
		column = m.named(e)
	}
	if column < m.columns {
		if refusals := m.cell(in.word.Load()&placeBits, 0).refusals; refusals != nil {
			p, n := unsafe.StringData(string(actor)), len(actor)
			switch {
			case p == unsafe.StringData(string(m.first[0])) && n == len(m.first[0]):
			case p == unsafe.StringData(string(m.first[1])) && n == len(m.first[1]):
				column += m.columns
			case p == unsafe.StringData(string(m.first[2])) && n == len(m.first[2]):
				column += 2 * m.columns
			default:
				return in.other(ctx, e, actor, payload)
			}
			r := (*refusal)(unsafe.Add(unsafe.Pointer(refusals), column*uint64(unsafe.Sizeof(*refusals))))
			if r.always {
				return Step[S]{}, r
			}
		}
	}
	return in.other(ctx, e, actor, payload)
}

// other is Fire for what the short ways leave: a guard, an origin that stays,
// and whatever has no cell. It takes the parameters in the same registers.
//
//go:noinline
func (in *Instance[S, E, T]) other(ctx context.Context, e E, actor Actor, payload *T) (Step[S], error) {
	m := in.machine
	w := in.word.Load()
	column := integer(e) - m.base
	if unsafe.Sizeof(e) == unsafe.Sizeof("") {
		column = m.named(e)
	}
	if column < m.columns {
		cell := m.cell(w&placeBits, column)
		if uint64(cell.place) == w&placeBits|slowCell &&
			unsafe.StringData(cell.actor) == unsafe.StringData(string(actor)) && len(cell.actor) == len(actor) {
			row := int(cell.row)
			if guard := m.guards[row]; guard != nil {
				if reason := guard(ctx, payload); reason != nil {
					return Step[S]{}, m.table.guardRefusal(nil, row, m.status(w), actor, reason)
				}
			}
			if !in.word.CompareAndSwap(w, w&cell.keep+cell.word) {
				return in.lose(w, row, actor)
			}
			step := Step[S]{Status: Status[S]{State: cell.state, Origin: cell.origin}, Row: row}
			if cell.keep&homeBits != 0 {
				step.Origin = m.names[w>>homeShift&indexMask]
			}
			return step, nil
		}
	}
	return in.choose(ctx, w, e, actor, payload, false)
}

// lose says that somebody else moved the object away from w.
//
//go:noinline
func (in *Instance[S, E, T]) lose(w uint64, row int, actor Actor) (Step[S], error) {
	m := in.machine
	err := m.lost(w, m.table.Rows[row].Event, actor)
	m.tellRefused(err)
	return Step[S]{}, err
}

// FireForced is Fire that also takes rows which are forced only.
func (in *Instance[S, E, T]) FireForced(ctx context.Context, e E, actor Actor, payload *T) (Step[S], error) {
	return in.choose(ctx, in.word.Load(), e, actor, payload, true)
}

// choose fires by the rows themselves, whatever cells there are.
func (in *Instance[S, E, T]) choose(ctx context.Context, w uint64, e E, actor Actor, payload *T, force bool) (Step[S], error) {
	m := in.machine
	at, event := m.status(w), int(m.events.of(e))
	if event < 0 {
		err := m.unknown(m.statusOf(at), e, actor)
		m.tellRefused(err)
		return Step[S]{}, err
	}
	ed, err := m.choose(ctx, at, event, actor, payload, force)
	if err != nil {
		m.tellRefused(err)
		return Step[S]{}, err
	}
	return in.swap(w, ed, actor)
}

// swap takes an edge from the word on which it was chosen.
func (in *Instance[S, E, T]) swap(w uint64, ed *edge, actor Actor) (Step[S], error) {
	m := in.machine
	at := m.status(w)
	after, word := m.c.moved(ed, at), w
	if ed.flags&ignores == 0 {
		word = m.grid.word(after) | w&countBits
		word += countOne
	}
	// An ignored event writes nothing new, but it is accepted only if the
	// object is still where the edge was chosen.
	if !in.word.CompareAndSwap(w, word) {
		err := m.lost(w, m.table.Rows[ed.row].Event, actor)
		m.tellRefused(err)
		return Step[S]{}, err
	}
	m.tellMoved(at, after, actor, ed)
	return m.step(ed, after), nil
}

func (m *Machine[S, E, T]) lost(w uint64, event int, actor Actor) error {
	err := m.table.detail(m.status(w), event, actor)
	err.Err = ErrConflict
	return err
}

// Pending is a move that [Instance.Next] has decided and nobody has made yet.
// The zero Pending is none.
type Pending[S comparable] struct {
	Step[S]
	of    *atomic.Uint64 // the instance's word, which is one object's only
	seen  uint64
	edge  *edge
	actor Actor
}

// Next returns the move that Fire would make, and makes none. It is for a
// caller with an effect of its own between decision and move, which may fail:
//
//	move, err := crane.Next(ctx, Lift, User, &load)
//	...the effect...
//	step, err := crane.CompareAndSwap(move)
//
// Errors: those of [Machine.Next].
func (in *Instance[S, E, T]) Next(ctx context.Context, e E, actor Actor, payload *T) (Pending[S], error) {
	m, w := in.machine, in.word.Load()
	at := m.status(w)
	event := int(m.events.of(e))
	if event < 0 {
		return Pending[S]{}, m.unknown(m.statusOf(at), e, actor)
	}
	ed, err := m.choose(ctx, at, event, actor, payload, false)
	if err != nil {
		return Pending[S]{}, err
	}
	return Pending[S]{Step: m.step(ed, m.c.moved(ed, at)), of: &in.word, seen: w, edge: ed, actor: actor}, nil
}

// CompareAndSwap makes the move that [Instance.Next] decided, if the object has
// not moved since, self transitions included; else it returns [ErrConflict],
// and the caller's effect is done without its move. A move can be made once; an
// ignored one, which moves nothing, as often as one likes. It panics with a
// Pending that Next of this very Instance did not return.
func (in *Instance[S, E, T]) CompareAndSwap(move Pending[S]) (Step[S], error) {
	if move.edge == nil || move.of != &in.word {
		panic("fsm: CompareAndSwap of a move that Next of this instance did not return")
	}
	return in.swap(move.seen, move.edge, move.actor)
}

func (m *Machine[S, E, T]) statusOf(w uint64) Status[S] {
	return Status[S]{State: m.names[wordState(w)], Origin: m.names[wordOrigin(w)]}
}

func (m *Machine[S, E, T]) tellRefused(err error) {
	if o := m.observer; o != nil && o.Refused != nil {
		o.Refused(err)
	}
}

func (m *Machine[S, E, T]) tellMoved(before, after uint64, actor Actor, ed *edge) {
	o, t := m.observer, m.table
	if o == nil || o.Moved == nil {
		return
	}
	o.Moved(Moved{
		Machine: t, From: t.States[wordState(before)].Name, Origin: t.States[wordOrigin(before)].Name,
		To: t.States[wordState(after)].Name, Event: t.Events[t.Rows[ed.row].Event], Actor: actor,
		Row: int(ed.row), Ignored: ed.flags&ignores != 0,
	})
}
