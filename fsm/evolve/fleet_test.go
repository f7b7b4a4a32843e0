package evolve_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
)

// fleet is the naive reference of Diff: an old and a new machine that take turns on
// one record, in every order.
type fleet struct {
	nodes   [2]*machine
	tables  [2]*fsm.Table // with all states in which objects are added
	renamed renames
	guards  []string // by new names
	actors  []string // by new names
}

// record is the record that the nodes share, by new names. It is empty if no object
// exists.
type record struct{ state, origin string }

// guardKey returns the key of the payload that a guard reads.
func guardKey(renamed map[string]string, h int, name string) string {
	if h == 1 {
		return name
	}
	return translated(renamed, name)
}

// translated returns the new name of a name of the old table. A name that the new table
// gives to another thing gets a prefix.
func translated(renamed map[string]string, name string) string {
	if to, ok := renamed[name]; ok {
		return to
	}
	for _, to := range renamed {
		if to == name {
			return "old " + name
		}
	}
	return name
}

// backwards returns the old name of a new name.
func backwards(renamed map[string]string, name string) string {
	for from, to := range renamed {
		if to == name {
			return from
		}
	}
	if _, ok := renamed[name]; ok {
		return "new " + name
	}
	return strings.TrimPrefix(name, "old ")
}

func newFleet(t require.TestingT, specs [2]plan, initials [2][]string, renamed renames) *fleet {
	f := &fleet{renamed: renamed, actors: []string{string(fsm.Sweeper)}}
	for h, spec := range specs {
		spec = clonePlan(spec)
		for i := range spec.Rows {
			if g := spec.Rows[i].Guard; g != nil {
				key := guardKey(renamed.guards, h, g.Name())
				spec.Rows[i].Guard = guardReading(g.Name(), key)
				if !slices.Contains(f.guards, key) {
					f.guards = append(f.guards, key)
				}
			}
		}
		for _, a := range spec.Actors {
			name := string(a)
			if h == 0 {
				name = translated(renamed.actors, name)
			}
			if !slices.Contains(f.actors, name) {
				f.actors = append(f.actors, name)
			}
		}
		m, err := fsm.New[valuation](spec)
		require.NoError(t, err)
		table := *m.Table()
		for _, s := range initials[h] {
			i, _ := table.StateIndex(s)
			table.Initials = append(table.Initials, i)
		}
		f.nodes[h], f.tables[h] = m, &table
	}
	return f
}

// starts returns the records of objects that a node adds without an event.
func (f *fleet) starts(h int) (list []record) {
	t := f.tables[h]
	for _, s := range append([]int{t.Initial}, t.Initials...) {
		if t.States[s].Kind != fsm.Absent {
			list = append(list, f.named(h, t.States[s].Name, t.States[s].Name))
		}
	}
	return list
}

// read returns the status that a node reads from a record.
func (f *fleet) read(h int, r record) (fsm.Status[string], error) {
	if r.state == "" {
		return f.nodes[h].At(f.absent(h)), nil
	}
	if h == 0 {
		r = record{backwards(f.renamed.states, r.state), backwards(f.renamed.states, r.origin)}
	}
	return f.nodes[h].ParseStatus(r.state, r.origin)
}

func (f *fleet) write(h int, s fsm.Status[string]) record {
	if f.nodes[h].Kind(s.State) == fsm.Absent {
		return record{}
	}
	return f.named(h, s.State, s.Origin)
}

// named returns the record of names of a node.
func (f *fleet) named(h int, state, origin string) record {
	if h == 0 {
		return record{translated(f.renamed.states, state), translated(f.renamed.states, origin)}
	}
	return record{state, origin}
}

// absent returns the absent state of a node, or "".
func (f *fleet) absent(h int) string {
	m := f.nodes[h]
	if s := m.Start().State; m.Kind(s) == fsm.Absent {
		return s
	}
	for s := range m.States() {
		if m.Kind(s) == fsm.Absent {
			return s
		}
	}
	return ""
}

// request is one request, by new names.
type request struct {
	event  string
	actor  fsm.Actor
	force  bool
	agrees valuation
}

func (f *fleet) requests(h int, yield func(request)) {
	for e := range f.nodes[h].Events() {
		if h == 0 {
			e = translated(f.renamed.events, e)
		}
		for _, a := range f.actors {
			for bits := range 1 << len(f.guards) {
				agrees := valuation{}
				for i, g := range f.guards {
					agrees[g] = bits>>i&1 > 0
				}
				for _, force := range []bool{false, true} {
					yield(request{e, fsm.Actor(a), force, agrees})
				}
			}
		}
	}
}

