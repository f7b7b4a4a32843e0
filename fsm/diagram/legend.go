package diagram

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// legend returns the meaning of the looks that the states and arrows of a picture have.
// It is empty if all look alike.
func (m model) legend(final string, arrows []arrow) string {
	var list []string
	add := func(look string, used bool) {
		if used {
			list = append(list, look)
		}
	}
	kind := func(k fsm.Kind) bool {
		return slices.ContainsFunc(m.t.States, func(s fsm.TableState) bool { return s.Kind == k })
	}
	row := func(pass func(*fsm.TableRow) bool) bool {
		return slices.ContainsFunc(arrows, func(a arrow) bool { return pass(&m.t.Rows[a.rows[0]]) })
	}
	add("dashed: transitional", kind(fsm.Transitional))
	add("red: failed", kind(fsm.Failed))
	add(final+": final", kind(fsm.Final))
	add("grey: absent", kind(fsm.Absent))
	add("dotted: undeclared", len(m.t.Undeclared) > 0)
	add("yellow: current state", m.current() >= 0)
	add("dashed arrow: return", row(func(r *fsm.TableRow) bool { return r.Then == fsm.ThenReturn }))
	add("red arrow: forced", row(func(r *fsm.TableRow) bool { return r.Forced }))
	return strings.Join(list, ", ")
}
