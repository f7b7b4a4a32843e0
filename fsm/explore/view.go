package explore

import (
	"fmt"
	"strings"
)

// View is one state of a system, as invariants see it: handed to
// [Actor.In], [Chan.In] and [Budget.Left]. It is valid during the call only.
type View struct {
	t   *tables
	ids []uint32 // by field of the layout
}

// String lists local states, messages in flight and budgets.
func (v *View) String() string {
	var b strings.Builder
	for i, a := range v.t.sys.actors {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(a.name + " " + v.t.locals[i].text(v.ids[i]))
	}
	for i, c := range v.t.sys.channels {
		b.WriteString("; " + c.name + " [")
		for j, m := range v.t.channels[i].lists[v.ids[v.t.lay.channel(i)]] {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.t.channels[i].messages.text(m))
		}
		b.WriteString("]")
	}
	for i, f := range v.t.sys.budgets {
		fmt.Fprintf(&b, "; %s %d", f.name, v.ids[v.t.lay.budget(i)])
	}
	return b.String()
}

func (v *View) mustBeOf(s *System) {
	if v.t.sys != s {
		panic("check: view of another system")
	}
}
