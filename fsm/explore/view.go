package explore

import (
	"fmt"
	"strings"
)

// View is one state of a system. Checks pass it to [Actor.In] and [Channel.In]. It is
// valid during the call only.
type View struct {
	t     *tables
	state []uint32
}

// String lists local states, messages in flight and budgets.
func (v *View) String() string {
	var b strings.Builder
	for i, a := range v.t.sys.actors {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(a.name + " " + v.t.locals[i].text(v.state[i]))
	}
	for i, c := range v.t.sys.channels {
		b.WriteString("; " + c.name + " [" + strings.Join(v.t.texts(v.state, i), ", ") + "]")
	}
	for i, budget := range v.t.sys.budgets {
		fmt.Fprintf(&b, "; %s %d", budget.name, v.t.lay.left(v.state, Budget{v.t.sys, i}))
	}
	return b.String()
}

func (v *View) mustBeOf(s *System) {
	if v.t.sys != s {
		panic("explore: view of another system")
	}
}
