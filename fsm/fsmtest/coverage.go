package fsmtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// CoverConfig refines [Watch]. The zero value and nil are the defaults.
type CoverConfig struct {
	// Least is the percentage of states, of transitions and of guard results that
	// the test has to cover, without the exceptions. Default: 100. A negative
	// number requires nothing.
	Least int
	// Except maps names, in the form of [Coverage.String], to reasons. The test
	// need not cover them. An exception that is covered, that the table does not
	// have, or that has no reason is a fault. Default: none.
	Except map[string]string
}

// Coverage counts what a test has seen of a table: the states of objects, the
// transitions that they took, and the results of guards. A transition is a state, an
// event and the next state. It omits what no object can reach. [Watch] returns one.
// It is safe for concurrent use and must not be copied.
type Coverage struct {
	table  *fsm.Table
	config CoverConfig
	items  []item

	mu      sync.Mutex
	seen    map[string]bool
	foreign int // moves that are no transitions of the table
}

// item is one name to cover.
type item struct{ kind, name string }

var itemKinds = []string{"states", "transitions", "guard results"}

// Watch returns a machine that behaves like m, and the coverage of its table. The
// coverage counts everything that instances of the new machine do. A system that
// moves its objects itself, such as a manager, reports its moves to [Coverage.Saw].
func Watch[S, E comparable, T any](m *fsm.Machine[S, E, T], config *CoverConfig) (*fsm.Machine[S, E, T], *Coverage) {
	c := newCoverage(m.Table(), config)
	watched := remade(m, func(row int) guardFunc[T] {
		return func(ctx context.Context, before, after *T) error {
			err := m.Check(ctx, row, before, after)
			c.count(c.guardName(row, err == nil))
			return err
		}
	})
	return watched.Observe(fsm.Observer{Moved: func(_ context.Context, m fsm.Moved) { c.Saw(m) }}), c
}

// newCoverage takes the names from a tour, so that they are those that objects reach.
func newCoverage(t *fsm.Table, config *CoverConfig) *Coverage {
	c := &Coverage{table: t, seen: make(map[string]bool)}
	if config != nil {
		c.config = *config
	}
	plan, err := tour.New(t, nil)
	if err != nil {
		panic(fmt.Sprintf("fsmtest: tour of the table of a machine: %v", err)) // New has checked it
	}
	add := func(kind, name string) {
		if i := (item{kind, name}); !slices.Contains(c.items, i) {
			c.items = append(c.items, i)
		}
	}
	add("states", stateName(t.States[t.Initial].Name))
	var steps []tour.Step
	for _, s := range plan.All() {
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b tour.Step) int { return a.Row - b.Row })
	for _, s := range steps {
		add("states", stateName(s.To))
		add("transitions", transitionName(s.From, s.Event, s.To))
		if t.Rows[s.Row].Guard != "" {
			add("guard results", c.guardName(s.Row, true))
			add("guard results", c.guardName(s.Row, false))
		}
	}
	return c
}

func stateName(state string) string { return "state " + state }

func transitionName(from, event, to string) string {
	return fmt.Sprintf("%s -%s-> %s", from, event, to)
}

func (c *Coverage) guardName(row int, passes bool) string {
	result := "refuses"
	if passes {
		result = "passes"
	}
	return fmt.Sprintf("guard %s %s in row %d", c.table.Rows[row].Guard, result, row)
}

func (c *Coverage) count(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.seen[name] = true
	}
}

// Saw counts a move and its two states. A move without a From starts in the absent
// state. A move without an event counts its new state only. A move that is no
// transition of the table, such as an override, counts its states only. Saw ignores
// Machine, Origin, Actor and Row.
func (c *Coverage) Saw(m fsm.Moved) {
	if m.Event == "" {
		c.count(stateName(m.To))
		return
	}
	if i := slices.IndexFunc(c.table.States, func(s fsm.TableState) bool { return s.Kind == fsm.Absent }); m.From == "" && i >= 0 {
		m.From = c.table.States[i].Name
	}
	name := transitionName(m.From, m.Event, m.To)
	c.count(stateName(m.From), stateName(m.To), name)
	if !slices.Contains(c.items, item{"transitions", name}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.foreign++
	}
}

// Judge logs the coverage and reports to t what the config requires and the tests
// have not covered.
func (c *Coverage) Judge(t testing.TB) {
	t.Helper()
	t.Log(c)
	for _, fault := range c.faults() {
		t.Errorf("%s: %s", c.table.Name, fault)
	}
}

// faults returns the faults that [Coverage.Judge] reports.
func (c *Coverage) faults() (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, kind := range itemKinds {
		covered, missing := c.split(kind)
		missing = slices.DeleteFunc(missing, func(name string) bool { _, excepted := c.config.Except[name]; return excepted })
		if wanted := len(covered) + len(missing); len(covered)*100 < wanted*leastOf(c.config.Least) {
			add("%d of %d %s are covered, want %d%%: missing\n\t%s", len(covered), wanted, kind,
				leastOf(c.config.Least), strings.Join(missing, "\n\t"))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.config.Except)) {
		switch {
		case !slices.ContainsFunc(c.items, func(i item) bool { return i.name == name }):
			add("exception %q is not in the table", name)
		case c.seen[name]:
			add("exception %q is covered", name)
		case c.config.Except[name] == "":
			add("exception %q has no reason", name)
		}
	}
	return faults
}

// leastOf returns the percentage that a config requires.
func leastOf(least int) int {
	if least == 0 {
		return 100
	}
	return least
}

// split returns the names of a kind that are covered and that are not.
func (c *Coverage) split(kind string) (covered, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.items {
		switch {
		case i.kind != kind:
		case c.seen[i.name]:
			covered = append(covered, i.name)
		default:
			missing = append(missing, i.name)
		}
	}
	return covered, missing
}

// String returns the percentages, and the names that are not covered with the reasons
// of the exceptions.
func (c *Coverage) String() string {
	var head, tail strings.Builder
	fmt.Fprintf(&head, "coverage of %s:", c.table.Name)
	for _, kind := range itemKinds {
		covered, missing := c.split(kind)
		if all := len(covered) + len(missing); all > 0 {
			fmt.Fprintf(&head, " %d of %d %s (%d%%)", len(covered), all, kind, len(covered)*100/all)
		}
		for _, name := range missing {
			fmt.Fprintf(&tail, "\n\tnot covered: %s", name)
			if why := c.config.Except[name]; why != "" {
				fmt.Fprintf(&tail, " (%s)", why)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.foreign > 0 {
		fmt.Fprintf(&head, "; %d moves are no transitions of the table", c.foreign)
	}
	return head.String() + tail.String()
}
