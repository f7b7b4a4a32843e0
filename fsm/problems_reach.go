package fsm

import (
	"slices"

	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// exits is what the rows do for the objects in one state.
type exits struct {
	leads bool       // a row leads out
	timed bool       // a row has a timeout
	left  bitset.Set // the origins of the objects for which a row leads out
	due   bitset.Set // the origins of the objects for which a row has a timeout

	endless []int // rows that come back after every timeout in the same operation
}

// reach checks which states an object can reach and leave. Every transitional state has a
// timeout for every origin, or Manual, and the timeout ends the operation or starts it
// again.
func (p *problems) reach() {
	t := p.t
	origins := possibleOrigins(t.declared())
	states := make([]exits, len(t.States))
	for s := range states {
		states[s].left, states[s].due = bitset.New(len(t.States)), bitset.New(len(t.States))
	}
	sweeper, _ := t.ActorIndex(Sweeper)
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Timeout > 0 && r.Forced {
			p.row(BadRow, i, "a forced row has a timeout")
		}
		if r.Timeout > 0 && len(r.Actors) > 0 && !slices.Contains(r.Actors, sweeper) {
			p.row(BadRow, i, "the row has a timeout, and its actors do not include the sweeper")
		}
		fits := len(r.Origin) == 0
		for _, from := range r.From {
			if from < 0 || from >= len(t.States) {
				continue
			}
			x := &states[from]
			moves := r.Then == ThenReturn || r.Then == ThenMove && r.To != from
			x.leads, x.timed = x.leads || moves, x.timed || r.Timeout > 0
			if r.Timeout > 0 && t.States[from].Kind == Transitional && r.Then == ThenMove && !moves && !r.Supersede && r.Guard == "" {
				x.endless = append(x.endless, i)
			}
			lacking := false // the problem is reported: one for a row and a source is enough
			for _, o := range origins[from] {
				if !r.fits(o) {
					continue
				}
				fits = true
				if moves {
					x.left.Add(o)
				}
				if r.Timeout > 0 {
					x.due.Add(o)
				}
				if r.Then == ThenReturn && !lacking && !t.States[o].Kind.Resting() {
					lacking = true
					p.row(NoOrigin, i, "an object in %s may have begun in %s and have no origin to return to",
						t.States[from].Name, t.States[o].Name)
				}
			}
		}
		if !fits && !p.vague {
			p.row(NeverFits, i, "no object has one of these origins there")
		}
	}
	for s := range states {
		p.deadEnd(s, origins[s], &states[s])
	}
	for s := range states {
		p.timeout(s, origins[s], &states[s])
	}
}

// lacks returns an origin that the set does not have, -1 for none.
func lacks(origins []int, set bitset.Set) int {
	if i := slices.IndexFunc(origins, func(o int) bool { return !set.Has(o) }); i >= 0 {
		return origins[i]
	}
	return -1
}

// deadEnd checks that a state can be reached and left.
func (p *problems) deadEnd(s int, origins []int, x *exits) {
	st := &p.t.States[s]
	if len(origins) == 0 && !p.vague {
		p.state(Unreachable, s, "no object gets there")
	}
	stuck := lacks(origins, x.left)
	switch {
	case st.Kind == Final || st.Kind == Absent || p.vagueSource:
	case len(origins) == 0 && x.leads: // reported as unreachable, or a name is misspelt
	case x.left.Len() == 0:
		p.state(DeadEnd, s, "no row leads out, and it is neither final nor absent")
	case stuck >= 0:
		p.state(DeadEnd, s, "no row leads out for an object that came from %s", p.t.States[stuck].Name)
	}
}

// timeout checks that a state has a timeout or Manual where it needs one, and that the
// timeout does not only repeat itself.
func (p *problems) timeout(s int, origins []int, x *exits) {
	for _, i := range x.endless {
		p.state(EndlessTimeout, s, "row %d (%s) comes back after every timeout, for ever, in the same operation: use Redo", i, p.t.Describe(i))
	}
	st := &p.t.States[s]
	late, some := lacks(origins, x.due), x.due.Len() > 0
	switch {
	case st.Manual != "" && st.Kind != Transitional:
		p.state(NeedlessManual, s, "Manual on a state that rests")
	case st.Manual != "" && some && late < 0:
		p.state(NeedlessManual, s, "Manual on a state that has a timeout")
	case st.Manual != "" || st.Kind != Transitional || p.vagueLate:
	case len(origins) == 0 && x.timed: // reported as unreachable, or a name is misspelt
	case !some:
		p.state(NoDeadline, s, "transitional, with neither a timeout nor Manual")
	case late >= 0:
		p.state(NoDeadline, s, "no timeout for an object that came from %s, and no Manual", p.t.States[late].Name)
	}
}
