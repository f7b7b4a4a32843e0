package fsmtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// CoverConfig says what tests have to cover. The zero value and nil are the
// defaults: everything.
type CoverConfig struct {
	// Least is how many in a hundred have to be covered, of the states, of the
	// transitions and of the outcomes of guards; what is excepted does not count.
	// 0 is 100; below 0, nothing is demanded.
	Least int
	// Except names what need not be covered, as [Coverage.String] does, each with
	// a reason. An exception that is covered, or is not of the table, is a fault.
	Except map[string]string
}

// Coverage is what was seen of a table: the states in which objects were, the
// transitions that they took, and what guards said. A transition is a row from one
// of its states to one; a guard has two outcomes in each row. What no object can
// reach or take is not counted, see [tour.Tour].
//
// [Watch] and [Cover] make one. It is safe for concurrent use.
type Coverage struct {
	table  *fsm.Table
	config CoverConfig
	parts  [3]part
	lost   []string

	mu        sync.Mutex
	seen      map[string]int // by name: how often
	ambiguous int            // moves that could be of several rows
	foreign   int            // and of none
}

// part is one of the things to cover.
type part struct {
	what  string
	names []string
}

// Watch returns a machine that does what m does and is watched. Instances of it
// count everything; for what asks the machine and moves objects itself, such as a
// manager, only guards are counted until [Coverage.Saw] is told of the moves. The
// machine tells no other observer; see [Coverage.Observer].
func Watch[S, E comparable, T any](m *fsm.Machine[S, E, T], config *CoverConfig) (*fsm.Machine[S, E, T], *Coverage) {
	c := newCoverage(m.Table(), config)
	watched := remade(m, func(row int) guardFunc[T] {
		return func(ctx context.Context, before, after *T) error {
			err := m.Check(ctx, row, before, after)
			c.guard(row, err == nil)
			return err
		}
	})
	return watched.Observe(c.Observer(fsm.Observer{})), c
}

// Cover is [Watch] for one test, or for what it calls: when t ends, it prints the
// coverage and fails t if it is not what the config demands.
func Cover[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], config *CoverConfig) *fsm.Machine[S, E, T] {
	t.Helper()
	watched, c := Watch(m, config)
	t.Cleanup(func() { c.Judge(t) })
	return watched
}

// Judge prints the coverage and fails t if it is not what the config demands. If
// the flags choose among subtests, nothing is demanded.
func (c *Coverage) Judge(t testing.TB) {
	t.Helper()
	t.Log(c)
	if f := flag.Lookup("test.run"); f != nil && strings.Contains(f.Value.String(), "/") {
		return
	}
	for _, fault := range c.Faults() {
		t.Error(fault)
	}
}

// Main runs the tests of a binary, prints what they have covered, and returns the
// exit code: 1 if they fail or cover less than is demanded. If the flags choose
// among the tests, what they cover is printed and not judged.
//
//	func TestMain(m *testing.M) {
//		var c *fsmtest.Coverage
//		Doors, c = fsmtest.Watch(Doors, nil)
//		os.Exit(fsmtest.Main(m, c))
//	}
func Main(m interface{ Run() int }, all ...*Coverage) int {
	code := m.Run()
	for _, c := range all {
		fmt.Println(c)
		if chosen() {
			continue
		}
		for _, fault := range c.Faults() {
			code = max(code, 1)
			fmt.Fprintln(os.Stderr, "FAIL:", fault)
		}
	}
	return code
}

// chosen reports whether the flags of package testing choose among the tests.
func chosen() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.short", "test.failfast"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}

func newCoverage(t *fsm.Table, config *CoverConfig) *Coverage {
	c := &Coverage{table: t, seen: make(map[string]int)}
	if config != nil {
		c.config = *config
	}
	c.parts[0].what, c.parts[1].what, c.parts[2].what = "states", "transitions", "guard outcomes"
	plan, err := tour.New(t, nil)
	if err != nil {
		c.lost = append(c.lost, err.Error())
		return c
	}
	known := make(map[string]bool)
	add := func(part int, name string) {
		if !known[name] {
			known[name] = true
			c.parts[part].names = append(c.parts[part].names, name)
		}
	}
	add(0, c.stateName(t.States[t.Initial].Name))
	var steps []tour.Step
	for _, s := range plan.All() {
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b tour.Step) int { return a.Row - b.Row })
	for _, s := range steps {
		add(0, c.stateName(s.To))
		add(1, c.rowName(s.Row, s.From, s.To))
		if t.Rows[s.Row].Guard != "" {
			add(2, c.guardName(s.Row, true))
			add(2, c.guardName(s.Row, false))
		}
	}
	for _, m := range plan.Missed {
		c.lost = append(c.lost, m.String())
	}
	return c
}

func (c *Coverage) stateName(state string) string { return "state " + state }

// rowName names a transition; rows of one event between two states have their
// number with them.
func (c *Coverage) rowName(row int, from, to string) string {
	name := c.arrow(row, from, to)
	for i := range c.table.Rows {
		r := &c.table.Rows[i]
		f, ok := c.table.StateIndex(from)
		if i != row && r.Event == c.table.Rows[row].Event && ok && slices.Contains(r.From, f) && c.leads(r, from, to) {
			return fmt.Sprintf("%s (row %d)", name, row)
		}
	}
	return name
}

func (c *Coverage) arrow(row int, from, to string) string {
	return fmt.Sprintf("%s -%s-> %s", from, c.table.Events[c.table.Rows[row].Event], to)
}

// leads reports whether a row may lead from one state to another.
func (c *Coverage) leads(r *fsm.TableRow, from, to string) bool {
	switch r.Then {
	case fsm.ThenMove:
		return c.table.States[r.To].Name == to
	case fsm.ThenIgnore:
		return from == to
	}
	return true
}

