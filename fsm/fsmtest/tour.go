package fsmtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// TourConfig refines [Tour]. The zero value and nil are the defaults.
type TourConfig struct {
	// EveryActor: every row is taken by every actor who may, not by one of them.
	EveryActor bool
	// NoNegatives: nothing is asked that has to be refused.
	NoNegatives bool
	// Stranger is an actor whom the table does not declare, who asks for
	// everything too. Default: nobody.
	Stranger fsm.Actor
	// Missed are the rows, by index, that no object can take, each with a reason.
	// Default: none, and a row that the tour misses is an error.
	Missed map[int]string
}

// maxFaults is how many faults a run tells before it gives up.
const maxFaults = 10

// Tour leads a system through every transition of a table, see [tour.New], and
// in every status that it comes to asks once for everything that has to be refused,
// see [tour.Negatives]. It fails t where the system refuses a step, ends in another
// state, accepts what has to be refused, refuses it for another reason, or moves
// nevertheless.
//
// A row that no object can take fails t unless it is excepted. What the driver
// cannot do is counted and told.
func Tour(t testing.TB, table *fsm.Table, d Driver, config *TourConfig) {
	t.Helper()
	if config == nil {
		config = &TourConfig{}
	}
	r := &run{t: t, table: table, d: d, refused: make(map[status][]tour.Negative)}
	plan, err := tour.New(table, &tour.Config{EveryActor: config.EveryActor})
	if err != nil {
		t.Fatal(err)
	}
	if !config.NoNegatives {
		all, err := tour.Negatives(table, &tour.NegativeConfig{Stranger: config.Stranger})
		if err != nil {
			t.Fatal(err)
		}
		for n := range all {
			at := status{n.State, n.Origin}
			r.refused[at] = append(r.refused[at], n)
		}
	}
	r.missed(plan.Missed, config.Missed)
	if table.Initial >= 0 && table.Initial < len(table.States) {
		name := table.States[table.Initial].Name
		r.sequence(0, status{name, name}, nil)
	}
	for i, steps := range plan.Sequences {
		if r.faults >= maxFaults {
			t.Errorf("%s: %d faults: %d more sequences are left out", table.Name, r.faults, len(plan.Sequences)-i)
			break
		}
		r.sequence(i+1, status{steps[0].From, steps[0].Origin}, steps)
	}
	t.Logf("%s: %d of %d transitions in %d steps and %d sequences, %d refusals; the driver could not make %d requests",
		table.Name, len(r.taken), plan.Transitions, r.steps, len(plan.Sequences), r.refusals, r.cannot)
}

// run is a tour on its way.
type run struct {
	t       testing.TB
	table   *fsm.Table
	d       Driver
	refused map[status][]tour.Negative // not asked yet
	taken   map[transition]bool
	faults  int

	steps, refusals, cannot int
}

// transition is a row in a status, by an actor.
type transition struct {
	at    status
	row   int
	actor fsm.Actor
}

func (r *run) fault(format string, args ...any) {
	r.t.Helper()
	r.faults++
	r.t.Errorf("%s: "+format, append([]any{r.table.Name}, args...)...)
}

// missed compares the rows that the tour misses with those that may be.
func (r *run) missed(missed []tour.Missed, excepted map[int]string) {
	r.t.Helper()
	for _, m := range missed {
		switch why, ok := excepted[m.Row]; {
		case !ok:
			r.fault("the tour misses %s", m)
		case why == "":
			r.fault("row %d may be missed: no reason is given", m.Row)
		default:
			r.t.Logf("%s: the tour misses %s: %s", r.table.Name, m, why)
		}
	}
	for row := range excepted {
		if !slices.ContainsFunc(missed, func(m tour.Missed) bool { return m.Row == row }) {
			r.fault("row %d may be missed, and is not", row)
		}
	}
}

// sequence leads a new object along the steps.
func (r *run) sequence(number int, at status, steps []tour.Step) {
	r.t.Helper()
	if !r.reset(at) {
		return
	}
	for i := range steps {
		if !r.refusedAt(at, steps[:i]) {
			return
		}
		s := &steps[i]
		to := status{s.To, s.ToOrigin}
		state, refusal := r.d.Apply(r.t, requestOf(s))
		switch {
		case errors.Is(refusal, ErrCannot):
			r.cannot++
			r.fault("sequence %d, step %d: %s: %v; %d more steps are left out", number, i+1, s, refusal, len(steps)-i-1)
			return
		case refusal != nil:
			r.fault("sequence %d, step %d: %s: is refused: %v; %d more steps are left out", number, i+1, s, refusal, len(steps)-i-1)
			return
		case state != to.state:
			r.fault("sequence %d, step %d: %s: ends in %s; %d more steps are left out", number, i+1, s, state, len(steps)-i-1)
			return
		}
		r.steps++
		if r.taken == nil {
			r.taken = make(map[transition]bool)
		}
		r.taken[transition{at, s.Row, s.Actor}] = true
		at = to
	}
	r.refusedAt(at, steps)
}

func (r *run) reset(at status) bool {
	r.t.Helper()
	if state := r.d.Reset(r.t); state != at.state {
		r.fault("a new object begins in %s instead of %s", state, at.state)
		return false
	}
	return true
}

// refusedAt asks once for everything that has to be refused in a status. The steps
// have led there: they are made again for an object that was moved. It returns
// false if that fails.
func (r *run) refusedAt(at status, steps []tour.Step) bool {
	r.t.Helper()
	list := r.refused[at]
	delete(r.refused, at)
	for i := range list {
		if r.faults >= maxFaults {
			return true
		}
		n := &list[i]
		state, refusal := r.d.Apply(r.t, refusedBy(n))
		if errors.Is(refusal, ErrCannot) {
			r.cannot++
			continue
		}
		r.refusals++
		why := ""
		switch {
		case refusal == nil:
			why = fmt.Sprintf("is accepted and leads to %s", state)
		case state != at.state:
			why = fmt.Sprintf("and yet the object is in %s", state)
		case reason(refusal) != nil && reason(refusal) != n.Err:
			r.fault("%s: for another reason: %v", n, refusal)
		}
		if why == "" {
			continue
		}
		r.fault("%s: %s", n, why)
		if !r.again(steps) {
			return false
		}
	}
	return true
}

// again leads a new object to where the steps lead, without a look around.
func (r *run) again(steps []tour.Step) bool {
	r.t.Helper()
	r.d.Reset(r.t)
	for i := range steps {
		if state, refusal := r.d.Apply(r.t, requestOf(&steps[i])); refusal != nil || state != steps[i].To {
			r.fault("%s: the second time: ends in %s: %v", &steps[i], state, refusal)
			return false
		}
	}
	return true
}