// fire fires a request on a node. A refusal is an error.
func (f *fleet) fire(h int, r record, q request) (to record, ignored, begins bool, err error) {
	m := f.nodes[h]
	if r.state == "" && f.absent(h) == "" {
		return r, false, false, fsm.ErrNotAllowed
	}
	at, err := f.read(h, r)
	if err != nil {
		return r, false, false, err
	}
	next := m.Next
	if q.force {
		next = m.NextForced
	}
	event, actor := q.event, q.actor
	if h == 0 {
		event, actor = backwards(f.renamed.events, event), fsm.Actor(backwards(f.renamed.actors, string(actor)))
	}
	step, err := next(context.Background(), at, event, actor, &q.agrees)
	if err != nil {
		return r, false, false, err
	}
	if step.Ignored {
		return r, true, false, nil
	}
	begins = m.Kind(step.State) == fsm.Transitional && (m.Kind(at.State).Resting() || m.Table().Rows[step.Row].Supersede)
	return f.write(h, step.Status), false, begins, nil
}

// spread adds the records that these nodes reach, without the held requests.
func (f *fleet) spread(t require.TestingT, records map[record]bool, hold func(int, record, request) bool, nodes ...int) {
	for n := -1; n != len(records); {
		n = len(records)
		for _, r := range slices.Collect(maps.Keys(records)) {
			for _, h := range nodes {
				if _, err := f.read(h, r); err != nil {
					continue
				}
				f.requests(h, func(q request) {
					if hold == nil || !hold(h, r, q) {
						if to, _, _, err := f.fire(h, r, q); err == nil {
							records[to] = true
						}
					}
				})
			}
		}
	}
}

func (f *fleet) alone(t require.TestingT, h int) map[record]bool {
	records := map[record]bool{{}: true}
	for _, r := range f.starts(h) {
		records[r] = true
	}
	f.spread(t, records, nil, h)
	return records
}

// field returns the records before a new node starts: those that old nodes write, and
// every state of rest, which an operator may have set.
func (f *fleet) field(t require.TestingT) map[record]bool {
	records := f.alone(t, 0)
	for _, s := range f.tables[0].States {
		if s.Kind.Resting() && s.Kind != fsm.Absent {
			records[f.named(0, s.Name, s.Name)] = true
		}
	}
	f.spread(t, records, nil, 0)
	return records
}

func (f *fleet) rests(t require.TestingT, h int, r record) bool {
	records := map[record]bool{r: true}
	f.spread(t, records, nil, h)
	for r := range records {
		if at, err := f.read(h, r); r.state == "" || err == nil && f.nodes[h].Kind(at.State).Resting() {
			return true
		}
	}
	return false
}

// wrong plays every request under the conditions of a verdict and returns a step that a
// table forbids, or "". may reports events that only new nodes accept.
func (f *fleet) wrong(t require.TestingT, drain []string, hold []evolve.Withheld, may func(state, event string) bool) string {
	withheld := func(h int, r record, q request) bool {
		if at, err := f.read(h, r); err == nil && r.state != "" && q.actor == fsm.Sweeper {
			if event, ok := f.deadline(h, at); ok && event == q.event {
				return false
			}
		}
		return slices.ContainsFunc(hold, func(w evolve.Withheld) bool {
			switch {
			case w.Event != q.event && translated(f.renamed.events, w.Event) != q.event:
				return false
			case w.State == "":
				return true
			case r.state == "":
				return w.State == f.absent(0) || w.State == f.absent(1) || translated(f.renamed.states, w.State) == f.absent(1)
			}
			return w.State == r.state || translated(f.renamed.states, w.State) == r.state
		})
	}
	drained := func(s string) bool {
		return slices.ContainsFunc(drain, func(d string) bool { return translated(f.renamed.states, d) == s })
	}
	records := map[record]bool{}
	field := f.field(t)
	for r := range field {
		if !drained(r.state) && !drained(r.origin) {
			records[r] = true
		}
	}
	byOld := maps.Clone(records) // what old nodes write, or have written
	if !slices.ContainsFunc(hold, func(w evolve.Withheld) bool { return w.Event == "" }) {
		if text := f.wrongEntry(); text != "" {
			return text
		}
		for h := range f.nodes {
			for _, r := range f.starts(h) {
				records[r] = true
				if h == 0 {
					byOld[r] = true
				}
			}
		}
	}
	before := [2]map[record]bool{field, f.alone(t, 1)}
	f.spread(t, records, withheld, 0, 1)
	for r := range records {
		f.requests(0, func(q request) {
			if to, _, _, err := f.fire(0, r, q); err == nil && !withheld(0, r, q) {
				byOld[to] = true
			}
		})
	}
	for r := range records {
		if drained(r.state) || drained(r.origin) {
			return fmt.Sprintf("an object gets to %v", r)
		}
		if text := f.wrongAt(t, r, withheld, before, byOld, may); text != "" {
			return fmt.Sprintf("in %v: %s", r, text)
		}
	}
	return ""
}

