package fsm_test

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// reference is the meaning of a Spec, read from its rows one by one, without indexes
// and compilation. Tests compare machines with it.
type reference[S, E comparable] struct {
	spec  fsm.Spec[S, E]
	guard func(name string) error
}

// answer is the result of a request: a step, or a sentinel.
type answer[S comparable] struct {
	fsm.Step[S]
	Err     error   // sentinel
	reasons []error // of guards
	refuser int     // the row that refused, -1 for none
}

func (f *reference[S, E]) kind(s S) (fsm.Kind, bool) {
	for _, st := range f.spec.States {
		if st.Name == s {
			return st.Kind, true
		}
	}
	return 0, false
}

func (f *reference[S, E]) resting(s S) bool { k, _ := f.kind(s); return k != fsm.Transitional }

func (f *reference[S, E]) declared(states ...S) bool {
	return !slices.ContainsFunc(states, func(s S) bool { _, ok := f.kind(s); return !ok })
}

func (f *reference[S, E]) leaves(r *fsm.Row[S, E], s S) bool {
	if !r.Any {
		return slices.Contains(r.From, s)
	}
	k, _ := f.kind(s)
	target := r.Then == fsm.ThenMove && r.To == s
	return k != fsm.Final && k != fsm.Absent && !target && !slices.Contains(r.Except, s)
}

// mayFire reports whether the row is for this actor.
func (f *reference[S, E]) mayFire(r *fsm.Row[S, E], a fsm.Actor) bool {
	timed := func(r fsm.Row[S, E]) bool { return r.Timeout > 0 }
	switch {
	case timed(*r) && a == fsm.Sweeper:
		return true
	case timed(*r) || len(r.Actors) > 0:
		return slices.Contains(r.Actors, a)
	}
	return slices.Contains(f.spec.Actors, a) || a == fsm.Sweeper && slices.ContainsFunc(f.spec.Rows, timed)
}

// fits reports whether an object with this origin may take the row.
func (f *reference[S, E]) fits(r *fsm.Row[S, E], at fsm.Status[S]) bool {
	if len(r.Origin) > 0 && !slices.Contains(r.Origin, at.Origin) {
		return false
	}
	return r.Then != fsm.ThenReturn || f.resting(at.Origin)
}

func (f *reference[S, E]) after(r *fsm.Row[S, E], at fsm.Status[S]) fsm.Status[S] {
	to := r.To
	switch r.Then {
	case fsm.ThenIgnore:
		return at
	case fsm.ThenReturn:
		to = at.Origin
	}
	switch {
	case f.resting(to):
		return fsm.Status[S]{State: to, Origin: to}
	case f.resting(at.State):
		return fsm.Status[S]{State: to, Origin: at.State}
	default:
		return fsm.Status[S]{State: to, Origin: at.Origin}
	}
}

func (f *reference[S, E]) check(r *fsm.Row[S, E]) error {
	if r.Guard == nil {
		return nil
	}
	return f.guard(r.Guard.Name())
}

func refuse[S comparable](err error) answer[S] { return answer[S]{Err: err, refuser: -1} }

func (f *reference[S, E]) next(at fsm.Status[S], e E, a fsm.Actor, force bool) answer[S] {
	if !f.declared(at.State, at.Origin) {
		return refuse[S](fsm.ErrUnknownState)
	}
	var rows, mine []int
	known := false
	for i := range f.spec.Rows {
		r := &f.spec.Rows[i]
		known = known || r.Event == e
		if r.Event == e && f.leaves(r, at.State) {
			rows = append(rows, i)
			if f.mayFire(r, a) {
				mine = append(mine, i)
			}
		}
	}
	switch {
	case !known:
		return refuse[S](fsm.ErrUnknownEvent)
	case len(rows) == 0:
		return refuse[S](fsm.ErrNotAllowed)
	case len(mine) == 0:
		return refuse[S](fsm.ErrWrongActor)
	}
	refused := refuse[S](fsm.ErrNotAllowed) // because of the origin
	for _, i := range mine {
		if f.try(i, at, force, &refused) {
			return f.step(i, at)
		}
	}
	return refused
}

func (f *reference[S, E]) step(i int, at fsm.Status[S]) answer[S] {
	r := &f.spec.Rows[i]
	return answer[S]{Step: fsm.Step[S]{Status: f.after(r, at), Row: i, Ignored: r.Then == fsm.ThenIgnore}, refuser: -1}
}

// try reports whether a row of the actor permits the request, and records the reason
// if not. The refusal of a guard comes before a lack of force, and that before the
// origin.
func (f *reference[S, E]) try(i int, at fsm.Status[S], force bool, refused *answer[S]) bool {
	r := &f.spec.Rows[i]
	if !f.fits(r, at) {
		return false
	}
	if r.Forced && !force {
		if refused.Err != fsm.ErrGuard && refused.Err != fsm.ErrForcedOnly {
			refused.Err, refused.refuser = fsm.ErrForcedOnly, i
		}
		return false
	}
	reason := f.check(r)
	if reason == nil {
		return true
	}
	if refused.Err != fsm.ErrGuard {
		refused.Err, refused.refuser = fsm.ErrGuard, i
	}
	refused.reasons = append(refused.reasons, reason)
	return false
}

func (f *reference[S, E]) nextTo(at fsm.Status[S], to S, a fsm.Actor) answer[S] {
	if !f.declared(at.State, at.Origin, to) {
		return refuse[S](fsm.ErrUnknownState)
	}
	refused := refuse[S](fsm.ErrNotAllowed)
	for i := range f.spec.Rows {
		r := &f.spec.Rows[i]
		if !f.leaves(r, at.State) || r.Then == fsm.ThenIgnore || !f.fits(r, at) || f.after(r, at).State != to {
			continue
		}
		if !f.mayFire(r, a) {
			if refused.Err == fsm.ErrNotAllowed {
				refused.Err = fsm.ErrWrongActor
			}
			continue
		}
		if f.try(i, at, false, &refused) {
			return f.step(i, at)
		}
	}
	return refused
}

func (f *reference[S, E]) permitted(at fsm.Status[S], a fsm.Actor) (rows []int) {
	if !f.declared(at.State, at.Origin) {
		return nil
	}
	for i := range f.spec.Rows {
		r := &f.spec.Rows[i]
		if f.leaves(r, at.State) && f.mayFire(r, a) && f.fits(r, at) && !r.Forced {
			rows = append(rows, i)
		}
	}
	return rows
}
