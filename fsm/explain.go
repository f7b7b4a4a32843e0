package fsm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Explanation says what can happen to an object in one status: every row that
// leads out of its state, and for each why it would not fire now.
type Explanation struct {
	Machine string
	State   string
	Origin  string // equals State where there is none
	Kind    Kind
	Manual  string // who looks after a transitional state without deadline
	Rows    []RowExplanation
}

// RowExplanation is one row that leads out of the state.
type RowExplanation struct {
	Row    int // index in the table
	Event  string
	Actors []Actor // who may fire it: every declared actor where the row names none
	To     string  // the state it leads to, for a return row the origin; empty where the origin forbids the row
	Guard  string
	Forced bool
	Within time.Duration // > 0: fired by the sweeper after this long in the state
	Doc    string
	// Err is nil if the row agrees now, asked by one of its actors and, where
	// Forced, by force. Else it matches ErrNotAllowed (the origin), or ErrGuard
	// and unwraps to the guard's reason. A row that agrees may still not be the
	// one that fires: an earlier row of the same event goes first.
	Err error
}

// Explain says what can happen in a status. It runs every guard that leads out
// of the state once, with ctx and payload. The error is [ErrUnknownState].
func (m *Machine[S, E, T]) Explain(ctx context.Context, at Status[S], payload *T) (Explanation, error) {
	state, origin := m.states.of(at.State), m.states.of(at.Origin)
	if state < 0 || origin < 0 {
		var none E
		err := m.unknown(at, none, "")
		err.Event = ""
		return Explanation{}, err
	}
	t, word := m.table, wordOf(int(state), int(origin))
	x := Explanation{
		Machine: t.Name, State: t.States[state].Name, Origin: t.States[origin].Name,
		Kind: t.States[state].Kind, Manual: t.States[state].Manual,
	}
	for _, i := range m.c.out[state] {
		ed := &m.c.edges[i]
		row := &t.Rows[ed.row]
		re := RowExplanation{
			Row: int(ed.row), Event: t.Events[row.Event], Guard: row.Guard,
			Forced: row.Forced, Within: row.Within, Doc: row.Doc, Actors: slices.Clone(t.Actors),
		}
		if len(row.Actors) > 0 {
			re.Actors = re.Actors[:0]
			for _, a := range row.Actors {
				re.Actors = append(re.Actors, t.Actors[a])
			}
		}
		if m.c.fits(ed, int(origin)) {
			re.To = t.States[wordState(m.c.moved(ed, word))].Name
			if reason := m.Check(ctx, int(ed.row), payload); reason != nil {
				re.Err = t.guardRefusal(nil, int(ed.row), word, "", reason)
			}
		} else {
			err := t.detail(word, row.Event, "")
			err.Reason = errOrigin
			re.Err = err
		}
		x.Rows = append(x.Rows, re)
	}
	return x, nil
}

// String returns the explanation as a few lines for people.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s (%s", x.Machine, x.State, x.Kind)
	if x.Origin != x.State {
		fmt.Fprintf(&b, ", from %s", x.Origin)
	}
	b.WriteString(")")
	if x.Manual != "" {
		fmt.Fprintf(&b, ": %s", x.Manual)
	}
	for _, r := range x.Rows {
		names := make([]string, len(r.Actors))
		for i, a := range r.Actors {
			names[i] = string(a)
		}
		fmt.Fprintf(&b, "\n  %s by %s", r.Event, strings.Join(names, ", "))
		if r.Within > 0 {
			fmt.Fprintf(&b, " after %s", r.Within)
		}
		if r.Forced {
			b.WriteString(" by force")
		}
		if r.To != "" {
			fmt.Fprintf(&b, " -> %s", r.To)
		}
		if te, ok := r.Err.(*TransitionError); ok {
			switch {
			case te.Guard != "":
				fmt.Fprintf(&b, ": not now: %s: %v", te.Guard, te.Reason)
			default:
				fmt.Fprintf(&b, ": not now: %v", te.Reason)
			}
		}
	}
	if len(x.Rows) == 0 {
		b.WriteString("\n  nothing leads out")
	}
	return b.String()
}
