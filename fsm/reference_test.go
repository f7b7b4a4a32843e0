package fsm_test

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// naive is what a Spec means, read off its rows one by one: no indexes, no
// compilation, no short cuts. Every clever way of a Machine is held against it.
type naive[S, E comparable] struct {
	spec fsm.Spec[S, E]
	// agrees is the guard with this name, nil where it agrees.
	agrees func(guard string) error
}

// answer is what a request comes to: a step, or a sentinel.
type answer[S comparable] struct {
	Status  fsm.Status[S]
	Row     int
	Ignored bool
	Err     error // sentinel
	reasons []error
	culprit int // the row that refused, -1 none
}

func (n *naive[S, E]) kind(s S) (fsm.Kind, bool) {
	for _, st := range n.spec.States {
		if st.Name == s {
			return st.Kind, true
		}
	}
	return 0, false
}

func (n *naive[S, E]) declared(s S) bool { _, ok := n.kind(s); return ok }
func (n *naive[S, E]) resting(s S) bool  { k, _ := n.kind(s); return k != fsm.Transitional }

func (n *naive[S, E]) known(e E) bool {
	return slices.ContainsFunc(n.spec.Rows, func(r fsm.Row[S, E]) bool { return r.Event == e })
}

func (n *naive[S, E]) leaves(r *fsm.Row[S, E], s S) bool {
	if !r.Any {
		return slices.Contains(r.From, s)
	}
	k, _ := n.kind(s)
	target := r.Then == fsm.ThenMove && r.To == s
	return k != fsm.Final && k != fsm.Absent && !target && !slices.Contains(r.Except, s)
}

// mayFire says whether the row is this actor's.
func (n *naive[S, E]) mayFire(r *fsm.Row[S, E], a fsm.Actor) bool {
	if r.Timeout > 0 && a == fsm.Sweeper {
		return true
	}
	if len(r.Actors) > 0 || r.Timeout > 0 {
		return slices.Contains(r.Actors, a)
	}
	sweeps := slices.ContainsFunc(n.spec.Rows, func(r fsm.Row[S, E]) bool { return r.Timeout > 0 })
	return slices.Contains(n.spec.Actors, a) || sweeps && a == fsm.Sweeper
}

// fits says whether an object that came from there may take the row.
func (n *naive[S, E]) fits(r *fsm.Row[S, E], at fsm.Status[S]) bool {
	if len(r.Origin) > 0 && !slices.Contains(r.Origin, at.Origin) {
		return false
	}
	return r.Then != fsm.ThenReturn || n.resting(at.Origin)
}

func (n *naive[S, E]) after(r *fsm.Row[S, E], at fsm.Status[S]) fsm.Status[S] {
	to := r.To
	switch r.Then {
	case fsm.ThenIgnore:
		return at
	case fsm.ThenReturn:
		to = at.Origin
	}
	switch {
	case n.resting(to):
		return fsm.Status[S]{State: to, Origin: to}
	case n.resting(at.State):
		return fsm.Status[S]{State: to, Origin: at.State}
	default:
		return fsm.Status[S]{State: to, Origin: at.Origin}
	}
}

func (n *naive[S, E]) ask(r *fsm.Row[S, E]) error {
	if r.Guard == nil {
		return nil
	}
	return n.agrees(r.Guard.Name())
}

func refuse[S comparable](err error) answer[S] { return answer[S]{Err: err, culprit: -1} }

func (n *naive[S, E]) next(at fsm.Status[S], e E, a fsm.Actor, force bool) answer[S] {
	if !n.declared(at.State) || !n.declared(at.Origin) {
		return refuse[S](fsm.ErrUnknownState)
	}
	if !n.known(e) {
		return refuse[S](fsm.ErrUnknownEvent)
	}
	var rows, mine []int
	for i := range n.spec.Rows {
		r := &n.spec.Rows[i]
		if r.Event == e && n.leaves(r, at.State) {
			rows = append(rows, i)
			if n.mayFire(r, a) {
				mine = append(mine, i)
			}
		}
	}
	if len(rows) == 0 {
		return refuse[S](fsm.ErrNotAllowed)
	}
	if len(mine) == 0 {
		return refuse[S](fsm.ErrWrongActor)
	}
	refused := refuse[S](fsm.ErrNotAllowed) // by the origin
	for _, i := range mine {
		if !n.try(i, at, force, &refused) {
			continue
		}
		r := &n.spec.Rows[i]
		return answer[S]{Status: n.after(r, at), Row: i, Ignored: r.Then == fsm.ThenIgnore, culprit: -1}
	}
	return refused
}

// try says whether the row of an actor agrees, and notes why not: a guard's
// refusal tells more than the want of force, and that more than the origin.
func (n *naive[S, E]) try(i int, at fsm.Status[S], force bool, refused *answer[S]) bool {
	r := &n.spec.Rows[i]
	if !n.fits(r, at) {
		return false
	}
	if r.Forced && !force {
		if refused.Err != fsm.ErrGuard && refused.Err != fsm.ErrForcedOnly {
			refused.Err, refused.culprit = fsm.ErrForcedOnly, i
		}
		return false
	}
	reason := n.ask(r)
	if reason == nil {
		return true
	}
	if refused.Err != fsm.ErrGuard {
		refused.Err, refused.culprit = fsm.ErrGuard, i
	}
	refused.reasons = append(refused.reasons, reason)
	return false
}

func (n *naive[S, E]) nextTo(at fsm.Status[S], to S, a fsm.Actor) answer[S] {
	if !n.declared(at.State) || !n.declared(at.Origin) || !n.declared(to) {
		return refuse[S](fsm.ErrUnknownState)
	}
	refused := refuse[S](fsm.ErrNotAllowed)
	for i := range n.spec.Rows {
		r := &n.spec.Rows[i]
		if !n.leaves(r, at.State) || r.Then == fsm.ThenIgnore || !n.fits(r, at) || n.after(r, at).State != to {
			continue
		}
		if !n.mayFire(r, a) {
			if refused.Err == fsm.ErrNotAllowed {
				refused.Err = fsm.ErrWrongActor
			}
			continue
		}
		if n.try(i, at, false, &refused) {
			return answer[S]{Status: n.after(r, at), Row: i, culprit: -1}
		}
	}
	return refused
}

func (n *naive[S, E]) permitted(at fsm.Status[S], a fsm.Actor) (rows []int) {
	if !n.declared(at.State) || !n.declared(at.Origin) {
		return nil
	}
	for i := range n.spec.Rows {
		r := &n.spec.Rows[i]
		if n.leaves(r, at.State) && n.mayFire(r, a) && n.fits(r, at) && !r.Forced {
			rows = append(rows, i)
		}
	}
	return rows
}

func (a answer[S]) String() string {
	if a.Err != nil {
		return fmt.Sprintf("%v, row %d", a.Err, a.culprit)
	}
	return fmt.Sprintf("%v by row %d, ignored %v", a.Status, a.Row, a.Ignored)
}
