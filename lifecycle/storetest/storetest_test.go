package storetest

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Without a fault nothing fails, and nothing is skipped but what a store with
// all capabilities has no use for.
func TestSoundStorePasses(t *testing.T) {
	o := judge(t, (&fault{}).harness(t))
	require.Empty(t, o.failed)
	for name, said := range o.skipped {
		require.Regexp(t, `skipped: (the harness has no (Through|Restart|WrongClock)|the store declares (Messages|no OwnClock))$`, said, name)
	}
}

// Every planted fault makes the suite fail, in the demand that speaks of it. With
// INTERLOCK_LONG set, the whole suite runs, and the log has what else fails.
func TestFaultsAreCaught(t *testing.T) {
	long := os.Getenv("INTERLOCK_LONG") != ""
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			only := []string{f.demand}
			if long {
				only = nil
			}
			o := judge(t, f.harness(t), only...)
			names := slices.Sorted(maps.Keys(o.failed))
			require.Contains(t, names, f.demand)
			t.Logf("%s says: %s", f.demand, o.failed[f.demand])
			t.Logf("all that fail: %q", names)
		})
	}
}

// A demand that no store fails demands nothing.
func TestEveryDemandCanFail(t *testing.T) {
	shown := map[string]bool{}
	for _, f := range faults() {
		shown[f.demand] = true
	}
	for _, d := range demands() {
		require.True(t, shown[d.name], "no fault is planted for %s", d.name)
		delete(shown, d.name)
	}
	require.Empty(t, shown, "faults are planted for demands that there are not")
}

func faults() []fault {
	return slices.Concat(
		capabilityFaults(), getFaults(), commitFaults(), metadataFaults(), numberFaults(), tokenFaults(), batchFaults(),
		historyFaults(), messageFaults(), listFaults(), nameFaults(), endFaults(), networkFaults(), restartFaults(), clockFaults(), concurrentFaults(),
	)
}

// bare has nothing but what every store has.
type bare struct{ lifecycle.Store }

func (s bare) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 1} }

// What a store does not declare is not asked of it, and every demand that is
// left out says why.
func TestSkippedDemandsSayWhy(t *testing.T) {
	h := Harness{
		New: func(testing.TB) lifecycle.Store { return bare{newBent()} }, Synctest: true, Attempts: 10,
	}
	o := judge(t, h)
	// It takes what it does not declare, so that is found.
	require.Equal(t, []string{
		"Capabilities/undeclared_changes_are_refused", "Capabilities/undeclared_messages_are_refused",
	}, slices.Sorted(maps.Keys(o.failed)))
	why := map[string]string{
		"History/": "the store declares no History", "Token/holds": "the store declares no History",
		"Metadata/writes": "the store declares no History",
		"Messages/":       "the store declares no Messages", "Close/": "the store is no io.Closer",
		"Reopen/": "the harness has no Reopen", "Restart/": "the harness has no Restart", "Network/": "the harness has no Through",
		"Time/by":            "the store declares no OwnClock",
		"Network/cuts_under": "the store declares no History", "Restart/during": "the store declares no History",
		"Batch/":       "the store declares too few Changes in a commit",
		"Token/covers": "the store declares too few Changes in a commit", "Token/precedes": "the store declares too few Changes in a commit",
		"Concurrent/changes": "the store declares too few Changes in a commit", "Concurrent/preconditions": "the store declares too few Changes in a commit",
		"Concurrent/absence": "the store declares too few Changes in a commit",
	}
	for _, d := range demands() {
		want, most := "", 0
		for prefix, reason := range why {
			if strings.HasPrefix(d.name, prefix) && len(prefix) > most {
				most = len(prefix)
				want = d.says + "\nskipped: " + reason
			}
		}
		require.Equal(t, want, o.skipped[d.name], d.name)
	}
}

// A harness that cannot make a store fails, not the store.
func TestHarnessWithoutStore(t *testing.T) {
	o := judge(t, Harness{New: func(testing.TB) lifecycle.Store { return nil }}, "Get/absent_is_no_error")
	require.Contains(t, o.failed["Get/absent_is_no_error"], "New of the harness returned no store")
	require.PanicsWithValue(t, "storetest: Run needs a Harness with New", func() { Run(t, Harness{}) })
}

// Of the groups that are named every demand runs, and no other.
func TestGroups(t *testing.T) {
	run := func(groups ...string) (names []string) {
		h := Harness{Groups: groups}
		for _, d := range h.demands() {
			names = append(names, d.name)
		}
		return names
	}
	require.Len(t, run(), len(demands()))
	require.Equal(t, []string{
		"Capabilities/are_honest", "Capabilities/never_change", "Capabilities/undeclared_changes_are_refused", "Capabilities/undeclared_messages_are_refused",
		"Model/random_sequences_agree",
	}, run("Model", "Capabilities"))
	require.PanicsWithValue(t, `storetest: there is no group "model" of demands`, func() {
		Run(t, Harness{New: func(testing.TB) lifecycle.Store { return newBent() }, Groups: []string{"Get", "model"}})
	})
}

// Names of subtests are stable and say one thing each.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range demands() {
		require.Regexp(t, `^[A-Z][a-z]+/[a-z0-9_]+$`, d.name)
		require.Regexp(t, `^[A-Z].*\.$`, d.says)
		require.False(t, seen[d.name], d.name)
		seen[d.name] = true
	}
}
