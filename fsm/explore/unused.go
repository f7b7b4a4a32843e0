package explore

import "slices"

// unused names the parts of a system that took part in no step. happened is that
// of [expander].
func (t *tables) unused(happened []bool) []string {
	var list []string
	for i, h := range t.sys.handlers {
		if h.kind != StepFault && !t.results[i].allowAny() {
			list = append(list, t.sys.partOf(h))
		}
	}
	possible := func(b Budget) bool { return b.sys != nil && t.sys.budgets[b.at].most > 0 }
	channels := len(t.sys.channels)
	for i, c := range t.sys.channels {
		part := partName("channel", c.name)
		if possible(c.is.Lose) && !happened[i] {
			list = append(list, "loss in "+part)
		}
		if possible(c.is.Duplicate) && !happened[channels+i] {
			list = append(list, "duplication in "+part)
		}
	}
	for i, f := range t.sys.faults {
		if t.sys.budgets[f.budget].most > 0 && !happened[2*channels+i] {
			list = append(list, partName("fault", f.name))
		}
	}
	return list
}

func (r results) allowAny() bool {
	return slices.ContainsFunc(r, func(row [][]allowed) bool {
		return slices.ContainsFunc(row, func(list []allowed) bool { return len(list) > 0 })
	})
}
