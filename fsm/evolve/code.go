package evolve

import (
	"fmt"
	"strings"
)

// Code returns the lifecycle.Version of the old table in Go, for the Config of a binary
// that has the new one. An old state that has no new name is a comment: a record in such a
// state is refused until the code names one.
func (e *Report) Code() string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Records of the old %s.\nlifecycle.Version{\n", e.Old)
	b.WriteString("\tName: \"\", // Config.Version of the old binaries\n\tStates: map[string]string{\n")
	for _, s := range e.States {
		if s.New != "" {
			fmt.Fprintf(&b, "\t\t%q: %q,\n", s.Old, s.New)
		} else {
			fmt.Fprintf(&b, "\t\t// %q is no state of the new table: map it, or no object may be in it\n", s.Old)
		}
	}
	b.WriteString("\t},\n\t// Upgrade and Downgrade, if the payload differs too.\n}")
	return b.String()
}

// StateName is an old state and its name in the new table.
type StateName struct {
	Old string `json:"old"`
	New string `json:"new,omitempty"` // empty: the new table does not have it
}

// stateNames lists every old state.
func (p *pair) stateNames() (list []StateName) {
	for number, i := range p.states.in[oldVersion] {
		if i < 0 {
			continue
		}
		s := StateName{Old: p.states.name(oldVersion, number)}
		if p.states.in[newVersion][number] >= 0 {
			s.New = p.states.name(newVersion, number)
		}
		list = append(list, s)
	}
	return list
}
