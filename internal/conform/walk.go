package conform

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Walk drives instances of the machine from the initial state through every
// status that they can get into. In each, it fires every event by every actor
// and by one who is not declared, with and without force, and fails t
//
//   - if a row that leads from there does not fire, or leads elsewhere,
//   - if anything else is accepted, refused with the wrong sentinel, or moves
//     the object,
//   - if some row never fired, or some state was never entered.
//
// What must happen is read off the plain rows of the table. Guards get payload,
// which must satisfy all of them.
func Walk[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], payload *T) {
	t.Helper()
	w := walk[S, E, T]{t: t, m: m, payload: payload, fired: make([]bool, len(m.Table().Rows))}
	seen := map[fsm.Status[S]]bool{m.Start(): true}
	for queue := []fsm.Status[S]{m.Start()}; len(queue) > 0; queue = queue[1:] {
		for _, to := range w.visit(queue[0]) {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	for i, fired := range w.fired {
		if !fired {
			t.Errorf("%s: row %d never fired", m.Name(), i)
		}
	}
	for s := range m.States() {
		entered := false
		for at := range seen {
			entered = entered || at.State == s
		}
		if !entered {
			t.Errorf("%s: state %v was never entered", m.Name(), s)
		}
	}
}

type walk[S, E comparable, T any] struct {
	t       testing.TB
	m       *fsm.Machine[S, E, T]
	payload *T
	fired   []bool
}

// visit tries everything in one status and returns where the rows lead.
func (w *walk[S, E, T]) visit(at fsm.Status[S]) (next []fsm.Status[S]) {
	w.t.Helper()
	actors := append(slices.Clone(w.m.Table().Actors), "nobody in particular")
	for e := range w.m.Events() {
		for _, a := range actors {
			for _, force := range []bool{false, true} {
				if to, moved := w.try(at, e, a, force); moved {
					next = append(next, to)
				}
			}
		}
	}
	return next
}

// try fires one event at a new instance and compares what happens with the row.
func (w *walk[S, E, T]) try(at fsm.Status[S], e E, a fsm.Actor, force bool) (to fsm.Status[S], moved bool) {
	w.t.Helper()
	in, err := w.m.InstanceAt(at)
	if err != nil {
		w.t.Fatal(err)
	}
	fire := in.Fire
	if force {
		fire = in.FireForced
	}
	step, err := fire(context.Background(), e, a, w.payload)
	want, row, refusal := w.predict(at, e, a, force)
	switch {
	case refusal != nil:
		if !errors.Is(err, refusal) || in.Status() != at {
			w.t.Errorf("%s in %v: %v by %s: got %v and error %v, want the refusal %v",
				w.m.Name(), at, e, a, in.Status(), err, refusal)
		}
		return at, false
	case err != nil || step.Row != row || step.Status != want || in.Status() != want:
		w.t.Errorf("%s in %v: %v by %s: got row %d, %v and error %v, want row %d to %v",
			w.m.Name(), at, e, a, step.Row, in.Status(), err, row, want)
		return at, false
	}
	w.fired[row] = true
	return want, true
}

// predict says what must happen, from the rows as they stand in the table.
func (w *walk[S, E, T]) predict(at fsm.Status[S], e E, a fsm.Actor, force bool) (fsm.Status[S], int, error) {
	t := w.m.Table()
	state, origin, event := w.m.StateIndex(at.State), w.m.StateIndex(at.Origin), w.m.EventIndex(e)
	actor, declared := t.ActorIndex(a)
	var others, mine, byForce bool // rows of the cell: for other actors, for this one, for this one by force
	for i := range t.Rows {
		r := &t.Rows[i]
		if !slices.Contains(r.From, state) || r.Event != event {
			continue
		}
		fits := len(r.Origin) == 0 || slices.Contains(r.Origin, origin)
		switch {
		case !declared || len(r.Actors) > 0 && !slices.Contains(r.Actors, actor):
			others = true
		case fits && (force || !r.Forced):
			return w.after(at, r), i, nil
		default:
			mine = true
			byForce = byForce || fits
		}
	}
	switch {
	case byForce:
		return at, -1, fsm.ErrForcedOnly
	case others && !mine:
		return at, -1, fsm.ErrWrongActor
	}
	return at, -1, fsm.ErrNotAllowed
}

// after is the status to which a row leads.
func (w *walk[S, E, T]) after(at fsm.Status[S], r *fsm.TableRow) fsm.Status[S] {
	switch r.Then {
	case fsm.ThenIgnore:
		return at
	case fsm.ThenReturn:
		return w.m.At(at.Origin)
	}
	to := w.m.StateAt(r.To)
	switch {
	case w.m.Kind(to).Resting():
		return w.m.At(to)
	case w.m.Kind(at.State).Resting():
		return fsm.Status[S]{State: to, Origin: at.State}
	}
	return fsm.Status[S]{State: to, Origin: at.Origin}
}
