package fsm

import "slices"

// reach checks which states an object can reach and leave.
func (p *problems) reach() {
	t := p.t
	origins := possibleOrigins(t.declared())
	leaves := make([]bitset, len(t.States)) // by state: the origins of which a row leads out
	for s := range leaves {
		leaves[s] = newBitset(len(t.States))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		fits := len(r.Origin) == 0
		for _, from := range r.From {
			if from < 0 || from >= len(t.States) {
				continue
			}
			moves := r.Then == ThenReturn || r.Then == ThenMove && r.To != from
			lacking := false // the problem is reported: one for a row and a source is enough
			for _, o := range origins[from] {
				if !r.fits(o) {
					continue
				}
				fits = true
				if moves {
					leaves[from].add(o)
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
	for s := range t.States {
		st := &t.States[s]
		if len(origins[s]) == 0 && !p.vague {
			p.state(Unreachable, SeverityError, s, "no object gets there")
		}
		if st.Kind == Final || st.Kind == Absent || p.vagueSource {
			continue
		}
		stuck := slices.IndexFunc(origins[s], func(o int) bool { return !leaves[s].has(o) })
		switch {
		case len(origins[s]) == 0 && !slices.ContainsFunc(t.Rows, func(r TableRow) bool {
			return slices.Contains(r.From, s) && (r.Then == ThenReturn || r.Then == ThenMove && r.To != s)
		}), stuck >= 0 && len(leaves[s].members()) == 0:
			p.state(DeadEnd, SeverityError, s, "no row leads out, and it is neither final nor absent")
		case stuck >= 0:
			p.state(DeadEnd, SeverityError, s, "no row leads out for an object that came from %s", t.States[origins[s][stuck]].Name)
		}
	}
	p.deadlines(origins)
}

// deadlines checks that every transitional state has a timeout for every origin, or
// Manual, and that the timeout ends the operation or starts it again.
func (p *problems) deadlines(origins [][]int) {
	t := p.t
	sweeper, _ := t.ActorIndex(Sweeper)
	timed := newBitset(len(t.States))    // states that a row with a timeout leaves
	due := make([]bitset, len(t.States)) // by state: the origins with a timeout
	for s := range due {
		due[s] = newBitset(len(t.States))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Timeout <= 0 {
			continue
		}
		if r.Forced {
			p.row(BadRow, i, "a forced row has a timeout")
		}
		if len(r.Actors) > 0 && !slices.Contains(r.Actors, sweeper) {
			p.row(BadRow, i, "the row has a timeout, and its actors do not include the sweeper")
		}
		for _, from := range r.From {
			if from < 0 || from >= len(t.States) {
				continue
			}
			timed.add(from)
			if t.States[from].Kind == Transitional && r.Then == ThenMove && r.To == from && !r.Supersede && r.Guard == "" {
				p.state(EndlessTimeout, SeverityDemand, from,
					"row %d (%s) comes back after every timeout, for ever, in the same operation: use Redo", i, t.Describe(i))
			}
			for _, o := range origins[from] {
				if r.fits(o) {
					due[from].add(o)
				}
			}
		}
	}
	for s := range t.States {
		st := &t.States[s]
		late := slices.IndexFunc(origins[s], func(o int) bool { return !due[s].has(o) })
		some := len(due[s].members()) > 0
		switch {
		case st.Manual != "" && st.Kind != Transitional:
			p.state(NeedlessManual, SeverityDemand, s, "Manual on a state that rests")
		case st.Manual != "" && some && late < 0:
			p.state(NeedlessManual, SeverityDemand, s, "Manual on a state that has a timeout")
		case st.Manual != "" || st.Kind != Transitional || p.vagueLate:
		case len(origins[s]) == 0 && timed.has(s): // reported as unreachable, or a name is misspelt
		case !some && (late >= 0 || len(origins[s]) == 0):
			p.state(NoDeadline, SeverityDemand, s, "transitional, with neither a timeout nor Manual")
		case late >= 0:
			p.state(NoDeadline, SeverityDemand, s, "no timeout for an object that came from %s, and no Manual",
				t.States[origins[s][late]].Name)
		}
	}
}
