package lattice_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// TestLocks runs the stories of testdata/locks: who asks for what, one a line, and
// what the manager answers. The commands of a block are run one after the other:
//
//	deploy SYSTEM ID PATH     AcquireDeploy
//	teardown SYSTEM ID        AcquireTeardown
//	release deploy SYSTEM ID
//	release teardown SYSTEM ID
//	holders SYSTEM PATH
//
// and at the end of a block stands what is in progress.
func TestLocks(t *testing.T) {
	files, err := filepath.Glob("testdata/locks/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m lattice.LifecycleActionManager
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					require.Equal(t, "do", d.Cmd)
					var out strings.Builder
					for line := range strings.Lines(d.Input) {
						fmt.Fprintf(&out, "%s: %s\n", strings.TrimSpace(line), ask(t, &m, strings.Fields(line)))
					}
					for system := range m.Systems() {
						deploys, teardown := m.InProgressActions(system)
						fmt.Fprintf(&out, "-- %s: deploys %q, teardown %q\n", system, deploys, teardown)
					}
					return out.String()
				})
			})
		})
	}
}

func ask(t *testing.T, m *lattice.LifecycleActionManager, w []string) string {
	t.Helper()
	answer := func(err error) string {
		conflict, ok := errors.AsType[*lattice.ConflictingLifecycleActionError](err)
		switch {
		case err == nil:
			return "ok"
		case ok:
			require.ErrorIs(t, err, lock.ErrConflict)
			require.Equal(t, 409, lifecycle.HTTPStatus(err))
			require.NotEmpty(t, len(conflict.Deploys)+len(conflict.Teardown))
		case errors.Is(err, lock.ErrIDInUse):
			return "the id is in use: " + err.Error()
		default:
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.Equal(t, 400, lifecycle.HTTPStatus(err))
		}
		return err.Error()
	}
	path := func(s string) lock.Path {
		if s == "zero" {
			return lock.Path{}
		}
		return lock.MustParse(s)
	}
	word := func(s string) string { return strings.Trim(s, `"`) }
	switch w[0] {
	case "deploy":
		return answer(m.AcquireDeploy(lattice.SystemID(word(w[1])), lattice.DeployID(word(w[2])), path(w[3])))
	case "teardown":
		return answer(m.AcquireTeardown(lattice.SystemID(word(w[1])), lattice.TeardownID(word(w[2]))))
	case "release":
		if w[1] == "deploy" {
			return fmt.Sprint(m.ReleaseDeploy(lattice.SystemID(w[2]), lattice.DeployID(w[3])))
		}
		return fmt.Sprint(m.ReleaseTeardown(lattice.SystemID(w[2]), lattice.TeardownID(w[3])))
	case "holders":
		holders, err := m.Holders(t.Context(), lattice.SystemID(w[1]), path(w[2]))
		if err != nil {
			return answer(err)
		}
		var out []string
		for _, h := range holders {
			out = append(out, fmt.Sprintf("%s: %v at %v, token %v", h.Owner, h.Mode, h.Path, h.Token))
		}
		return strings.Join(out, "; ")
	}
	t.Fatalf("no command %q", w[0])
	return ""
}

// Every pair of deploys, and every deploy with a teardown, against the rule: two
// actions go together if neither's path is above the other's, or the same.
func TestWhatGoesTogether(t *testing.T) {
	paths := []string{"/", "/a", "/ab", "/a/b", "/a/bc", "/a/b/c", "/a/b/c/d", "/b", "/b/a", "/b/a/c"}
	above := func(p, q string) bool { return p == "/" || p == q || strings.HasPrefix(q, p+"/") }
	for _, p := range paths {
		for _, q := range paths {
			var m lattice.LifecycleActionManager
			require.NoError(t, m.AcquireDeploy("s", "first", lock.MustParse(p)))
			require.NoError(t, m.AcquireDeploy("other", "second", lock.MustParse(q)), "systems are their own")
			err := m.AcquireDeploy("s", "second", lock.MustParse(q))
			if !above(p, q) && !above(q, p) {
				require.NoError(t, err, "%s beside %s", q, p)
			} else {
				conflict, ok := errors.AsType[*lattice.ConflictingLifecycleActionError](err)
				require.True(t, ok, "%s beside %s", q, p)
				require.Equal(t, []lattice.DeployID{"first"}, conflict.Deploys)
				deploys, _ := m.InProgressActions("s")
				require.Equal(t, []lattice.DeployID{"first"}, deploys, "nothing is left behind")
			}
			require.ErrorIs(t, m.AcquireTeardown("s", "t"), lock.ErrConflict)
			m.ReleaseDeploy("s", "first")
			m.ReleaseDeploy("s", "second")
			require.NoError(t, m.AcquireTeardown("s", "t"), "after %s and %s", p, q)
			require.ErrorIs(t, m.AcquireDeploy("s", "first", lock.MustParse(p)), lock.ErrConflict)
		}
	}
}

