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
	// Least is how many in a hundred mutants have to be noticed; explained ones do
	// not count. 0 is 100; below 0, nothing is demanded.
	Least int
	// Survivors names mutants that the test need not notice, by their text, each
	// with a reason. One that is noticed, or is no mutant, is a fault.
	Survivors map[string]string
	// Kinds are those to make, EveryTarget makes more of them: see
	// [tour.MutantConfig]. Default: all kinds, one target each.
	Kinds       []tour.MutantKind
	EveryTarget bool
	// Timeout ends a test that hangs: the mutant is noticed. The context of its t
	// is cancelled then; a test that ignores that is left behind. Default: 10s.
	Timeout time.Duration
}

// Score is what became of the mutants of a table.
type Score struct {
	Killed, Survived int      // noticed by the test, and not
	Equivalent       int      // proven to behave as the table: no test can notice
	Refused          int      // no machine can be made of them: [fsm.New] notices
	Survivors        []string // by text
}

// String tells the score in one line, for people.
func (s Score) String() string {
	percent := 100
	if all := s.Killed + s.Survived; all > 0 {
		percent = s.Killed * 100 / all
	}
	return fmt.Sprintf("%d of %d mutants noticed (%d%%); %d are equivalent, %d make no machine",
		s.Killed, s.Killed+s.Survived, percent, s.Equivalent, s.Refused)
}

// Mutate measures how good a test of a machine is: it runs the test with machines
// whose tables have one small fault each, see [tour.Mutants], and looks whether it
// notices. Then it prints the score and the mutants that survived, and fails t if
// fewer are noticed than the config demands.
//
// The test gets a t of its own, so that nothing of what it says or fails becomes of
// the outer one. It has to pass with m itself. It is a [testing.TB] and no
// [testing.T], because that cannot fail for itself: no subtests. Directories and
// environment variables are those of the outer test.
func Mutate[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], test func(t testing.TB, m *fsm.Machine[S, E, T]), config *MutateConfig) Score {
	t.Helper()
	if config == nil {
		config = &MutateConfig{}
	}
	timeout := cmp.Or(config.Timeout, 10*time.Second)
	if noticed, said := notices(t, m, test, timeout); noticed {
		t.Errorf("%s: the test fails without a mutant:\n%s", m.Name(), said)
		return Score{}
	}
	all, err := tour.Mutants(m.Table(), &tour.MutantConfig{EveryTarget: config.EveryTarget, Kinds: config.Kinds})
	if err != nil {
		t.Fatal(err)
	}
	var score Score
	fate := make(map[string]string)
	for mutant := range all {
		if mutant.Equivalent {
			score.Equivalent++
			fate[mutant.Text] = "is equivalent"
			continue
		}
		other, err := remake(m, mutant.Table, mutant.Rows, func(row int) guardFunc[T] {
			return func(ctx context.Context, before, after *T) error { return m.Check(ctx, row, before, after) }
		})
		if err != nil {
			score.Refused++
			fate[mutant.Text] = "makes no machine"
			continue
		}
		if noticed, _ := notices(t, other, test, timeout); noticed {
			score.Killed++
			fate[mutant.Text] = "is noticed"
			continue
		}
		score.Survived++
		score.Survivors = append(score.Survivors, mutant.Text)
		fate[mutant.Text] = ""
	}
	config.judge(t, m.Name(), &score, fate)
	return score
}

// judge prints the score and demands what is to be demanded.
func (c *MutateConfig) judge(t testing.TB, name string, score *Score, fate map[string]string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", name, score)
	unexplained := 0
	for _, text := range score.Survivors {
		why := c.Survivors[text]
		if why == "" {
			why = "not explained"
			unexplained++
		}
		fmt.Fprintf(&b, "\n\tsurvived: %s: %s", text, why)
	}
	t.Log(b.String())
	for _, text := range slices.Sorted(maps.Keys(c.Survivors)) {
		switch became, known := fate[text]; {
		case !known:
			t.Errorf("%s: there is no mutant %q that may survive", name, text)
		case became != "":
			t.Errorf("%s: %q may survive, but %s", name, text, became)
		case c.Survivors[text] == "":
			t.Errorf("%s: %q may survive without a reason", name, text)
		}
	}
	least := c.Least
	if least == 0 {
		least = 100
	}
	if judged := score.Killed + unexplained; score.Killed*100 < judged*least {
		t.Errorf("%s: %d of %d mutants are noticed, fewer than %d%%", name, score.Killed, judged, least)
	}
	if score.Killed+score.Survived == 0 && least > 0 {
		t.Errorf("%s: no mutant could be tried", name)
	}
}

// notices runs the test and reports whether it fails, or takes too long.
func notices[S, E comparable, T any](t testing.TB, m *fsm.Machine[S, E, T], test func(testing.TB, *fsm.Machine[S, E, T]), timeout time.Duration) (noticed bool, said string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	done := make(chan *suitetest.Recorder, 1)
	go func() { // ends with the test; one that hangs is left behind
		done <- suitetest.Record(t, func(t testing.TB) { test(ending{t, ctx}, m) })
	}()
	select {
	case r := <-done:
		return r.Failed(), r.Text()
	case <-ctx.Done():
	}
	// Told to end, it may still say what it has to say.
	select {
	case r := <-done:
		return true, r.Text()
	case <-time.After(timeout):
		return true, "it takes longer than " + timeout.String()
	}
}

// ending is a test with a context that ends.
type ending struct {
	testing.TB
	ctx context.Context
}

func (e ending) Context() context.Context { return e.ctx }
