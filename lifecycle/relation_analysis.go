package lifecycle

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// analyse finds the faults of the rows and files the rows by state.
func (r *Relation[S]) analyse(faults *RuleError) {
	table := r.parent.Table()
	r.of = make([][]int, len(table.States))
	origins := table.Origins()
	allowed := make([]map[string]allowance, len(r.rows)) // nil: not to be compared
	for i := range r.rows {
		row := &r.rows[i]
		before := len(faults.Problems)
		if len(row.States) == 0 {
			faults.add(NoRow, i, "row %d is about no state", i)
		}
		for _, s := range row.States {
			k := r.parent.StateIndex(s)
			switch {
			case k < 0:
				faults.add(fsm.UnknownState, i, "row %d (%s): %s has no state %s", i, r.describe(i), table.Name, stateName(r.parent, s))
				continue
			case len(origins[k]) == 0:
				faults.state(fsm.Unreachable, i, table.States[k].Name, "row %d (%s): no %s gets into %v",
					i, r.describe(i), table.Name, s)
			}
			if !slices.Contains(r.of[k], i) {
				r.of[k] = append(r.of[k], i)
			}
		}
		for _, c := range row.Need {
			r.checkCondition(faults, i, c)
		}
		if len(faults.Problems) == before {
			allowed[i] = r.allowances(faults, i)
		}
		if len(faults.Problems) > before {
			allowed[i] = nil
		}
	}
	wider := make([][]int, len(r.rows)) // earlier rows that allow as much, whatever their states
	for i := range r.rows {
		for e := range i {
			if covers(allowed[e], allowed[i]) {
				wider[i] = append(wider[i], e)
			}
		}
	}
	for k, rows := range r.of {
		name := table.States[k].Name
		if len(rows) == 0 && table.States[k].Kind != fsm.Absent {
			faults.state(NoRow, -1, name, "state %s of %s has no row", name, table.Name)
		}
		for j, row := range rows {
			if i := slices.IndexFunc(rows[:j], func(e int) bool { return slices.Contains(wider[row], e) }); i >= 0 {
				faults.state(ShadowedRow, row, name, "row %d (%s): never needed in %s: row %d (%s) allows as much",
					row, r.describe(row), name, rows[i], r.describe(rows[i]))
			}
		}
	}
}

// checkCondition finds what is wrong with one condition by itself.
func (r *Relation[S]) checkCondition(faults *RuleError, row int, c Condition) {
	where := func(code, format string, args ...any) {
		faults.add(code, row, "row %d (%s): "+format, append([]any{row, r.describe(row)}, args...)...)
	}
	if c.Role == "" || c.table == nil {
		where(BadRole, "the role %q of a condition has no name or no machine", c.Role)
		return
	}
	switch known := r.roles[c.Role]; {
	case known == nil:
		r.roles[c.Role] = c.table
	case known != c.table:
		elsewhere := "of " + known.Name
		if known.Name == c.table.Name {
			elsewhere = "of another machine of that name"
		}
		where(BadRole, "role %s is of machine %s here, and %s elsewhere", c.Role, c.table.Name, elsewhere)
		return
	}
	if c.Quantifier > NoneOf {
		where(fsm.BadRow, "unknown quantifier %d of role %s", c.Quantifier, c.Role)
	}
	if len(c.States) == 0 && c.Quantifier != NoneOf {
		where(NeverSatisfied, "%v of role %s names no state", c.Quantifier, c.Role)
	}
	origins := c.table.Origins()
	for _, name := range c.States {
		k, ok := c.table.StateIndex(name)
		switch {
		case !ok:
			where(fsm.UnknownState, "%s: machine %s has no state %s", c.Role, c.table.Name, name)
		case c.table.States[k].Kind == fsm.Absent:
			where(fsm.BadState, "%s: in the absent state %s there is no object", c.Role, name)
		case len(origins[k]) == 0:
			where(fsm.Unreachable, "%s: no %s gets into %s", c.Role, c.table.Name, name)
		}
	}
}