// wrongEntry returns the fault of objects that old nodes add, or "".
func (f *fleet) wrongEntry() string {
	first := func(h int) record { return f.write(h, f.nodes[h].Start()) }
	if first(0) == (record{}) {
		return ""
	}
	if first(0) != first(1) {
		return fmt.Sprintf("an old node adds objects in %v, a new one in %v", first(0), first(1))
	}
	for _, a := range f.tables[0].Actors {
		if name := fsm.Actor(translated(f.renamed.actors, string(a))); a != fsm.Sweeper && !slices.Contains(f.tables[1].Actors, name) {
			return fmt.Sprintf("an old node lets %s add objects", name)
		}
	}
	return ""
}

func (f *fleet) wrongAt(t require.TestingT, r record, withheld func(int, record, request) bool, before [2]map[record]bool, byOld map[record]bool, may func(state, event string) bool) (wrong string) {
	var at [2]fsm.Status[string]
	for h := range f.nodes {
		var err error
		if at[h], err = f.read(h, r); err != nil && r.state != "" {
			return fmt.Sprintf("node %d cannot read it: %v", h, err)
		}
	}
	if r.state != "" {
		o, n := f.nodes[0].Kind(at[0].State), f.nodes[1].Kind(at[1].State)
		if o != n && (o != fsm.Stable && o != fsm.Final || n != fsm.Stable && n != fsm.Final) {
			return fmt.Sprintf("kind %s or %s", o, n)
		}
		eo, has := f.deadline(0, at[0])
		en, hasNew := f.deadline(1, at[1])
		if has && (!hasNew || eo != en) || !has && hasNew && byOld[r] {
			return fmt.Sprintf("deadline %q or %q", eo, en)
		}
		var stuck [2]bool
		for h := range f.nodes {
			stuck[h] = f.nodes[h].Kind(at[h].State) == fsm.Transitional && !f.rests(t, h, r)
		}
		if (stuck[0] || stuck[1]) && !(before[0][r] && stuck[0]) && !(before[1][r] && stuck[1]) {
			return fmt.Sprintf("one of the nodes cannot bring it to rest: %v", stuck)
		}
	}
	for h := range f.nodes {
		f.requests(h, func(q request) {
			if withheld(h, r, q) || q.actor == fsm.Sweeper && !f.sweeps(at, q.event) {
				return
			}
			to, ignored, begins, err := f.fire(h, r, q)
			to2, ignored2, begins2, err2 := f.fire(1-h, r, q)
			switch {
			case err != nil:
			case err2 != nil && h == 1 && may(r.state, q.event):
			case err2 != nil:
				wrong = fmt.Sprintf("node %d takes %+v to %v, which the other forbids", h, q, to)
			case to != to2 || ignored != ignored2 || begins != begins2:
				wrong = fmt.Sprintf("%+v: node %d comes to %v %v %v, the other to %v %v %v", q, h, to, ignored, begins, to2, ignored2, begins2)
			}
		})
	}
	return wrong
}

// sweeps reports whether the sweeper of either node fires an event: a deadline has it,
// or a row names the sweeper.
func (f *fleet) sweeps(at [2]fsm.Status[string], event string) bool {
	for h, t := range f.tables {
		if e, ok := f.deadline(h, at[h]); ok && e == event {
			return true
		}
		for _, r := range t.Rows {
			from := slices.ContainsFunc(r.From, func(i int) bool { return t.States[i].Name == at[h].State })
			by := slices.ContainsFunc(r.Actors, func(i int) bool { return t.Actors[i] == fsm.Sweeper })
			fits := len(r.Origin) == 0 || slices.ContainsFunc(r.Origin, func(i int) bool { return t.States[i].Name == at[h].Origin })
			if from && by && fits && f.event(h, r.Event) == event {
				return true
			}
		}
	}
	return false
}

// event returns the new name of an event.
func (f *fleet) event(h, i int) string {
	if h == 1 {
		return f.tables[h].Events[i]
	}
	return translated(f.renamed.events, f.tables[h].Events[i])
}

func (f *fleet) deadline(h int, at fsm.Status[string]) (string, bool) {
	t := f.tables[h]
	s, o, err := t.ParseStatus(at.State, at.Origin)
	if err != nil {
		return "", false
	}
	_, row := t.Timeout(s, o)
	if row < 0 {
		return "", false
	}
	return f.event(h, t.Rows[row].Event), true
}
