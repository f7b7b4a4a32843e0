package fsmtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
	"github.com/interlock-go/interlock/internal/suitetest"
)

// MutateConfig refines [Mutate]. The zero value and nil are the defaults.
type MutateConfig struct {
	// Survivors maps the texts of mutants that the test need not detect to reasons.
	// An entry that is detected, that is not a mutant, or that has no reason is a
	// fault. Default: none.
	Survivors map[string]string
	// Timeout is the time after which a mutant counts as detected. Mutate then
	// cancels the context of the test and waits as long again; it abandons a test
	// that ignores its context. Default: 10s.
	Timeout time.Duration
}

// Mutate measures a test of a machine. It runs the test with machines whose tables
// have one small fault each, see [tour.Mutants], and logs the score and the mutants
// that survived. It fails t if the test does not detect a mutant that the config does not
// name, if the test fails with m itself, or if no mutant counts. A mutant that behaves like
// the table does not count, nor one that fsm.New refuses for more than a missing timeout.
// Mutants have the observer of m: the [Coverage] of a machine of [Watch] counts their moves.
//
// The test gets a testing.TB of its own that records failures. It cannot start
// subtests. Directories and environment variables are those of t, but diagramtest.Doc
// never rewrites a file for a mutant. A test with package rapid writes a file for each
// mutant that it detects, unless it runs with -rapid.nofailfile.
func Mutate[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], test func(t testing.TB, m *fsm.Machine[S, E, T]), config *MutateConfig) {
	t.Helper()
	config = cmp.Or(config, &MutateConfig{})
	timeout := cmp.Or(config.Timeout, 10*time.Second)
	ctx := context.Background()
	if detected, text := detects(ctx, t, m, test, timeout); detected {
		t.Errorf("%s: the test fails without a mutant:\n%s", m.Name(), text)
		return
	}
	mutants, err := tour.Mutants(m.Table())
	if err != nil {
		t.Fatal(err)
	}
	killed, equivalent, refused := 0, 0, 0
	var survivors []string
	for mutant := range mutants {
		other, ok := mutated(m, &mutant)
		switch {
		case mutant.Equivalent:
			equivalent++
			continue
		case !ok:
			refused++
			continue
		}
		if detected, _ := detects(suitetest.WithMutant(ctx), t, other, test, timeout); detected {
			killed++
		} else {
			survivors = append(survivors, mutant.Text)
		}
	}
	all := killed + len(survivors)
	text := fmt.Sprintf("%s: %d of %d mutants detected; %d are equivalent, fsm.New refuses %d", m.Name(), killed, all, equivalent, refused)
	for _, mutant := range survivors {
		text += "\n\tsurvived: " + mutant + ": " + cmp.Or(config.Survivors[mutant], "not explained")
	}
	t.Log(text)
	if rest := unexplained(t, m.Name(), survivors, config.Survivors); len(rest) > 0 {
		t.Errorf("%s: the test does not detect %d mutants", m.Name(), len(rest))
	}
	if all == 0 {
		t.Errorf("%s: there is no mutant to run", m.Name())
	}
}

// mutated returns the machine of a mutant. It returns false for a table that fsm.New
// refuses for another reason than a missing timeout.
func mutated[S, E comparable, T any](m *fsm.Machine[S, E, T], mutant *tour.Mutant) (*fsm.Machine[S, E, T], bool) {
	if slices.ContainsFunc(mutant.Table.Problems(), func(p fsm.Problem) bool { return p.Code == fsm.EndlessTimeout }) {
		return nil, false
	}
	other, err := m.With(mutant.Table, func(row int) fsm.Guard[T] {
		return fsm.When(mutant.Table.Rows[row].Guard, func(ctx context.Context, before, after *T) error {
			return m.Check(ctx, mutant.Rows[row], before, after)
		})
	})
	return other, err == nil
}

// detects runs the test and reports whether it fails or exceeds the timeout. It also
// returns the output.
func detects[S, E comparable, T any](ctx context.Context, t testing.TB, m *fsm.Machine[S, E, T], test func(testing.TB, *fsm.Machine[S, E, T]), timeout time.Duration) (bool, string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan *suitetest.Recorder, 1)
	go func() { // ends with the test
		done <- suitetest.Record(t, func(t testing.TB) { test(limited{t, ctx}, m) })
	}()
	select {
	case r := <-done:
		return r.Failed(), r.Text()
	case <-ctx.Done():
	}
	select { // the test may end after its context
	case r := <-done:
		return true, r.Text()
	case <-time.After(timeout):
		return true, "the test takes longer than " + timeout.String()
	}
}

// limited is a testing.TB with a context that ends. testing.TB has no other way to
// pass one.
type limited struct {
	testing.TB
	ctx context.Context
}

func (l limited) Context() context.Context { return l.ctx }
