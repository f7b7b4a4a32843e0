package storetest

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lifecycle"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// A dozen checks miss one fault of Model in five at most, so 120 find it.
	checks := "120"
	if testing.Short() {
		checks = "600" // package rapid makes a fifth of them
	}
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.nofailfile": "true", "rapid.shrinktime": "0s"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// judge checks the demands whose names begin with a prefix on stores with a fault, and
// returns what failed and what was skipped, by demand.
func judge(t *testing.T, f fault, prefix string) (failed, skipped map[string]string) {
	t.Helper()
	failed, skipped = map[string]string{}, map[string]string{}
	wrap := func(s *faulty) store {
		if f.wrap != nil {
			return f.wrap(s)
		}
		return s
	}
	var first *faulty
	open := func(testing.TB) store {
		if f.remote != nil {
			return newRemote(f.remote)
		}
		first = newFaulty(f)
		return wrap(first)
	}
	config := &Config{Synctest: !f.timeless, WrongClock: f.ownClock, Exclusive: f.alone}
	config.Second = func(_ testing.TB, s store) store {
		switch s := s.(type) {
		case *remote:
			return s.second()
		case *faulty:
			if f.left != nil {
				return f.left(s)
			}
			return s.second()
		}
		return wrap(first.second())
	}
	if f.remote != nil {
		config.Network = func(testing.TB) (store, Network) {
			r := newRemote(f.remote)
			return r, r
		}
		config.Restart = func(_ testing.TB, s store) { s.(*remote).restartEngine() }
	}
	for _, d := range demands {
		if !strings.HasPrefix(d.name, prefix) {
			continue
		}
		d.run(t, config, func(t testing.TB) {
			switch r := suitetest.Record(t, func(t testing.TB) { d.check(newTester(t, open(t), config)) }); {
			case r.Failed():
				failed[d.name] = r.Text()
			case r.Skipped():
				skipped[d.name] = r.Text()
			}
		})
	}
	return failed, skipped
}

func TestStoreWithoutFaultPasses(t *testing.T) {
	failed, skipped := judge(t, fault{}, "")
	require.Empty(t, failed)
	for name, text := range skipped {
		require.Regexp(t, "^skipped: (Config.(Network|Restart|WrongClock) is not set)$", text, name)
	}
	unknown := lost(func(*remote, context.Context, *commits, error) error { return lifecycle.ErrUnknownOutcome })
	for _, f := range []fault{{remote: &remoteFault{}}, {remote: &remoteFault{early: true}}, unknown} {
		failed, skipped = judge(t, f, "Outage/")
		require.Empty(t, failed)
		require.Empty(t, skipped)
	}
	for n := range 3 {
		failed, _ = judge(t, fault{has: func(has *lifecycle.Capabilities) { has.Changes = n + 1 }}, "Commit/as_many_as_declared")
		require.Empty(t, failed, "a store that takes %d changes", n+1)
	}
	failed, skipped = judge(t, fault{ownClock: true, record: shift, query: wait}, "Time/clock_of_the_store")
	require.Empty(t, failed)
	require.Empty(t, skipped)
}

// A clock of whole seconds is found. That of a bubble begins at one, and stands still.
func TestWholeSecondsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := suitetest.Record(t, func(t testing.TB) {
			randomCommitsAgree(newTester(t, lifecycle.NewMemoryStore(), &Config{Exclusive: true}))
		})
		require.Contains(t, r.Text(), "every ChangedAt is a whole second")
	})
}

// A config must open a second store or declare that there is none. A group that does not
// exist is a failure: its demands would not run.
func TestConfigIsChecked(t *testing.T) {
	for _, config := range []*Config{nil, {}, {Synctest: true}} {
		require.ErrorContains(t, config.check(), "set Config.Second")
	}
	require.NoError(t, (&Config{Exclusive: true, Groups: []string{"Names", "Time"}}).check())
	require.NoError(t, (&Config{Second: func(_ testing.TB, s store) store { return s }}).check())
	require.ErrorContains(t, (&Config{Exclusive: true, Groups: []string{"Names", "Times"}}).check(),
		`unknown group "Times"`)
}

// Every planted fault is found by the demand that forbids it, and there is a fault for
// every demand. A fault of drivers that compare or cache in their process is found only
// because the suite uses two stores.
func TestFaultsAreFound(t *testing.T) {
	t.Cleanup(func() { patience = time.Minute }) // after the subtests
	patience = 2 * time.Second
	planted := map[string]bool{}
	for demand, list := range faults {
		require.True(t, slices.ContainsFunc(demands, func(d demandT) bool { return d.name == demand }), demand)
		for name, f := range list {
			planted[demand] = true
			t.Run(demand+"/"+name, func(t *testing.T) {
				t.Parallel()
				failed, _ := judge(t, f, demand)
				require.Contains(t, failed, demand)
				t.Log(failed[demand])
				if f.apart {
					f.alone = true
					failed, _ = judge(t, f, demand)
					require.Empty(t, failed, "with one store")
				}
			})
		}
	}
	for _, d := range demands {
		require.True(t, planted[d.name], "no fault is planted for %s", d.name)
	}
}

type demandT = demand

// A store without optional capabilities is asked for none of them, and every skipped
// demand has a reason.
func TestSkippedDemandsHaveAReason(t *testing.T) {
	type bare struct{ store }
	f := fault{
		has:  func(has *lifecycle.Capabilities) { *has = lifecycle.Capabilities{Changes: 1} },
		wrap: func(s *faulty) store { return bare{s} },
	}
	failed, skipped := judge(t, f, "")
	// The store takes what it does not declare, which one demand finds.
	require.Len(t, failed, 1)
	require.Contains(t, failed, "Commit/malformed_or_undeclared_is_refused")
	for name, reason := range map[string]string{
		"Concurrent/messages_are_read_once":    "skipped: the store declares no Messages",
		"Close/refuses_calls":                  "skipped: the store is not an io.Closer",
		"Outage/store_recovers":                "skipped: Config.Network is not set",
		"Outage/restart_keeps_everything":      "skipped: Config.Restart is not set",
		"Time/clock_of_the_store":              "skipped: Config.WrongClock is not set",
		"Concurrent/transactions_in_any_order": "skipped: the store declares fewer than 2 changes in a commit",
	} {
		require.Equal(t, reason, skipped[name], name)
	}
}

func TestMissingStoreFails(t *testing.T) {
	r := suitetest.Record(t, func(t testing.TB) { newTester(t, nil, &Config{Exclusive: true}) })
	require.True(t, r.Failed())
	require.Contains(t, r.Text(), "the test has opened no store")
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range demands {
		require.Regexp(t, `^[A-Z][a-z]+/[a-z_]+$`, d.name)
		require.False(t, seen[d.name], d.name)
		seen[d.name] = true
	}
	require.Equal(t, "in an answer", strings.Replace(InAnswer.String(), "the", "an", 1))
}
