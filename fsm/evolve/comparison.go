package evolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// maxCompared is the number of guards of one cell of which Diff tries all
// combinations.
const maxCompared = 10

// result is the result of a request.
type result struct {
	row    *arrow // nil: refused
	to     status
	begins bool // a new operation
}

func (r result) ignored() bool { return r.row != nil && r.row.Then == fsm.ThenIgnore }

// same reports whether two accepted requests have the same result.
func (r result) same(o result) bool {
	return r.to == o.to && r.begins == o.begins && r.ignored() == o.ignored()
}

// comparison compares the results that the two versions give to the same requests.
type comparison struct {
	*exploration
	seen  map[hazardKey]bool
	found []find
}

// find is a hazard and the state that has to be drained for it.
type find struct {
	Hazard
	drain int // the state to drain, -1: draining does not help
}

// hazardKey identifies a hazard of a report.
type hazardKey struct{ id, state, event string }

func (h *Hazard) key() hazardKey { return hazardKey{h.ID, h.State, h.Event} }

func (c *comparison) add(h Hazard, drain int) {
	if key := h.key(); !c.seen[key] { // the nearest one comes first
		c.seen[key] = true
		c.found = append(c.found, find{h, drain})
	}
}

// all compares the versions in every status that can occur.
func (c *comparison) all() {
	old, new := &c.versions[oldVersion], &c.versions[newVersion]
	c.entries()
	for _, v := range c.visits {
		switch {
		case !old.canRead(v.at):
			if v.border { // the others follow from these
				c.unreadable(v.at, oldVersion)
			}
		case !new.canRead(v.at):
			c.unreadable(v.at, newVersion)
		default:
			c.deadlines(v.at, v.byOld)
			c.kind(v.at)
			c.requests(v.at)
		}
	}
}

// unreadable adds a record that a node of one version cannot read.
func (c *comparison) unreadable(at status, h int) {
	x, drain := &c.versions[h], at.state
	state := c.states.name(1-h, at.state)
	what := fmt.Sprintf("the state %q is unknown", state)
	switch {
	case !x.here[at.state]:
	case !x.here[at.origin]:
		state = c.states.name(1-h, at.origin)
		what = fmt.Sprintf("the origin %q is unknown", state)
		if c.versions[1-h].kind(at.origin) != fsm.Absent {
			drain = at.origin
		}
	default:
		what = fmt.Sprintf("%q rests and has no other origin", c.states.name(h, at.state))
	}
	hz := Hazard{ID: "unknown-to-old", Level: Unsafe, State: state, Witness: c.path(at)}
	reader, writer := "an old", "a new"
	if h == newVersion {
		hz.ID, hz.Level = "unknown-to-new", NeedsDrain
		reader, writer = "a new", "an old"
	}
	hz.Message = fmt.Sprintf("%s node cannot read what %s one has written: %s; "+
		"it refuses every request about the object, fails to list it, and does not sweep it", reader, writer, what)
	c.add(hz, drain)
}

// deadlines compares the deadlines of the two versions.
func (c *comparison) deadlines(at status, byOld bool) {
	old, new := &c.versions[oldVersion], &c.versions[newVersion]
	a, b := old.deadline(at), new.deadline(at)
	if a != nil && b != nil && a.Event == b.Event && a.Forced != b.Forced {
		c.forcedDeadline(at, a, b)
	}
	h, drain := Hazard{ID: "deadline-action", Level: Unsafe, State: c.states.name(oldVersion, at.state)}, -1
	if a != nil {
		h.Event = c.events.name(oldVersion, a.Event)
	}
	switch {
	case a == nil && (b == nil || !byOld), a != nil && b != nil && a.Event == b.Event && a.Timeout == b.Timeout:
		return
	case a == nil:
		h.ID, h.Level, h.Event, drain = "deadline-added", NeedsDrain, c.events.name(newVersion, b.Event), at.state
		h.Message = fmt.Sprintf("an object that an old node puts into %q has no deadline, so no sweeper fires %s for it", h.State, h.Event)
		h.Witness = c.path(at)
	case b == nil:
		h.Message = fmt.Sprintf("the sweeper of an old node fires %s in %q after %v, where the new table has no deadline", h.Event, h.State, a.Timeout)
		h.Witness = c.path(at, c.sweep(oldVersion, at, a))
	case a.Event != b.Event:
		h.Message = fmt.Sprintf("the sweeper of an old node fires %s in %q, that of a new one %s", h.Event, h.State, c.events.name(newVersion, b.Event))
		h.Witness = c.path(at, c.sweep(oldVersion, at, a))
	default:
		h.ID, h.Level = "deadline-time", Compatible
		h.Message = fmt.Sprintf("%s in %q comes %v after an old node has put the object there, %v after a new one", h.Event, h.State, a.Timeout, b.Timeout)
	}
	c.add(h, drain)
}

// forcedDeadline compares what the sweepers do if the row of the deadline is forced in one
// version only. A sweeper that fires by force takes the forced rows of the cell too.
func (c *comparison) forcedDeadline(at status, a, b *arrow) {
	for _, sweeper := range c.sweepers {
		c.request(at, a.Event, sweeper, [2]bool{a.Forced, b.Forced})
	}
}

