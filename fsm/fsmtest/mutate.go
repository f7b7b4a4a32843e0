package fsmtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
	"github.com/interlock-go/interlock/internal/suitetest"
)

// MutateConfig refines [Mutate]. The zero value and nil are the defaults.
type MutateConfig struct {
	// Least is the percentage of mutants that the test has to detect, without the
	// mutants of Survivors. Default: 100. A negative number requires nothing.
	Least int
	// Survivors maps the texts of mutants that the test need not detect to reasons.
	// An entry that is detected, that is no mutant, or that has no reason is a
	// fault. Default: none.
	Survivors map[string]string
	// Kinds are the kinds of mutants; see [tour.MutantConfig]. Default: all.
	Kinds []tour.MutantKind
	// EveryTarget makes a mutant for every other target of a row. Default: for one.
	EveryTarget bool
	// Timeout is the time after which a mutant counts as detected. Mutate then
	// cancels the context of the test and waits as long again; it abandons a test
	// that ignores its context. Default: 10s.
	Timeout time.Duration
}

// Score counts the mutants of a table.
type Score struct {
	Killed, Survived int      // mutants that the test detects, and does not
	Equivalent       int      // mutants that behave like the table
	Refused          int      // mutants that fsm.New refuses
	Survivors        []string // texts of the mutants that survived
}

// String returns the score in one line.
func (s Score) String() string {
	percent := 100
	if all := s.Killed + s.Survived; all > 0 {
		percent = s.Killed * 100 / all
	}
	return fmt.Sprintf("%d of %d mutants detected (%d%%); %d are equivalent, fsm.New refuses %d",
		s.Killed, s.Killed+s.Survived, percent, s.Equivalent, s.Refused)
}

// Mutate measures a test of a machine. It runs the test with machines whose tables
// have one small fault each, see [tour.Mutants], and logs the score and the mutants
// that survived. It fails t if the test detects fewer than the config requires, or if
// the test fails with m itself.
//
// The test gets a testing.TB of its own that records failures. It cannot start
// subtests. Directories and environment variables are those of t, but diagramtest.Doc
// never rewrites a file for a mutant.
func Mutate[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], test func(t testing.TB, m *fsm.Machine[S, E, T]), config *MutateConfig) Score {
	t.Helper()
	if config == nil {
		config = &MutateConfig{}
	}
	timeout := cmp.Or(config.Timeout, 10*time.Second)
	ctx := context.Background()
	if detected, text := detects(ctx, t, m, test, timeout); detected {
		t.Errorf("%s: the test fails without a mutant:\n%s", m.Name(), text)
		return Score{}
	}
	mutants, err := tour.Mutants(m.Table(), &tour.MutantConfig{EveryTarget: config.EveryTarget, Kinds: config.Kinds})
	if err != nil {
		t.Fatal(err)
	}
	var score Score
	results := make(map[string]string) // by text; empty: survived
	for mutant := range mutants {
		if mutant.Equivalent {
			score.Equivalent++
			results[mutant.Text] = "is equivalent"
			continue
		}
		other, err := remake(m, mutant.Table, mutant.Rows, func(row int) guardFunc[T] {
			return func(ctx context.Context, before, after *T) error { return m.Check(ctx, row, before, after) }
		})
		if err != nil {
			score.Refused++
			results[mutant.Text] = "is refused by fsm.New"
			continue
		}
		if detected, _ := detects(suitetest.WithMutant(ctx), t, other, test, timeout); detected {
			score.Killed++
			results[mutant.Text] = "is detected"
			continue
		}
		score.Survived++
		score.Survivors = append(score.Survivors, mutant.Text)
		results[mutant.Text] = ""
	}
	config.judge(t, m.Name(), &score, results)
	return score
}

// judge logs the score and reports to t what the config requires and the test lacks.
func (c *MutateConfig) judge(t testing.TB, name string, score *Score, results map[string]string) {
	t.Helper()
	var b strings.Builder
	unexplained := 0
	for _, text := range score.Survivors {
		why := c.Survivors[text]
		if why == "" {
			why = "not explained"
			unexplained++
		}
		fmt.Fprintf(&b, "\n\tsurvived: %s: %s", text, why)
	}
	t.Logf("%s: %s%s", name, score, b.String())
	for _, text := range slices.Sorted(maps.Keys(c.Survivors)) {
		switch result, known := results[text]; {
		case !known:
			t.Errorf("%s: exception %q: there is no such mutant", name, text)
		case result != "":
			t.Errorf("%s: exception %q: the mutant %s", name, text, result)
		case c.Survivors[text] == "":
			t.Errorf("%s: exception %q has no reason", name, text)
		}
	}
	least := leastOf(c.Least)
	if judged := score.Killed + unexplained; score.Killed*100 < judged*least {
		t.Errorf("%s: %d of %d mutants are detected, want %d%%", name, score.Killed, judged, least)
	}
	if score.Killed+score.Survived == 0 && least > 0 {
		t.Errorf("%s: there is no mutant to run", name)
	}
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
