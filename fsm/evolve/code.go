package evolve

import (
	"fmt"
	"slices"
	"strings"
)

// Code returns the lifecycle.Version of the old table in Go, for the Config of a binary
// that has the new one. Names that Diff only proposes, and old states that have no new
// name, are comments: a record in such a state is refused until the code names one.
func (e *Report) Code() string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Records of the old %s.\nlifecycle.Version{\n", e.Old)
	b.WriteString("\tName: \"\", // Config.Version of the old binaries\n\tStates: map[string]string{\n")
	for _, s := range e.States {
		switch {
		case s.New != "" && s.Proposed:
			fmt.Fprintf(&b, "\t\t// %q: %q, // a proposal: confirm it with -map %s=%s\n", s.Old, s.New, s.Old, s.New)
		case s.New != "":
			fmt.Fprintf(&b, "\t\t%q: %q,\n", s.Old, s.New)
		default:
			fmt.Fprintf(&b, "\t\t// %q is no state of the new table: no object may be in it\n", s.Old)
		}
	}
	b.WriteString("\t},\n\t// Upgrade and Downgrade, if the payload differs too.\n}")
	return b.String()
}

// StateName is an old state and its name in the new table.
type StateName struct {
	Old      string `json:"old"`
	New      string `json:"new,omitempty"`      // empty: the new table does not have it
	Proposed bool   `json:"proposed,omitempty"` // the names differ, and no Config maps them
}

// stateNames lists every old state. For a state that is gone it proposes a new one: the
// only one of the same kind that the same events leave, if it resembles no other that is
// gone. Nothing but the list depends on proposals.
func (p *pair) stateNames() []StateName {
	var list []StateName
	shape := func(version, state int) string {
		v := &p.versions[version]
		var events []int
		for _, a := range v.from[state] {
			events = append(events, a.event)
		}
		slices.Sort(events)
		return fmt.Sprint(v.kind[state], slices.Compact(events))
	}
	shapes := [2]map[string][]int{{}, {}} // numbers of states that only one version has
	for number := range p.states.in[oldVersion] {
		for version, other := range []int{newVersion, oldVersion} {
			if p.states.in[version][number] >= 0 && p.states.in[other][number] < 0 {
				s := shape(version, number)
				shapes[version][s] = append(shapes[version][s], number)
			}
		}
	}
	for number, i := range p.states.in[oldVersion] {
		if i < 0 {
			continue
		}
		s := StateName{Old: p.name(&p.states, oldVersion, number)}
		if p.states.in[newVersion][number] >= 0 {
			s.New = p.name(&p.states, newVersion, number)
		} else {
			alike := shape(oldVersion, number)
			if is := shapes[newVersion][alike]; len(is) == 1 && len(shapes[oldVersion][alike]) == 1 {
				s.New, s.Proposed = p.name(&p.states, newVersion, is[0]), true
			}
		}
		list = append(list, s)
	}
	return list
}