// sweep returns the step of the sweeper at a deadline: it fires the event, for which
// another row of the cell may come first.
func (c *comparison) sweep(h int, at status, deadline *arrow) step {
	for _, actor := range c.sweepers {
		if rows := c.versions[h].candidates(at, deadline.Event, actor, deadline.Forced); len(rows) > 0 {
			s := c.step(h, rows[0], actor, at)
			s.forced = deadline.Forced
			return s
		}
	}
	s := c.step(h, deadline, -1, at)
	s.agree = nil
	return s
}

// kind compares the kinds of a state.
func (c *comparison) kind(at status) {
	if at == noObject {
		return
	}
	a, b := c.versions[oldVersion].kind(at.state), c.versions[newVersion].kind(at.state)
	rests := func(k fsm.Kind) bool { return k == fsm.Stable || k == fsm.Final }
	h := Hazard{State: c.states.name(oldVersion, at.state), Witness: c.path(at)}
	switch {
	case a == b || rests(a) && rests(b):
	case a == fsm.Failed && rests(b) || rests(a) && b == fsm.Failed:
		keeps, drops := "an old", "a new"
		if b == fsm.Failed {
			keeps, drops = drops, keeps
		}
		h.ID, h.Level = "undo", NeedsDrain
		h.Message = fmt.Sprintf("%s node keeps the payload for an undo when an object fails to %q, %s node drops it there", keeps, h.State, drops)
		c.add(h, at.state)
	default:
		h.ID, h.Level = "kind", Unsafe
		about := "an operation is under way, and where it began"
		if a == fsm.Absent || b == fsm.Absent {
			about = "there is an object"
		}
		h.Message = fmt.Sprintf("%q is %s to an old node and %s to a new one: they disagree on whether %s", h.State, a, b, about)
		c.add(h, -1)
	}
}

// entries compares the states in which nodes add objects without an event.
func (c *comparison) entries() {
	old, new := &c.versions[oldVersion], &c.versions[newVersion]
	if c.held[addObject] || old.first < 0 || new.first < 0 && new.absent < 0 {
		return // old nodes add none, or the new table has no initial state
	}
	added := step{version: oldVersion, actor: -1, from: noObject, to: status{old.first, old.first}}
	h := Hazard{ID: "entry-forbidden", Level: Unsafe, State: c.states.name(oldVersion, old.first)}
	switch {
	case new.first < 0:
		h.Message = fmt.Sprintf("an old node adds objects in %q, where the new table makes them by events only", h.State)
	case new.first != old.first:
		h.Message = fmt.Sprintf("an old node adds objects in %q, a new one in %q", h.State, c.states.name(newVersion, new.first))
	default:
		i := slices.IndexFunc(old.actors, func(actor int) bool { return !slices.Contains(new.actors, actor) && !c.sweeper(actor) })
		if i < 0 {
			return
		}
		added.actor = old.actors[i]
		h.Message = fmt.Sprintf("an old node lets %s add objects, a new one does not", cmp.Or(c.actors.name(oldVersion, added.actor), "any actor"))
	}
	if new.here[old.first] { // a state in which objects start is not drained
		h.Witness = []Act{c.act(&added)}
		c.add(h, -1)
	}
}

// requests compares every request in a status.
func (c *comparison) requests(at status) {
	for _, event := range events(at, &c.versions[oldVersion], &c.versions[newVersion]) {
		for _, actor := range c.trial {
			swept := c.swept(at, event, actor)
			// The sweeper does not fire rows that are open to every actor.
			fires := swept || !c.sweeper(actor) || c.named(at, event, actor)
			if !fires || c.withheld(at, event) && !swept {
				continue
			}
			for _, force := range []bool{false, true} {
				c.request(at, event, actor, [2]bool{force, force})
			}
		}
	}
}

// swept reports whether the sweeper of either version fires an event.
func (c *comparison) swept(at status, event, actor int) bool {
	for h := range c.versions {
		if d := c.versions[h].deadline(at); d != nil && d.Event == event && c.sweeper(actor) {
			return true
		}
	}
	return false
}

// named reports whether some row names this actor.
func (c *comparison) named(at status, event, actor int) bool {
	for h := range c.versions {
		x := &c.versions[h]
		if slices.ContainsFunc(x.fitting(at, event, actor, true), func(a *arrow) bool { return len(x.given.Rows[a.row].Actors) > 0 }) {
			return true
		}
	}
	return false
}

