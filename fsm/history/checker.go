package history

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/prose"
)

// checker checks one history.
type checker struct {
	config   Config
	machines map[string]*machine

	// The last ends, also of objects that exist again. Invariant: an object with ended > 0
	// has an entry with that number here, so that there are at most sum.Alive + len(past)
	// objects.
	past    []ending
	endings uint64

	sum *Summary
}

// object is the last known state of one object.
type object struct {
	state, origin string // empty: unknown
	lost          bool   // the last row led to an unknown state
	ended         uint64 // > 0: the object has ended
	sequence      uint64 // of the last row that has one
	operation     uint64 // of the last row that has one
	underWay      bool   // the object is in the operation
	at            time.Time
}

type ending struct {
	machine *machine
	id      string
	number  uint64
}

func (c *checker) found(row *Row, id, message, expected string) {
	f := Finding{
		ID: id, Line: row.Line, Row: c.sum.Rows, Machine: row.Machine, Object: row.ID, Sequence: row.Sequence,
		Message: message, Expected: expected,
	}
	c.sum.Counts[id]++
	if len(c.sum.Findings) < maxFindings {
		c.sum.Findings = append(c.sum.Findings, f)
	}
}

// row checks one row and moves its object.
func (c *checker) row(row *Row) {
	m := c.machines[row.Machine]
	if row.Machine == "" && len(c.machines) == 1 {
		for _, m = range c.machines {
			break
		}
	}
	if m == nil && c.config.IgnoreOthers {
		c.sum.Ignored++
		return
	}
	c.sum.Rows++
	if m == nil {
		c.found(row, "unknown-machine", row.step(), "a machine that has a table")
		return
	}
	v := m.versionOf(row)
	if v == nil {
		c.found(row, "unknown-version", row.step()+" of version "+prose.Quote(row.Version), "a version that has a table")
	}
	o := m.objects[row.ID]
	var linked bool // the row follows the last one of the object
	if o == nil {
		o = c.first(row, m, v)
		m.objects[row.ID] = o
		c.sum.Objects++
		c.sum.Alive++
	} else {
		var ok bool
		if linked, ok = c.follows(row, m, v, o); !ok {
			return
		}
		if o.ended > 0 {
			o.ended = 0
			c.sum.Alive++
			if row.From == "" || m.absent[row.From] {
				c.sum.Objects++
			}
		}
	}
	c.sum.Most = max(c.sum.Most, c.sum.Alive)
	c.step(row, m, v, o, linked)
	c.end(m, row.ID, o)
}

// first returns the object of its first row. The sequence number need not be 1: a
// store may have forgotten a removed object and continue from its highest number.
func (c *checker) first(row *Row, m *machine, v *version) *object {
	o := &object{state: row.From, origin: row.FromOrigin}
	begins := row.From == "" || v == nil || !m.has(o.state)
	if from := v.index(o.state); from >= 0 {
		begins = begins || v.t.States[from].Kind == fsm.Absent || v.begins(from) && row.Sequence <= 1
	}
	if !begins && !c.config.Gaps {
		c.found(row, "no-beginning", "the history of the object begins in "+row.From, "a row that makes it")
	}
	return o
}

// follows compares a row with the last one of the object. linked is false if rows
// between them are missing. ok is false if the row needs no further check.
func (c *checker) follows(row *Row, m *machine, v *version, o *object) (linked, ok bool) {
	linked = true
	numbered := row.Sequence != 0 && o.sequence != 0
	if numbered {
		created := o.ended > 0 && (row.From == "" || m.absent[row.From])
		next := o.sequence + 1 // if it wraps, every row is late
		switch late := row.Sequence <= o.sequence; {
		case late && c.config.Gaps:
			c.sum.Repeated++
			return false, false
		case late:
			c.found(row, "repeated-sequence", fmt.Sprintf("number %d comes after %d", row.Sequence, o.sequence), strconv.FormatUint(next, 10))
			return false, false
		case row.Sequence > next && c.config.Gaps:
			c.sum.Missing = int(min(uint64(c.sum.Missing)+min(row.Sequence-next, math.MaxInt32), math.MaxInt32))
			linked = false
		case row.Sequence > next && created: // the store may have forgotten the removed object, see first
		case row.Sequence > next:
			c.found(row, "skipped-sequence", fmt.Sprintf("number %d follows %d", row.Sequence, o.sequence), strconv.FormatUint(next, 10))
			linked = false
		}
	}
	if !row.At.IsZero() && !o.at.IsZero() && row.At.Before(o.at.Add(-c.config.ClockSlack)) {
		c.found(row, "time-backwards", "the row is of "+row.At.Format(time.RFC3339Nano), "no time before "+o.at.Format(time.RFC3339Nano))
	}
	if o.lost || linked && c.breaks(row, m, v, o, !numbered) {
		linked = false
	}
	if !linked {
		o.state, o.origin = row.From, row.FromOrigin
	}
	return linked, true
}

