package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
)

// ErrMiscount: children are counted otherwise than they are. A change was lost
// or counted twice; count them anew. A [Roster] bears both.
var ErrMiscount = errors.New("lifecycle: children are miscounted")

// Counts are how many children of a parent are in which state. The zero value
// counts nobody. [Aggregate.Enter], [Aggregate.Leave] and [Aggregate.Move]
// change it, each in the same time whatever the number of children; it holds one
// number for every state that has a child, and nothing of the children.
//
// As JSON it has the states by name, so that it may be part of a record's
// payload: the counts then change in the commit of the parent, and in that of the
// child where the parent goes along with every change of it, see [Config.Along].
// Then they are right at every moment, and every change of a child is one of the
// parent too: of so many at once one is committed, and the others try again. Where
// that is too many, a [Roster] counts in memory.
//
// It is not safe for concurrent use, and a copy shares its numbers with the
// original; see [Counts.Clone].
//
// Counts trust their caller: a change that is counted twice, or not, makes them
// wrong, and only some of that shows, as [ErrMiscount].
type Counts struct {
	states   map[string]int // by the name of the state; every number is > 0
	total    int            // = sum of states
	expected int            // >= 0
}

// Expect says how many children there will be at least, for the time in which
// they come one by one: until then [Aggregated.Total] is n. Zero expects nobody.
// A negative n is [ErrInvalid] and changes nothing.
func (c *Counts) Expect(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: %d children expected", ErrInvalid, n)
	}
	c.expected = n
	return nil
}

// Len returns how many children are counted.
func (c *Counts) Len() int { return c.total }

// Expected returns how many children are expected; zero if that was not said.
func (c *Counts) Expected() int { return c.expected }

// All yields the states that have children, by name and in order of names, and
// how many.
func (c *Counts) All() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, name := range slices.Sorted(maps.Keys(c.states)) {
			if !yield(name, c.states[name]) {
				return
			}
		}
	}
}

// Clone returns a copy that shares nothing with the original.
func (c *Counts) Clone() Counts {
	return Counts{states: maps.Clone(c.states), total: c.total, expected: c.expected}
}

func (c *Counts) add(state string, n int) {
	if c.states == nil {
		c.states = make(map[string]int)
	}
	c.states[state] += n
	if c.states[state] == 0 {
		delete(c.states, state)
	}
	c.total += n
}

type countsJSON struct {
	States   map[string]int `json:"states,omitempty"`
	Expected int            `json:"expected,omitempty"`
}

// MarshalJSON writes {"states":{"Running":3},"expected":5}. The same counts give
// the same bytes.
func (c Counts) MarshalJSON() ([]byte, error) {
	return json.Marshal(countsJSON{c.states, c.expected})
}

// UnmarshalJSON reads what MarshalJSON writes, in place of what was counted
// before. A count below one, a state without a name and a sum that no int holds
// are [ErrMiscount]; after any error nothing is changed.
func (c *Counts) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var in countsJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("lifecycle: counts: %w", err)
	}
	read := Counts{states: in.States, expected: in.Expected}
	for name, n := range in.States {
		if name == "" || n < 1 || n > math.MaxInt-read.total {
			return fmt.Errorf("%w: %d children in state %q of %d others", ErrMiscount, n, name, read.total)
		}
		read.total += n
	}
	if in.Expected < 0 {
		return fmt.Errorf("%w: %d children expected", ErrMiscount, in.Expected)
	}
	*c = read
	return nil
}
