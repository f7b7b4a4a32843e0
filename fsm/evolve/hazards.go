package evolve

import (
	"cmp"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// levels are the hazards and what each means for the verdict, see the package
// documentation.
var levels = map[string]Compatibility{
	"unknown-to-old":  Unsafe,
	"unknown-to-new":  NeedsDrain,
	"forbidden":       Unsafe,
	"ignored":         Unsafe,
	"two-results":     Unsafe,
	"refused-by-old":  Compatible,
	"entry-forbidden": Unsafe,
	"deadline-action": Unsafe,
	"deadline-added":  NeedsDrain,
	"deadline-time":   Compatible,
	"kind":            Unsafe,
	"undo":            NeedsDrain,
	"stranded":        Unsafe,
	"renamed":         NeedsMapping,
}

// comparison finds the hazards in the statuses of an exploration.
type comparison struct {
	*exploration
	alone [2]*exploration // by version
	found []finding
	seen  map[[3]string]bool // id, state and event
}

// finding is a hazard and its state, which is drained if that removes the hazard.
type finding struct {
	Hazard
	state string
}

// hazards returns the hazards of every status that can occur.
func (e *exploration) hazards(alone [2]*exploration) []finding {
	c := &comparison{exploration: e, alone: alone, seen: make(map[[3]string]bool)}
	c.entries()
	for _, v := range e.visits {
		switch {
		case !e.versions[oldVersion].canRead(v.at):
			c.unknown(v.at, oldVersion)
		case !e.versions[newVersion].canRead(v.at):
			c.unknown(v.at, newVersion)
		default:
			c.deadlines(v.at, v.byOld)
			c.kinds(v.at)
			e.steps(v.at, c.results)
			c.stranded(v.at)
		}
	}
	return c.found
}

// add adds a hazard, with the names of one version. The nearest one of a cell comes first.
func (c *comparison) add(v int, id, state, event string, witness []Act, format string, args ...any) {
	if key := [3]string{id, state, event}; !c.seen[key] {
		c.seen[key] = true
		c.found = append(c.found, finding{Hazard{
			ID: id, Level: levels[id], State: c.states.of(v, state), Event: c.events.of(v, event),
			Message: fmt.Sprintf(format, args...), Witness: witness,
		}, state})
	}
}

// entries compares the states in which nodes add objects without an event.
func (c *comparison) entries() {
	old, new := c.versions[oldVersion], c.versions[newVersion]
	if c.held[addObject] || old.first == "" || !new.has(old.first) || new.first == "" && new.absent == "" {
		return // old nodes add none, or the new table does not have the state, or no initial one
	}
	for _, actor := range c.roles {
		s := add(oldVersion, actor, status{old.first, old.first})
		s.result[newVersion] = result{refused: true}
		if new.first != "" && new.admits(actor) {
			s.result[newVersion] = result{to: status{new.first, new.first}}
		}
		if actor != sweeper && old.admits(actor) && s.result[oldVersion] != s.result[newVersion] {
			c.add(oldVersion, "entry-forbidden", old.first, "", []Act{c.act(s)}, "on adding an object by %s: an old node %s, a new node %s",
				cmp.Or(c.actors.of(oldVersion, actor), "any actor"), c.resultText(oldVersion, s), c.resultText(newVersion, s))
		}
	}
}

// unknown adds a record that a node of one version cannot read.
func (c *comparison) unknown(at status, reader int) {
	x, writer, state := c.versions[reader], 1-reader, at.state
	why := fmt.Sprintf("the state %q is unknown", c.states.of(writer, at.state))
	switch {
	case x.has(at.state) && x.has(at.origin):
		why = fmt.Sprintf("%q rests and has no other origin", c.states.of(writer, at.state))
	case x.has(at.state):
		why = fmt.Sprintf("the origin %q is unknown", c.states.of(writer, at.origin))
		if c.versions[writer].kind(at.origin) != fsm.Absent {
			state = at.origin
		}
	}
	articles := [2]string{"an old", "a new"}
	c.add(writer, "unknown-to-"+versionNames[reader], state, "", c.path(at), "%s node cannot read what %s one has written: %s; "+
		"it refuses every request about the object, fails to list it, and does not sweep it", articles[reader], articles[writer], why)
}

// deadlines compares what the sweepers of the two versions fire.
func (c *comparison) deadlines(at status, byOld bool) {
	old, new := c.versions[oldVersion].deadline(at), c.versions[newVersion].deadline(at)
	id, event, more := "deadline-action", old.event, ""
	switch {
	case old.event == new.event && old.timeout == new.timeout, old.event == "" && !byOld:
		return
	case old.event == "":
		id, event, more = "deadline-added", new.event, "; an object that an old node has put there has no deadline"
	case old.event == new.event:
		id = "deadline-time"
	}
	text := func(v int, d deadline) string {
		if d.event == "" {
			return "nothing"
		}
		return fmt.Sprintf("%s after %v", c.events.of(v, d.event), d.timeout)
	}
	c.add(oldVersion, id, at.state, event, c.path(at),
		"in %q the sweeper of an old node fires %s, that of a new one %s%s",
		c.states.of(oldVersion, at.state), text(oldVersion, old), text(newVersion, new), more)
}

// kinds compares the kinds of a state.
func (c *comparison) kinds(at status) {
	if at == noObject {
		return
	}
	old, new := c.versions[oldVersion].kind(at.state), c.versions[newVersion].kind(at.state)
	rests := func(k fsm.Kind) bool { return k == fsm.Stable || k == fsm.Final }
	id, what := "kind", "they disagree on whether an operation is under way, and where it began"
	switch {
	case old == new || rests(old) && rests(new):
		return
	case old == fsm.Absent || new == fsm.Absent:
		what = "they disagree on whether there is an object"
	case old != fsm.Transitional && new != fsm.Transitional:
		id, what = "undo", "one keeps the payload for an undo when an object fails, the other drops it"
	}
	c.add(oldVersion, id, at.state, "", c.path(at), "%q is %s to an old node and %s to a new one: %s",
		c.states.of(oldVersion, at.state), old, new, what)
}

// results compares the two results of a request.
func (c *comparison) results(s step) {
	old, new := s.result[oldVersion], s.result[newVersion]
	id := "two-results"
	switch {
	case old == new:
		return
	case old.refused:
		s.version, id = newVersion, "refused-by-old"
	case s.force[oldVersion] != s.force[newVersion]:
		id = "deadline-action"
	case new.refused && old.ignored:
		id = "ignored"
	case new.refused:
		id = "forbidden"
	}
	a := c.act(s)
	request := fmt.Sprintf("%s in %q%s", a.Event, a.State, a.conditions())
	if s.from == noObject {
		request = a.Event + " without an object" + a.conditions()
	}
	c.add(s.version, id, c.versions[s.version].source(s.from).state, s.event, append(c.path(s.from), a),
		"on %s: an old node %s, a new node %s", request, c.resultText(oldVersion, s), c.resultText(newVersion, s))
}

// resultText describes the result of a request.
func (p *pair) resultText(v int, s step) string {
	r := s.result[v]
	text := fmt.Sprintf("moves the object to %q", p.states.of(v, r.to.state))
	switch {
	case r.refused:
		text = "refuses it"
	case r.ignored:
		text = "ignores it"
	case r.to == noObject:
		text = "removes the object"
	case r.to.origin != r.to.state:
		text += fmt.Sprintf(" with the origin %q", p.states.of(v, r.to.origin))
	}
	if r.begins {
		text += " in a new operation"
	}
	if s.force[v] && !s.force[1-v] {
		text += " by force"
	}
	return text
}

// stranded finds objects that one version alone cannot bring to rest. If a version gets
// there by itself, the fault is in its table and not in the change.
func (c *comparison) stranded(at status) {
	var stuck [2]bool
	for v, x := range c.versions {
		_, gets := c.alone[v].index[at]
		stuck[v] = at != noObject && !x.kind(at.state).Resting() && !c.rests(v, at)
		if gets && stuck[v] {
			return
		}
	}
	for v := range stuck {
		if stuck[v] {
			c.add(v, "stranded", at.state, "", c.path(at), "no %s node can bring an object in %q to rest that has the origin %q",
				versionNames[v], c.states.of(v, at.state), c.states.of(v, at.origin))
		}
	}
}

// renamings returns the hazards of a mapping.
func renamings(mapping []Renaming) (list []Hazard) {
	for _, r := range mapping {
		h := Hazard{ID: "renamed", Level: levels["renamed"]}
		switch r.Subject {
		case "state":
			h.State = r.Old
		case "event":
			h.Event = r.Old
		}
		h.Message = fmt.Sprintf("the %s %q is called %q now: a node finds and accepts only its own name", r.Subject, r.Old, r.New)
		list = append(list, h)
	}
	return list
}