// request compares the results of one request, for all results of the guards. The nodes
// of one version may make it by force, and those of the other without.
func (c *comparison) request(at status, event, actor int, force [2]bool) {
	var lists [2][]*arrow
	for h := range lists {
		lists[h] = c.versions[h].candidates(at, event, actor, force[h])
	}
	var guards []string
	for _, a := range slices.Concat(lists[oldVersion], lists[newVersion]) {
		if a.Guard != "" && !slices.Contains(guards, a.Guard) {
			guards = append(guards, a.Guard)
		}
	}
	if len(guards) > maxCompared {
		if !slices.EqualFunc(lists[oldVersion], lists[newVersion], func(a, b *arrow) bool {
			return c.result(oldVersion, at, a).same(c.result(newVersion, at, b)) && a.Guard == b.Guard
		}) {
			s := c.states.name(oldVersion, at.state)
			c.add(Hazard{
				ID: "too-many-guards", Level: Unsafe, State: s, Event: c.events.name(oldVersion, event), Witness: c.path(at),
				Message: fmt.Sprintf("the rows of %s in %q differ, and have more guards than Diff compares", c.events.name(oldVersion, event), s),
			}, -1)
		}
		return
	}
	for agree := range 1 << len(guards) {
		pick := func(h int) result {
			for _, a := range lists[h] {
				if a.Guard == "" || agree>>slices.Index(guards, a.Guard)&1 == 1 {
					return c.result(h, at, a)
				}
			}
			return result{to: at}
		}
		o, n := pick(oldVersion), pick(newVersion)
		if o.row == nil && n.row == nil || o.row != nil && n.row != nil && o.same(n) {
			continue
		}
		act := step{version: oldVersion, row: o.row, actor: actor, forced: force[oldVersion], from: at, to: o.to}
		if o.row == nil {
			act.version, act.row, act.forced, act.to = newVersion, n.row, force[newVersion], n.to
		}
		var named []string // a guard with two names appears once, with that of the acting node
		for _, h := range [...]int{act.version, 1 - act.version} {
			for _, a := range lists[h] {
				if a.Guard == "" || slices.Contains(named, a.Guard) {
					continue
				}
				named = append(named, a.Guard)
				name := c.versions[h].given.Rows[a.row].Guard
				if agree>>slices.Index(guards, a.Guard)&1 == 1 {
					act.agree = append(act.agree, name)
				} else {
					act.refuse = append(act.refuse, name)
				}
			}
		}
		c.differ(act, event, force, o, n)
	}
}

func (c *comparison) result(h int, at status, a *arrow) result {
	x := &c.versions[h]
	to := x.after(a, at)
	return result{row: a, to: to, begins: x.begins(a, to)}
}

// differ adds a request that a node takes and that has different results.
func (c *comparison) differ(act step, event int, force [2]bool, o, n result) {
	at := act.from
	from, _ := c.versions[act.version].source(at)
	h := Hazard{
		Level: Unsafe, State: c.states.name(act.version, from.state), Event: c.events.name(act.version, event),
		Witness: c.path(at, act),
	}
	request := h.Event
	if actor := c.actors.name(act.version, act.actor); actor != "" {
		request += " by " + actor
	}
	if at == noObject {
		request += " of an object that does not exist"
	} else {
		request += fmt.Sprintf(" in %q", h.State)
	}
	if act.forced {
		request += ", by force,"
	}
	where := ""
	if len(act.agree) > 0 {
		where += " where " + strings.Join(act.agree, " and ") + " agrees"
	}
	if len(act.refuse) > 0 {
		where += " where " + strings.Join(act.refuse, " and ") + " does not"
	}
	request += where
	switch {
	case o.row == nil:
		h.ID, h.Level = "refused-by-old", Compatible
		h.Message = fmt.Sprintf("an old node refuses %s; a new node %s", request, c.does(newVersion, at, n))
	case force[oldVersion] != force[newVersion]:
		h.ID = "deadline-action"
		h.Message = fmt.Sprintf("at the deadline in %q%s the sweeper of an old node fires %s%s and %s, that of a new one fires it%s and %s",
			h.State, where, h.Event, byForce(force[oldVersion]), c.does(oldVersion, at, o), byForce(force[newVersion]), c.does(newVersion, at, n))
	case n.row == nil && o.ignored():
		h.ID = "ignored"
		h.Message = fmt.Sprintf("an old node accepts and ignores %s, which the new table refuses", request)
	case n.row == nil:
		h.ID = "forbidden"
		h.Message = fmt.Sprintf("an old node accepts %s and %s, which the new table forbids", request, c.does(oldVersion, at, o))
	default:
		h.ID = "two-results"
		h.Message = fmt.Sprintf("on %s an old node %s, a new node %s", request, c.does(oldVersion, at, o), c.does(newVersion, at, n))
	}
	c.add(h, -1)
}

func byForce(forced bool) string {
	if forced {
		return " by force"
	}
	return ""
}

// does describes the result of a request.
func (c *comparison) does(h int, at status, r result) string {
	switch {
	case r.row == nil:
		return "is refused"
	case r.ignored():
		return "ignores it"
	case r.to == noObject:
		return "removes the object"
	}
	text := fmt.Sprintf("moves the object to %q", c.states.name(h, r.to.state))
	if r.to.origin != r.to.state {
		text += fmt.Sprintf(" with the origin %q", c.states.name(h, r.to.origin))
	}
	if r.begins {
		text += " in a new operation"
	}
	return text
}