// breaks reports whether the row starts elsewhere than the last one ended. Without
// sequence numbers, a feed with gaps may have lost rows between them.
func (c *checker) breaks(row *Row, m *machine, v *version, o *object, lost bool) bool {
	if row.From != "" && !m.has(row.From) {
		return true // judge reports the state
	}
	switch {
	case row.From == o.state:
		if row.From != "" && row.FromOrigin != "" && o.origin != "" && row.FromOrigin != o.origin {
			c.found(row, "wrong-origin", "the origin before was "+row.FromOrigin, o.origin)
		}
		return false
	case m.absent[o.state] && (row.From == "" || m.absent[row.From]):
		return false
	}
	was := o.state
	switch {
	case lost && c.config.Gaps:
		c.sum.Missing++
	case row.From == "":
		c.found(row, "created-twice", "the row creates an object that exists", "a row from "+was)
	case v.transitional(row.From):
		c.found(row, "outcome-without-intent", fmt.Sprintf("%s ends in %s, which the object had not entered", row.From, row.To), "a row from "+was)
	default:
		c.found(row, "broken-chain", "the row leads from "+row.From, "a row from "+was)
	}
	return true
}

// step compares the row with the table and moves the object.
func (c *checker) step(row *Row, m *machine, v *version, o *object, linked bool) {
	tableRow, sound := -1, false
	if row.Event == override {
		c.sum.Overrides++
	}
	switch {
	case !m.has(row.To):
		c.found(row, "unknown-name", "no version has a state "+prose.Quote(row.To), v.instead(row, o))
	case v == nil || row.Event == override || row.Event == migration:
	case o.lost && row.From != "" && !m.has(row.From): // the row that led there has the finding
	default:
		tableRow, sound = c.judge(row, m, v, o)
	}
	before := *o
	c.move(row, m, v, o, sound)
	c.operation(row, v, &before, o, tableRow, linked)
	if row.Sequence != 0 {
		o.sequence = row.Sequence
	}
	if !row.At.IsZero() {
		o.at = row.At
	}
}

// judge reports whether the table has the step, and which row makes it. The row is -1
// for an object that was added in an initial state.
func (c *checker) judge(row *Row, m *machine, v *version, o *object) (tableRow int, sound bool) {
	result, tableRow, unknown := v.judge(row, o)
	switch result {
	case allowed:
		return tableRow, true
	case wrongActor:
		c.found(row, "wrong-actor", row.step(), v.actorsOf(tableRow)+", not "+string(row.Actor))
		return tableRow, true
	}
	for _, other := range m.versions {
		if other == v {
			continue
		}
		if result, _, _ := other.judge(row, o); result == allowed {
			c.found(row, "wrong-version", fmt.Sprintf("%s is not of version %s", row.step(), prose.Quote(v.name)), "version "+prose.Quote(other.name))
			return -1, false
		}
	}
	if unknown != "" {
		c.found(row, "unknown-name", "the table has no "+unknown, v.instead(row, o))
		return -1, false
	}
	c.found(row, "illegal-step", row.step(), v.instead(row, o))
	return -1, false
}

// judge looks for the row of the table, see find. unknown names what the table lacks.
func (v *version) judge(row *Row, o *object) (result verdict, tableRow int, unknown string) {
	ch := v.request(row)
	if ch.to = v.index(row.To); ch.to < 0 {
		return refused, -1, "state " + prose.Quote(row.To)
	}
	if ch.event < 0 && row.Event != "" {
		return refused, -1, "event " + prose.Quote(row.Event)
	}
	ch.renumbered = row.Operation != o.operation
	if row.From == "" {
		result, tableRow = v.creates(ch, row)
		return result, tableRow, ""
	}
	if ch.from = v.index(row.From); ch.from < 0 {
		return refused, -1, "state " + prose.Quote(row.From)
	}
	ch.origins = v.originsOf(ch.from, o)
	result, tableRow = v.find(ch)
	return result, tableRow, ""
}