// allowance is what the conditions of one row leave for the objects of one role.
//
//	objects are allowed  iff  each is in within, and for every set of hits one is
//	in it, and there is exactly one if single
type allowance struct {
	all     set // every state that objects can be in
	within  set
	hits    []set
	single  bool
	choices set // = within and all hits, if single: where the one object may be
}

// set is a set of states by index.
type set []bool

func (a set) and(b set, in bool) set {
	c := slices.Clone(a)
	for i := range c {
		c[i] = c[i] && b[i] == in
	}
	return c
}

func (a set) empty() bool { return !slices.Contains(a, true) }

// subset reports whether every state of a is in b.
func (a set) subset(b set) bool {
	for i, in := range a {
		if in && !b[i] {
			return false
		}
	}
	return true
}

// anything is the allowance of a role that no condition is about.
func anything(table *fsm.Table) allowance {
	origins := table.Origins()
	within := make(set, len(table.States))
	for i := range within {
		within[i] = table.States[i].Kind != fsm.Absent && len(origins[i]) > 0
	}
	return allowance{all: within, within: within}
}

// allowances returns what a row allows, by role. Faults are rows that allow
// nothing.
func (r *Relation[S]) allowances(faults *RuleError, row int) map[string]allowance {
	byRole := make(map[string]allowance)
	var order []string
	absent := make(map[string]bool) // roles that are to have no object
	for _, c := range r.rows[row].Need {
		a, seen := byRole[c.Role]
		if !seen {
			a = anything(c.table)
			order = append(order, c.Role)
		}
		states := make(set, len(c.table.States))
		for _, name := range c.States {
			k, _ := c.table.StateIndex(name)
			states[k] = true
		}
		switch c.Quantifier {
		case AllOf:
			a.within = a.within.and(states, true)
		case NoneOf:
			if len(c.States) == 0 {
				absent[c.Role] = true
				a.within = make(set, len(states))
			}
			a.within = a.within.and(states, false)
		case OneOf:
			a.single = true
			a.hits = append(a.hits, states)
		case AnyOf:
			a.hits = append(a.hits, states)
		}
		byRole[c.Role] = a
	}
	for _, role := range order {
		a := byRole[role]
		if a.single {
			a.choices = a.within
			for _, h := range a.hits {
				a.choices = a.choices.and(h, true)
			}
			byRole[role] = a
		}
		switch {
		case !a.satisfiable():
			faults.add(NeverSatisfied, row, "row %d (%s): no %s can satisfy all conditions on it", row, r.describe(row), role)
		case a.within.empty() && !absent[role]:
			faults.add(NoObject, row, "row %d (%s): its conditions leave no state to any %s; None without states says that there is none",
				row, r.describe(row), role)
		}
	}
	return byRole
}

// satisfiable reports whether some objects are allowed.
func (a allowance) satisfiable() bool {
	if a.single {
		return !a.choices.empty()
	}
	// One object for each set: they do not get into each other's way.
	return !slices.ContainsFunc(a.hits, func(h set) bool { return a.within.and(h, true).empty() })
}

// covers reports whether a row that allows wide allows everything that a row
// which allows narrow does. Roles have nothing to do with each other, so that it
// does iff it does for every role. Nil is a row with faults and covers nothing.
func covers(wide, narrow map[string]allowance) bool {
	if wide == nil || narrow == nil {
		return false
	}
	for role, w := range wide {
		n, constrained := narrow[role]
		if !constrained {
			n = allowance{within: w.all}
		}
		if !w.covers(n) {
			return false
		}
	}
	return true
}

// covers reports whether all objects that n allows are allowed by w. n is
// satisfiable.
func (w allowance) covers(n allowance) bool {
	if n.single {
		return n.choices.subset(w.within) && !slices.ContainsFunc(w.hits, func(h set) bool { return !n.choices.subset(h) })
	}
	// What n allows may be any number of objects, so w must not want exactly one,
	// and any state of n.within may be among them.
	if w.single || !n.within.subset(w.within) {
		return false
	}
	// w wants an object in h. Some that n allows have none there, unless n wants
	// one in a set that within n.within is part of h.
	return !slices.ContainsFunc(w.hits, func(h set) bool {
		return !slices.ContainsFunc(n.hits, func(nh set) bool { return n.within.and(nh, true).subset(h) })
	})
}