func (c *Coverage) guardName(row int, agrees bool) string {
	said := "refuses"
	if agrees {
		said = "agrees"
	}
	r := &c.table.Rows[row]
	to := "origin"
	switch r.Then {
	case fsm.ThenMove:
		to = c.table.States[r.To].Name
	case fsm.ThenIgnore:
		to = "ignored"
	}
	return fmt.Sprintf("guard %s %s: %s (row %d)", r.Guard, said, c.arrow(row, c.table.States[r.From[0]].Name, to), row)
}

func (c *Coverage) count(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.seen[name]++
	}
}

func (c *Coverage) guard(row int, agrees bool) { c.count(c.guardName(row, agrees)) }

// Observer returns an observer that counts and then tells the next one: for
// machines that are to have an observer of their own.
func (c *Coverage) Observer(next fsm.Observer) fsm.Observer {
	return fsm.Observer{
		Moved: func(ctx context.Context, m fsm.Moved) {
			c.Saw(m)
			if next.Moved != nil {
				next.Moved(ctx, m)
			}
		},
		Refused: func(ctx context.Context, err error) {
			if te, ok := errors.AsType[*fsm.TransitionError](err); ok && te.From != "" {
				c.count(c.stateName(te.From))
			}
			if next.Refused != nil {
				next.Refused(ctx, err)
			}
		},
	}
}

// Saw counts a move that a system has made: for those that ask a machine and move
// objects themselves. With a Row below 0, it is the row of the table by which the
// actor gets from there to there; where several could be, or none, as of a move
// past the table, the move is counted as such and covers states only. An empty From is the absent
// state, and a move without an event an object that was made as it is. The Machine
// is not looked at.
func (c *Coverage) Saw(m fsm.Moved) {
	if m.From == "" {
		i := slices.IndexFunc(c.table.States, func(s fsm.TableState) bool { return s.Kind == fsm.Absent })
		if m.Event == "" || i < 0 {
			c.count(c.stateName(m.To))
			return
		}
		m.From = c.table.States[i].Name
	}
	names := []string{c.stateName(m.From), c.stateName(m.To)}
	if m.Row < 0 {
		rows := c.rows(&m)
		if len(rows) != 1 {
			c.mu.Lock()
			if len(rows) == 0 {
				c.foreign++
			} else {
				c.ambiguous++
			}
			c.mu.Unlock()
			c.count(names...)
			return
		}
		m.Row = rows[0]
	}
	c.count(append(names, c.rowName(m.Row, m.From, m.To))...)
}

// rows returns those that a move may be of. What needs no force is not forced.
func (c *Coverage) rows(m *fsm.Moved) (rows []int) {
	state, origin, err := c.table.ParseStatus(m.From, m.Origin)
	event, ok := c.table.EventIndex(m.Event)
	if err != nil || !ok {
		return nil
	}
	for _, force := range []bool{false, true} {
		candidates, _ := c.table.Candidates(nil, state, origin, event, m.Actor, force)
		for _, row := range candidates {
			if to, _ := c.table.After(state, origin, row); c.table.States[to].Name == m.To {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			break
		}
	}
	return rows
}

// Missing names what was not covered, in the order of the table.
func (c *Coverage) Missing() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.parts {
		for _, name := range c.parts[i].names {
			if c.seen[name] == 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

// Faults says what is not as the config demands, nothing if all is.
func (c *Coverage) Faults() (faults []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	say := func(format string, args ...any) {
		faults = append(faults, c.table.Name+": "+fmt.Sprintf(format, args...))
	}
	least := c.config.Least
	if least == 0 {
		least = 100
	}
	known := make(map[string]bool)
	for i := range c.parts {
		p := &c.parts[i]
		covered, wanted := 0, 0
		var missing []string
		for _, name := range p.names {
			known[name] = true
			switch _, excepted := c.config.Except[name]; {
			case excepted:
			case c.seen[name] > 0:
				covered++
				wanted++
			default:
				wanted++
				missing = append(missing, name)
			}
		}
		if covered*100 < wanted*least {
			say("%d of %d %s are covered, fewer than %d%%: missing are\n\t%s", covered, wanted, p.what, least, strings.Join(missing, "\n\t"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.config.Except)) {
		switch {
		case !known[name]:
			say("%q is excepted, and the table has no such thing", name)
		case c.seen[name] > 0:
			say("%q is excepted, and covered", name)
		case c.config.Except[name] == "":
			say("%q is excepted without a reason", name)
		}
	}
	return faults
}

// String tells how much was covered and names what was not, with the reasons of
// the exceptions.
func (c *Coverage) String() string {
	missing := c.Missing()
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "coverage of %s:", c.table.Name)
	for i := range c.parts {
		p := &c.parts[i]
		covered := 0
		for _, name := range p.names {
			if c.seen[name] > 0 {
				covered++
			}
		}
		if len(p.names) == 0 {
			continue
		}
		fmt.Fprintf(&b, " %d of %d %s (%d%%)", covered, len(p.names), p.what, covered*100/len(p.names))
	}
	if c.ambiguous > 0 {
		fmt.Fprintf(&b, "; %d moves could be of several rows", c.ambiguous)
	}
	if c.foreign > 0 {
		fmt.Fprintf(&b, "; %d moves were of no row", c.foreign)
	}
	for _, name := range missing {
		fmt.Fprintf(&b, "\n\tnot covered: %s", name)
		if why := c.config.Except[name]; why != "" {
			fmt.Fprintf(&b, " (%s)", why)
		}
	}
	for _, lost := range c.lost {
		fmt.Fprintf(&b, "\n\tnobody can cover: %s", lost)
	}
	return b.String()
}