// request returns event and actors of a row, and any target.
func (v *version) request(row *Row) change {
	event, _ := v.t.EventIndex(row.Event) // -1 if there is none
	c := change{to: -1, event: event, actors: v.actors}
	if row.Actor != "" {
		c.actors = []fsm.Actor{row.Actor}
	}
	return c
}

// originsOf returns the origins that an object may have in a state.
func (v *version) originsOf(state int, o *object) []int {
	switch origin := v.index(o.origin); {
	case v.t.States[state].Kind.Resting():
		return []int{state}
	case origin >= 0:
		return []int{origin}
	}
	return v.origins[state]
}

// creates looks for the row that creates an object: an event leads out of an absent
// state. Without an absent state or an event, the object starts in an initial state.
func (v *version) creates(ch change, row *Row) (result verdict, tableRow int) {
	if row.Event == "" || len(v.absent) == 0 {
		if v.begins(ch.to) {
			return allowed, -1
		}
		return refused, -1
	}
	result, tableRow = refused, -1
	for _, ch.from = range v.absent {
		ch.origins = []int{ch.from}
		if s, r := v.find(ch); s < result {
			result, tableRow = s, r
		}
	}
	return result, tableRow
}

// instead lists what the table allows instead of a row. v is nil if the version is unknown.
func (v *version) instead(row *Row, o *object) string {
	from := v.index(row.From)
	switch {
	case v == nil:
		return "a state of the machine"
	case row.From == "" && row.Event != "" && len(v.absent) > 0:
		from = v.absent[0]
	case row.From == "":
		return "an initial state"
	case from < 0:
		return "a state of the table"
	}
	c := v.request(row)
	c.from, c.origins = from, v.originsOf(from, o)
	return v.offers(c)
}

// move moves the object to the target of the row, and checks the origin if the step is
// sound.
func (c *checker) move(row *Row, m *machine, v *version, o *object, sound bool) {
	origin := "" // the last state of rest, empty if unknown
	switch {
	case v.index(row.To) < 0:
	case v.resting(row.To):
		origin = row.To
	case !sound:
	case row.From == "" && row.Event == "":
		origin = row.To
	case row.From == "":
		if len(v.absent) == 1 {
			origin = v.t.States[v.absent[0]].Name
		}
	case v.resting(row.From):
		origin = row.From
	default:
		origin = o.origin
	}
	if row.Origin != "" && sound && origin != "" && row.Origin != origin {
		c.found(row, "wrong-origin", "the origin is "+row.Origin, origin)
	} else if row.Origin != "" {
		origin = row.Origin
	}
	o.state, o.origin, o.lost = row.To, origin, !m.has(row.To)
}

// operation checks the number of the operation. before is the object before the row.
func (c *checker) operation(row *Row, v *version, before, after *object, tableRow int, linked bool) {
	supersedes := tableRow >= 0 && v.t.Rows[tableRow].Supersede
	begins := row.Event == override || row.From == "" || v.transitional(after.state) && (!v.transitional(before.state) || supersedes)
	if row.Event == migration {
		begins = false
	}
	last, now := before.operation, row.Operation
	switch {
	case now != 0:
		after.operation, after.underWay = now, true
	case begins || !linked:
		after.underWay = false
	}
	switch {
	case last == 0 || now == 0 || v == nil:
	case !linked && now < last, linked && begins && now <= last, linked && !v.transitional(before.state) && now < last:
		c.found(row, "repeated-operation", fmt.Sprintf("operation %d comes after %d", now, last), "a greater number")
	case linked && !begins && before.underWay && v.transitional(before.state) && now != last:
		c.found(row, "outcome-without-intent", fmt.Sprintf("%s -%s-> %s has operation %d", row.From, row.Event, row.To, now),
			fmt.Sprintf("operation %d, which is under way", last))
	}
}

// end remembers an object that has ended, and forgets the oldest of those.
func (c *checker) end(m *machine, id string, o *object) {
	if !m.ends[o.state] {
		return
	}
	c.sum.Alive--
	c.endings++
	o.ended = c.endings
	c.past = append(c.past, ending{m, id, o.ended})
	if len(c.past) > keepEnded {
		old := c.past[0]
		if gone := old.machine.objects[old.id]; gone != nil && gone.ended == old.number {
			delete(old.machine.objects, old.id)
		}
		c.past = c.past[1:]
	}
}
