package storetest

import (
	"fmt"
	"strings"
)

// step is one call of a random sequence, as numbers that mean something only
// against the model's state: a sequence from which steps are taken away is still
// a sequence, so that a failing one can be made short.
type step struct {
	kind     kind
	objects  []int // distinct
	states   []int // by object; for a query those to select
	removes  []bool
	lie      lie // about the last object
	required int // object of a precondition, -1 none
	allowed  []int
	within   bool
	messages int
	after    int // of a query: an object's id, -1 none
	limit    int
}

type kind uint8

const (
	commitStep kind = iota
	getStep
	listStep
	historyStep
	messagesStep
	discardStep
	againStep
)

var kindNames = [...]string{"commit", "get", "list", "history", "messages", "discard", "again"}

type lie uint8

const (
	honest   lie = iota
	outdated     // expects a revision from before
	mistaken     // expects another state
)

// The world of the random sequences.
const (
	modelMachines = 2
	modelObjects  = 4 // the first half of one machine
	modelStates   = 3
)

// source gives numbers from 0 to n-1.
type source func(n int) int

// draw makes up a step.
func draw(n source, most int) step {
	s := step{required: -1, after: -1, limit: 1 + n(modelObjects+1)}
	switch k := n(20); {
	case k < 11:
		s.kind = commitStep
	case k < 13:
		s.kind = getStep
	case k < 16:
		s.kind = listStep
	default:
		s.kind = kind(k - 13) // history, messages, discard, again
	}
	count := 1
	if s.kind == commitStep && n(3) == 0 {
		count = 1 + n(min(most, 3))
	}
	for o := n(modelObjects); len(s.objects) < count; o = (o + 1) % modelObjects {
		s.objects = append(s.objects, o)
		s.states = append(s.states, n(modelStates))
		s.removes = append(s.removes, n(4) == 0)
	}
	if n(5) == 0 {
		s.lie = lie(1 + n(2))
	}
	if len(s.objects) < most && n(4) == 0 {
		s.required = n(modelObjects)
		s.allowed = []int{n(modelStates + 1), n(modelStates + 1)}
	}
	s.within, s.messages = n(3) == 0, max(0, n(4)-1)
	if n(2) == 0 {
		s.after = n(modelObjects)
	}
	return s
}

// String tells the step as a line for people.
func (s step) String() string {
	var b strings.Builder
	b.WriteString(kindNames[s.kind])
	switch s.kind {
	case commitStep:
		for i, o := range s.objects {
			verb := "to"
			if s.removes[i] {
				verb = "removed if it exists, else to"
			}
			fmt.Fprintf(&b, " %s %s %s;", modelName(o), verb, stateName(s.states[i]))
		}
		switch s.lie {
		case outdated:
			b.WriteString(" the last at an outdated revision;")
		case mistaken:
			b.WriteString(" the last from a wrong state;")
		case honest:
		}
		if s.required >= 0 {
			fmt.Fprintf(&b, " requires %s %s or %s;", modelName(s.required), stateName(s.allowed[0]), stateName(s.allowed[1]))
		}
		fmt.Fprintf(&b, " %d messages", s.messages)
		if s.within {
			b.WriteString("; with a deadline")
		}
	case listStep:
		fmt.Fprintf(&b, " of machine %d in %s or anywhere, after object %d, at most %d", s.objects[0]%modelMachines, stateName(s.states[0]), s.after, s.limit)
	case getStep, historyStep:
		fmt.Fprintf(&b, " %s", modelName(s.objects[0]))
	case messagesStep, discardStep, againStep:
		fmt.Fprintf(&b, " %d", s.limit)
	}
	return b.String()
}

func modelName(o int) string { return fmt.Sprintf("m%d/%c", o%modelMachines, 'a'+o/modelMachines) }

// stateName is the name of a state, the last of which is absent.
func stateName(i int) string { return [modelStates + 1]string{idle, moving, broken, ""}[i] }
