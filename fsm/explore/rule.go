package explore

// rule is a part of a system that makes steps: a function of an actor, the loss or the
// duplication in a channel, or a fault. The strike of a fault is a rule too.
type rule struct {
	kind    StepKind
	label   string // in errors, and in Verdict.Unused
	actor   int    // that acts or is struck, or none
	channel int    // of the message, or none

	// Of an actor.
	at   int // in System.functions
	call func(local, message any, emit func(result))
	fair func(label string) bool // whether the steps with a label are fair; nil: none is

	// Of a loss, a duplication or a fault.
	budget  Budget
	name    string  // of a fault
	empties []int   // the channels that a fault empties
	strikes []*rule // the strikes of a fault
}

// none stands for no actor and no channel.
const none = -1

// result is one call that a function of an actor makes.
type result struct {
	label   string
	fault   bool
	message any // nil: the step has none
	next    any // local state
}

// function adds a function of an actor.
func (s *System) function(r *rule) Action {
	r.at = len(s.functions)
	s.functions = append(s.functions, r)
	return Action{r}
}

func untyped[T any](values []T) (list []any) {
	for _, v := range values {
		list = append(list, v)
	}
	return list
}
