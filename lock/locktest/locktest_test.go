package locktest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func long() bool { return os.Getenv("INTERLOCK_LONG") != "" }

// A locker that is right because it is simple passes, and nothing is skipped.
func TestNaivePasses(t *testing.T) {
	h := (&fault{}).harness()
	h.Seed, h.Patience = 0, 0
	o := judgeAll(t, h)
	require.Empty(t, o.failed)
	require.Empty(t, o.skipped)
}

func TestDoubleUnlockIsCaught(t *testing.T) { caught(t, &classics.doubleUnlock) }
func TestRollbackIsCaught(t *testing.T)     { caught(t, &classics.rollback) }
func TestBargingIsCaught(t *testing.T)      { caught(t, &classics.barging) }
func TestStoredMarksAreCaught(t *testing.T) { caught(t, &classics.marks) }
func TestKeptNodesAreCaught(t *testing.T)   { caught(t, &classics.nodes) }

// caught runs the whole suite on a fault. It fails for the right reason: in the
// demands that speak of it.
func caught(t *testing.T, f *fault) {
	t.Helper()
	o := judgeAll(t, f.harness())
	names := slices.Sorted(maps.Keys(o.failed))
	t.Logf("all that fail: %q", names)
	require.Subset(t, names, f.demands)
	for _, name := range f.demands {
		t.Logf("%s says: %s", name, o.failed[name])
	}
}

// Every planted fault makes the suite fail, in the demands that speak of it.
// With INTERLOCK_LONG set, the whole suite runs, and the log has what else fails.
func TestFaultsAreCaught(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			if long() {
				caught(t, &f)
				return
			}
			o := judgeAll(t, f.harness(), f.demands...)
			for _, name := range f.demands {
				require.Contains(t, o.failed, name)
				t.Logf("%s says: %s", name, o.failed[name])
			}
		})
	}
}

// A demand that no locker fails demands nothing.
func TestEveryDemandCanFail(t *testing.T) {
	shown := map[string]bool{}
	for _, f := range faults() {
		for _, name := range f.demands {
			shown[name] = true
		}
	}
	known := map[string]bool{}
	for _, d := range everything(t) {
		known[d.name] = true
		if d.group() != "Vectors" {
			require.True(t, shown[d.name], "no fault is planted for %s", d.name)
		}
	}
	for name := range shown {
		require.True(t, known[name], "a fault is planted for %s, which there is not", name)
	}
}

func treeHarness() Harness {
	return Harness{
		New:        func(_ testing.TB, c lock.Config) lock.Locker { return lock.NewTree(&c) },
		FirstToken: true, MaxWaiters: true, MaxHolders: true, Synctest: true,
	}
}

// Without synctest, as an engine would run it, everything holds too, and what a
// harness does not declare is skipped and says so.
func TestTreeWithoutSynctest(t *testing.T) {
	h := Harness{
		New:   func(_ testing.TB, c lock.Config) lock.Locker { return lock.NewTree(&c) },
		Steps: 1_000, Histories: 20, Attempts: 20,
	}
	o := judgeAll(t, h)
	require.Empty(t, o.failed)
	why := map[string]string{}
	for _, d := range everything(t) {
		if missing := d.missing(&h); missing != "" {
			why[d.name] = d.says + "\nskipped: " + missing
		}
	}
	require.Len(t, why, 4)
	require.Equal(t, why, o.skipped)
}

// A harness that cannot make a locker fails, not the locker.
func TestHarnessWithoutLocker(t *testing.T) {
	const some = "G1_exclusion/pairs_follow_the_rule"
	o := judgeAll(t, Harness{New: func(testing.TB, lock.Config) lock.Locker { return nil }}, some)
	require.Contains(t, o.failed[some], "New of the harness returned no locker")
	require.PanicsWithValue(t, "locktest: Run needs a Harness with New", func() { Run(t, Harness{}) })
	require.PanicsWithValue(t, "locktest: RunVectors needs a Harness with New", func() { RunVectors(t, Harness{}, nil) })
}

// Names of subtests are stable and say one thing each; every guarantee has some.
func TestNames(t *testing.T) {
	seen, groups := map[string]bool{}, map[string]bool{}
	for _, d := range demands() {
		require.Regexp(t, `^(G[0-9]+_[a-z_]+|[A-Z][A-Za-z]+)/[a-z0-9_]+$`, d.name)
		require.Regexp(t, `^[A-Z].*\.$`, d.says)
		require.False(t, seen[d.name], d.name)
		seen[d.name] = true
		number, _, _ := strings.Cut(d.group(), "_")
		groups[number] = true
	}
	for i := range 12 {
		require.True(t, groups[fmt.Sprint("G", i+1)], "guarantee %d has no demand", i+1)
	}
}
