package fsmtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Matrix compares a file with everything that a machine answers: a line for each
// status and event, with where it leads by whom, under which guards and by force,
// and a line for the events that nobody can fire there. An actor who is not named
// is the wrong one. The file is short enough to be read, and whatever changes the
// behaviour of the table is seen in it.
func Matrix[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], file string) {
	t.Helper()
	golden(t, file, matrix(m.Table()))
}

// MatrixFunc asks a machine everything, in every status that objects get into:
// every event by every declared actor. It fails t where the machine does not what
// the function says: the state to which the request leads, or the sentinel of its
// refusal. Guards look at the payload.
func MatrixFunc[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], payload *T, want func(at fsm.Status[S], e E, actor fsm.Actor) (to S, refusal error)) {
	t.Helper()
	for at := range statuses(m.Table()) {
		from := fsm.Status[S]{State: m.StateAt(at[0]), Origin: m.StateAt(at[1])}
		for e := range m.Events() {
			for _, actor := range m.Table().Actors {
				to, refusal := want(from, e, actor)
				step, err := m.Next(context.Background(), from, e, actor, payload)
				name := fmt.Sprintf("%s: %s: %v by %s", m.Name(), statusName(m.Table(), at), e, actor)
				switch {
				case refusal == nil && err != nil:
					t.Errorf("%s: is refused instead of leading to %v: %v", name, to, err)
				case refusal == nil && step.State != to:
					t.Errorf("%s: leads to %v instead of %v", name, step.State, to)
				case refusal != nil && err == nil:
					t.Errorf("%s: leads to %v and should be refused: %v", name, step.State, refusal)
				case refusal != nil && !errors.Is(err, refusal):
					t.Errorf("%s: is refused for another reason than %v: %v", name, refusal, err)
				}
			}
		}
	}
}

// matrix is the file of [Matrix].
func matrix(t *fsm.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s begins in %s\n", t.Name, t.States[t.Initial].Name)
	for at := range statuses(t) {
		fmt.Fprintf(&b, "\n%s is %s\n", statusName(t, at), t.States[at[0]].Kind)
		var refused []string
		for e, name := range t.Events {
			answers, anybody := cell(t, at, e)
			if !anybody {
				refused = append(refused, name)
				continue
			}
			fmt.Fprintf(&b, "  %s: %s\n", name, answers)
		}
		if len(refused) > 0 {
			fmt.Fprintf(&b, "  refused: %s\n", strings.Join(refused, ", "))
		}
	}
	return b.String()
}

// cell tells what an event does in a status, the same for several actors once, and
// whether anybody can fire it at all.
func cell(t *fsm.Table, at [2]int, event int) (text string, anybody bool) {
	var answers []string
	who := make(map[string][]string)
	for _, actor := range t.Actors {
		if _, err := t.Candidates(nil, at[0], at[1], event, actor, false); errors.Is(err, fsm.ErrWrongActor) {
			continue
		}
		free, possible := answer(t, at, event, actor, false)
		forced, byForce := answer(t, at, event, actor, true)
		anybody = anybody || byForce
		said := free
		switch {
		case !possible && byForce:
			said = "by force " + forced
		case free != forced:
			said = free + ", by force " + forced
		}
		if who[said] == nil {
			answers = append(answers, said)
		}
		who[said] = append(who[said], string(actor))
	}
	for i, said := range answers {
		answers[i] = strings.Join(who[said], ", ") + " " + said
	}
	return strings.Join(answers, "; "), anybody
}

// answer tells what one request comes to, and whether it can fire.
func answer(t *fsm.Table, at [2]int, event int, actor fsm.Actor, force bool) (string, bool) {
	rows, err := t.Candidates(nil, at[0], at[1], event, actor, force)
	if err != nil {
		return strings.TrimPrefix(reason(err).Error(), "fsm: "), false
	}
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteString(" else ")
		}
		r := &t.Rows[row]
		if s, o := t.After(at[0], at[1], row); r.Then == fsm.ThenIgnore {
			b.WriteString("ignored")
		} else {
			b.WriteString("-> " + statusName(t, [2]int{s, o}))
		}
		if r.Guard == "" {
			return b.String(), true
		}
		b.WriteString(" if " + r.Guard)
	}
	return b.String(), true
}

// statuses yields every status that objects of a machine get into, breadth first.
func statuses(t *fsm.Table) func(yield func([2]int) bool) {
	return func(yield func([2]int) bool) {
		start := [2]int{t.Initial, t.Initial}
		seen := map[[2]int]bool{start: true}
		for queue := [][2]int{start}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			if !yield(at) {
				return
			}
			for row := range t.Rows {
				r := &t.Rows[row]
				if !slices.Contains(r.From, at[0]) || !can(t, at, row) {
					continue
				}
				s, o := t.After(at[0], at[1], row)
				if to := [2]int{s, o}; !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
	}
}

// can reports whether some actor can take a row, guards willing.
func can(t *fsm.Table, at [2]int, row int) bool {
	for _, actor := range t.Actors {
		rows, err := t.Candidates(nil, at[0], at[1], t.Rows[row].Event, actor, true)
		if err == nil && slices.Contains(rows, row) {
			return true
		}
	}
	return false
}

func statusName(t *fsm.Table, at [2]int) string {
	return status{t.States[at[0]].Name, t.States[at[1]].Name}.String()
}
