package fsmtest

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// TourConfig refines [Tour]. The zero value and nil are the defaults.
type TourConfig struct {
	// Missed maps the indexes of rows that no object can take to reasons. Default:
	// none. Tour reports a row that it misses and a row of Missed that it takes.
	Missed map[int]string
}

// maxFaults is the number of faults after which a tour ends.
const maxFaults = 10

// Tour creates an object in every entry state of a table, and leads objects through
// every transition, see [tour.New]. In every status it makes once every request that the
// system has to refuse, see [tour.Negatives]. It reports to t a step that the system
// refuses or that leads to another state, and a request that the system accepts, refuses
// with another sentinel, or refuses after a move.
func Tour(t testing.TB, table *fsm.Table, d Driver, config *TourConfig) {
	t.Helper()
	config = cmp.Or(config, &TourConfig{})
	plan, err := tour.New(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	negatives, err := tour.Negatives(table)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, table: table, d: d, refused: make(map[status][]tour.Negative), taken: make(map[transition]bool)}
	for n := range negatives {
		at := status{n.State, n.Origin}
		r.refused[at] = append(r.refused[at], n)
	}
	r.missed(plan.Missed, config.Missed)
	for _, s := range table.Entries() {
		if s >= 0 && s < len(table.States) {
			name := table.States[s].Name
			r.sequence(0, status{name, name}, nil)
		}
	}
	for i, steps := range plan.Sequences {
		if r.faults >= maxFaults {
			t.Errorf("%s: %d faults: %d more sequences are left out", table.Name, r.faults, len(plan.Sequences)-i)
			break
		}
		r.sequence(i+1, status{steps[0].From, steps[0].Origin}, steps)
	}
	t.Logf("%s: %d of %d transitions in %d steps and %d sequences, %d refusals; the driver does not support %d requests",
		table.Name, len(r.taken), plan.Transitions, r.steps, len(plan.Sequences), r.refusals, r.unsupported)
}

// run is the state of one tour.
type run struct {
	t       testing.TB
	table   *fsm.Table
	d       Driver
	refused map[status][]tour.Negative // requests that are still to make
	taken   map[transition]bool
	faults  int
	initial string // the state in which the present sequence starts

	steps, refusals, unsupported int
}

// status is a state and an origin by name.
type status struct{ state, origin string }

// transition is a row in a status.
type transition struct {
	at  status
	row int
}

func (r *run) fault(format string, args ...any) {
	r.t.Helper()
	r.faults++
	r.t.Errorf("%s: "+format, append([]any{r.table.Name}, args...)...)
}

// missed compares the rows that the tour misses with the exceptions.
func (r *run) missed(missed []tour.Missed, excepted map[int]string) {
	r.t.Helper()
	for _, m := range missed {
		if why := excepted[m.Row]; why == "" {
			r.fault("the tour misses %s", m)
		} else {
			r.t.Logf("%s: the tour misses %s: %s", r.table.Name, m, why)
		}
	}
	for row := range excepted {
		if row < 0 || row >= len(r.table.Rows) {
			r.fault("exception for row %d: the table has no such row", row)
		} else if !slices.ContainsFunc(missed, func(m tour.Missed) bool { return m.Row == row }) {
			r.fault("exception for row %d: the tour takes it", row)
		}
	}
}

// sequence leads a new object along the steps.
func (r *run) sequence(number int, at status, steps []tour.Step) {
	r.t.Helper()
	r.initial = at.state
	if state := r.d.Reset(r.t, r.initial); state != at.state {
		r.fault("a new object is in %s instead of %s", state, at.state)
		return
	}
	for i := range steps {
		if !r.refuse(at, steps[:i]) {
			return
		}
		s := &steps[i]
		state, refusal := r.d.Apply(r.t, Request(s.Request))
		if errors.Is(refusal, ErrUnsupported) {
			r.unsupported++
		}
		if refusal != nil || state != s.To {
			r.fault("sequence %d, step %d: %s: is in %s, refusal %v; %d more steps are left out",
				number, i+1, s, state, refusal, len(steps)-i-1)
			return
		}
		r.steps++
		r.taken[transition{at, s.Row}] = true
		at = status{s.To, s.ToOrigin}
	}
	r.refuse(at, steps)
}

// refuse makes once every request that the system has to refuse in a status. The
// steps lead to that status; refuse makes them again after a request that moved the
// object. It returns false if that fails.
func (r *run) refuse(at status, steps []tour.Step) bool {
	r.t.Helper()
	list := r.refused[at]
	delete(r.refused, at)
	for i := range list {
		if r.faults >= maxFaults {
			return true
		}
		n := &list[i]
		state, refusal := r.d.Apply(r.t, Request(n.Request))
		if errors.Is(refusal, ErrUnsupported) {
			r.unsupported++
			continue
		}
		r.refusals++
		switch {
		case refusal == nil:
			r.fault("%s; the system accepts it and leads to %s", n, state)
		case state != at.state:
			r.fault("%s; the system refuses it, and the object is in %s", n, state)
		case sentinel(refusal) != nil && sentinel(refusal) != n.Err:
			r.fault("%s; the system refuses it for another reason: %v", n, refusal)
			continue
		default:
			continue
		}
		if !r.again(steps) {
			return false
		}
	}
	return true
}

// sentinel returns the sentinel of package fsm that a refusal matches, and nil for an
// error of the system's own. ErrGuard comes first, because the reason of a guard may
// match another one too.
func sentinel(refusal error) error {
	for _, s := range []error{fsm.ErrGuard, fsm.ErrForcedOnly, fsm.ErrWrongActor, fsm.ErrNotAllowed} {
		if errors.Is(refusal, s) {
			return s
		}
	}
	return nil
}

// again leads a new object along the steps, without other requests.
func (r *run) again(steps []tour.Step) bool {
	r.t.Helper()
	r.d.Reset(r.t, r.initial)
	for i := range steps {
		if state, refusal := r.d.Apply(r.t, Request(steps[i].Request)); refusal != nil || state != steps[i].To {
			r.fault("%s: again: is in %s, refusal %v", &steps[i], state, refusal)
			return false
		}
	}
	return true
}
