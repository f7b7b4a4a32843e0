package fsmtest

import (
	"cmp"
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
	except map[string]string
	items  [3][]string // by kind

	mu   sync.Mutex
	seen map[string]bool
}

// The kinds of what a test covers.
const (
	states = iota
	transitions
	results
)

var kindNames = [...]string{"states", "transitions", "guard results"}

// Watch returns a machine that behaves like m, and the coverage of its table. The
// coverage counts everything that instances of the new machine do: it is their observer,
// in place of that of m. A system that moves its objects itself, such as a manager, reports
// its moves to [Coverage.Saw]. Watch panics for a table that is too large for a tour, see
// [tour.ErrTooLarge].
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
	c := &Coverage{table: t, except: cmp.Or(config, &CoverConfig{}).Except, seen: make(map[string]bool)}
	plan, err := tour.New(t, nil)
	if err != nil {
		panic(fmt.Sprintf("fsmtest: tour of the table of a machine: %v", err))
	}
	add := func(kind int, name string) {
		if !slices.Contains(c.items[kind], name) {
			c.items[kind] = append(c.items[kind], name)
		}
	}
	for _, s := range t.Entries() {
		add(states, stateName(t.States[s].Name))
	}
	steps := slices.Concat(plan.Sequences...)
	slices.SortStableFunc(steps, func(a, b tour.Step) int { return a.Row - b.Row })
	for _, s := range steps {
		add(states, stateName(s.To))
		add(transitions, transitionName(s.From, s.Event, s.To))
		if t.Rows[s.Row].Guard != "" {
			add(results, c.guardName(s.Row, true))
			add(results, c.guardName(s.Row, false))
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
//
// For an event that the table ignores, From is To. The observer of a manager does not
// receive such an event: the test calls Saw itself, or names the transition in Except.
func (c *Coverage) Saw(m fsm.Moved) {
	if m.Event == "" {
		c.count(stateName(m.To))
		return
	}
	if i := slices.IndexFunc(c.table.States, func(s fsm.TableState) bool { return s.Kind == fsm.Absent }); m.From == "" && i >= 0 {
		m.From = c.table.States[i].Name
	}
	c.count(stateName(m.From), stateName(m.To), transitionName(m.From, m.Event, m.To))
}

// Judge logs the coverage and reports to t what the tests have not covered.
func (c *Coverage) Judge(t testing.TB) {
	t.Helper()
	t.Log(c)
	var missing []string
	for kind := range c.items {
		missing = append(missing, c.missing(kind)...)
	}
	if rest := unexplained(t, c.table.Name, missing, c.except); len(rest) > 0 {
		t.Errorf("%s: not covered:\n\t%s", c.table.Name, strings.Join(rest, "\n\t"))
	}
}

// unexplained returns the names without an exception. It reports to t every exception
// that is not missing or has no reason.
func unexplained(t testing.TB, table string, missing []string, except map[string]string) []string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(except)) {
		switch {
		case !slices.Contains(missing, name):
			t.Errorf("%s: exception %q is needless: the test detects or covers it, or the table does not have it", table, name)
		case except[name] == "":
			t.Errorf("%s: exception %q has no reason", table, name)
		}
	}
	return slices.DeleteFunc(slices.Clone(missing), func(name string) bool { return except[name] != "" })
}

// missing returns the names of a kind that are not covered.
func (c *Coverage) missing(kind int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.items[kind]), func(name string) bool { return c.seen[name] })
}

// String returns the percentages, and the names that are not covered with the reasons
// of the exceptions.
func (c *Coverage) String() string {
	var head, tail strings.Builder
	fmt.Fprintf(&head, "coverage of %s:", c.table.Name)
	for kind, name := range kindNames {
		missing := c.missing(kind)
		if all := len(c.items[kind]); all > 0 {
			covered := all - len(missing)
			fmt.Fprintf(&head, " %d of %d %s (%d%%)", covered, all, name, covered*100/all)
		}
		for _, name := range missing {
			fmt.Fprintf(&tail, "\n\tnot covered: %s", name)
			if why := c.except[name]; why != "" {
				fmt.Fprintf(&tail, " (%s)", why)
			}
		}
	}
	return head.String() + tail.String()
}
