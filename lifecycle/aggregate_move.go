package lifecycle

import (
	"fmt"
	"math"

	"github.com/interlock-go/interlock/fsm"
)

// Enter counts a child that is new in state s. A state that is absent or
// uncounted changes nothing.
//
// Errors of Enter, [Aggregate.Leave] and [Aggregate.Move], with nothing changed:
// [ErrMiscount] if no child is counted in the state that one has left, or more
// than an int holds, and [fsm.ErrUnknownState] for a state that the rule does not
// know.
func (a *Aggregate[S, C]) Enter(c *Counts, s S) error {
	to, err := a.stateName(s)
	if err != nil {
		return err
	}
	return a.move(c, "", to)
}

// Leave counts out a child that was in state s and is gone.
func (a *Aggregate[S, C]) Leave(c *Counts, s S) error {
	from, err := a.stateName(s)
	if err != nil {
		return err
	}
	return a.move(c, from, "")
}

// Move counts a child that went from one state to another. From an absent or
// uncounted state it enters, to one it leaves.
func (a *Aggregate[S, C]) Move(c *Counts, from, to S) error {
	f, err := a.stateName(from)
	if err != nil {
		return err
	}
	t, err := a.stateName(to)
	if err != nil {
		return err
	}
	return a.move(c, f, t)
}

func (a *Aggregate[S, C]) stateName(s S) (string, error) {
	name, ok := a.names[s]
	if !ok {
		return "", &fsm.TransitionError{Machine: a.child(), From: fmt.Sprint(s), Row: -1, Err: fsm.ErrUnknownState}
	}
	return name, nil
}

// child is what errors call the children's machine.
func (a *Aggregate[S, C]) child() string {
	if a.machine != "" {
		return a.machine
	}
	return a.name
}

// move is Move by names that the rule knows; the empty name is no child.
func (a *Aggregate[S, C]) move(c *Counts, from, to string) error {
	enters, leaves := a.class[to] != uncounted, a.class[from] != uncounted
	switch {
	case leaves && c.states[from] == 0:
		return fmt.Errorf("%w: aggregate %s: a child left %s, and none is counted there", ErrMiscount, a.name, from)
	case enters && !leaves && c.total == math.MaxInt:
		return fmt.Errorf("%w: aggregate %s: more children than an int holds", ErrMiscount, a.name)
	}
	if leaves {
		c.add(from, -1)
	}
	if enters {
		c.add(to, 1)
	}
	return nil
}
