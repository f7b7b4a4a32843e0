package explore

import (
	"fmt"
	"slices"
)

// unused names the parts of which nothing came in any step, given which faults
// did happen.
func (t *tables) unused(struck []bool) []string {
	if t.sys.once { // its one part was forgotten
		return nil
	}
	var list []string
	for i, h := range t.sys.handlers {
		if h.kind != StepFault && !t.memo[i].allows() {
			list = append(list, t.partOf(h))
		}
	}
	some := func(lists [][]taken) bool {
		return slices.ContainsFunc(lists, func(l []taken) bool { return len(l) > 0 })
	}
	for i, c := range t.channels {
		part := partName("channel", c.part.name)
		if t.sys.allows(c.part.is.Lose) && !some(t.channels[i].drops) {
			list = append(list, "loss in "+part)
		}
		if t.sys.allows(c.part.is.Duplicate) && !some(t.channels[i].copies) {
			list = append(list, "duplication in "+part)
		}
	}
	for i, f := range t.sys.faults {
		if t.sys.budgets[f.budget].most > 0 && !struck[i] {
			list = append(list, partName("fault", f.name))
		}
	}
	return list
}

func (s *System) allows(b Budget) bool { return b.sys != nil && s.budgets[b.at].most > 0 }

// allows reports whether the handler ever allowed a step.
func (m *memo) allows() bool {
	some := func(outs []allowed) bool { return len(outs) > 0 }
	return slices.ContainsFunc(m.by, some) ||
		slices.ContainsFunc(m.byMessage, func(row [][]allowed) bool { return slices.ContainsFunc(row, some) })
}

// actionOf names an action among those of its actor.
func (s *System) actionOf(h *handler) string {
	n := 0
	for _, other := range s.handlers {
		if other.kind == StepAct && other.actor == h.actor {
			n++
		}
		if other == h {
			break
		}
	}
	return fmt.Sprintf("%s in action %d", partName("actor", s.actors[h.actor].name), n)
}