// A conflict names everybody who is in the way, and nobody else.
func TestConflictNamesAll(t *testing.T) {
	var m lattice.LifecycleActionManager
	var inTheWay []lattice.DeployID
	for i := range 40 {
		id := lattice.DeployID(fmt.Sprint("d", i))
		require.NoError(t, m.AcquireDeploy("s", id, lock.MustParse(fmt.Sprintf("/a%d/b%d", i%2, i))))
		if i%2 == 1 {
			inTheWay = append(inTheWay, id)
		}
	}
	err := m.AcquireDeploy("s", "d", lock.MustParse("/a1"))
	conflict, ok := errors.AsType[*lattice.ConflictingLifecycleActionError](err)
	require.True(t, ok)
	require.Equal(t, inTheWay, conflict.Deploys)
	require.Empty(t, conflict.Teardown)
}

// Tokens grow, also where a system was idle in between, and over restarts.
func TestTokensGrow(t *testing.T) {
	m := lattice.LifecycleActionManager{FirstToken: 7 << 32}
	var last lock.Token
	for range 3 {
		for _, p := range []string{"/a", "/b"} {
			require.NoError(t, m.AcquireDeploy("s", "d", lock.MustParse(p)))
			holders, err := m.Holders(t.Context(), "s", lock.Root())
			require.NoError(t, err)
			require.Len(t, holders, 1)
			require.Greater(t, holders[0].Token, last)
			last = holders[0].Token
			require.True(t, m.ReleaseDeploy("s", "d"))
		}
	}
	require.Greater(t, last, lock.Token(7<<32))
	require.Empty(t, slices.Collect(m.Systems()), "an idle system is not kept")
}

// Many at once: of those who want the same part, one has it at any moment.
func TestActionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m lattice.LifecycleActionManager
		var in [3]int // of each part; guarded by its lock, which is what the race detector judges
		parts := []string{"/a", "/b/c", "/b/d"}
		for i := range 12 {
			go func() {
				id := lattice.DeployID(fmt.Sprint(i))
				for n := range 200 {
					part := (i + n) % len(parts)
					if m.AcquireDeploy("s", id, lock.MustParse(parts[part])) != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					in[part]++
					if in[part] != 1 {
						t.Errorf("%d are at %s", in[part], parts[part])
					}
					in[part]--
					m.ReleaseDeploy("s", id)
				}
			}()
		}
		for range 50 {
			if m.AcquireTeardown("s", "t") == nil {
				if in != [3]int{} {
					t.Errorf("a teardown beside %v", in)
				}
				m.ReleaseTeardown("s", "t")
			}
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
	})
}

func TestIntentionLockOfTheDocument(t *testing.T) {
	for _, c := range []struct {
		held, asked lock.Mode
		granted     bool
	}{
		{lattice.LockGranularityExclusive, lattice.LockGranularityExclusive, false},
		{lattice.LockGranularityExclusive, lattice.LockGranularityIntentionExclusive, false},
		{lattice.LockGranularityIntentionExclusive, lattice.LockGranularityExclusive, false},
		{lattice.LockGranularityIntentionExclusive, lattice.LockGranularityIntentionExclusive, true},
	} {
		var l lattice.IntentionLock
		unlocker, err := l.TryLock(c.held)
		require.NoError(t, err)
		require.Equal(t, c.held, unlocker.Mode())
		second, err := l.TryLock(c.asked)
		require.Equal(t, c.granted, err == nil, "%v beside %v", c.asked, c.held)
		unlocker.Unlock()
		second.Unlock()
		unlocker.Unlock() // once more gives nothing back
		_, err = l.TryLock(lattice.LockGranularityExclusive)
		require.NoError(t, err)
	}
}
