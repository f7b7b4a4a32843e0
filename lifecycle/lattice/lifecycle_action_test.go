package lattice_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// TestLocks runs testdata/locks/*.script. The command "do" has requests, one a line:
//
//	deploy SYSTEM ID PATH     AcquireDeploy
//	teardown SYSTEM ID        AcquireTeardown
//	release deploy SYSTEM ID
//	release teardown SYSTEM ID
//	holders SYSTEM PATH
//
// Its output has every result, and the actions that hold a lock after that.
func TestLocks(t *testing.T) {
	scripttest.Run(t, "testdata/locks/*.script", func(*testing.T) scripttest.Harness {
		var m lattice.LifecycleActionManager
		do := func(t *testing.T, a *scripttest.Args) string {
			var out strings.Builder
			for _, words := range a.Lines() {
				fmt.Fprintf(&out, "%s: %s\n", strings.Join(words, " "), request(t, &m, words))
			}
			for system := range m.Systems() {
				deploys, teardown := m.InProgressActions(system)
				fmt.Fprintf(&out, "-- %s: deploys %q, teardown %q\n", system, deploys, teardown)
			}
			return out.String()
		}
		return scripttest.Harness{Commands: map[string]scripttest.Command{"do": do}}
	})
}

func request(t *testing.T, m *lattice.LifecycleActionManager, w []string) string {
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

// Every pair of deploys, and every deploy with a teardown: two deploys are compatible if
// their paths differ and neither is above the other.
func TestCompatibleActions(t *testing.T) {
	paths := []string{"/", "/a", "/ab", "/a/b", "/a/bc", "/a/b/c", "/a/b/c/d", "/b", "/b/a", "/b/a/c"}
	above := func(p, q string) bool { return p == "/" || p == q || strings.HasPrefix(q, p+"/") }
	for _, p := range paths {
		for _, q := range paths {
			var m lattice.LifecycleActionManager
			require.NoError(t, m.AcquireDeploy("s", "first", lock.MustParse(p)))
			require.NoError(t, m.AcquireDeploy("other", "second", lock.MustParse(q)), "systems are independent")
			err := m.AcquireDeploy("s", "second", lock.MustParse(q))
			if !above(p, q) && !above(q, p) {
				require.NoError(t, err, "%s beside %s", q, p)
			} else {
				conflict, ok := errors.AsType[*lattice.ConflictingLifecycleActionError](err)
				require.True(t, ok, "%s beside %s", q, p)
				require.Equal(t, []lattice.DeployID{"first"}, conflict.Deploys)
				deploys, _ := m.InProgressActions("s")
				require.Equal(t, []lattice.DeployID{"first"}, deploys, "a refused request leaves no lock")
			}
			require.ErrorIs(t, m.AcquireTeardown("s", "t"), lock.ErrConflict)
			m.ReleaseDeploy("s", "first")
			m.ReleaseDeploy("s", "second")
			require.NoError(t, m.AcquireTeardown("s", "t"), "after %s and %s", p, q)
			require.ErrorIs(t, m.AcquireDeploy("s", "first", lock.MustParse(p)), lock.ErrConflict)
		}
	}
}

// A conflict names all conflicting holders, and no others.
func TestConflictNamesAll(t *testing.T) {
	var m lattice.LifecycleActionManager
	var conflicting []lattice.DeployID
	for i := range 40 {
		id := lattice.DeployID(fmt.Sprint("d", i))
		require.NoError(t, m.AcquireDeploy("s", id, lock.MustParse(fmt.Sprintf("/a%d/b%d", i%2, i))))
		if i%2 == 1 {
			conflicting = append(conflicting, id)
		}
	}
	err := m.AcquireDeploy("s", "d", lock.MustParse("/a1"))
	conflict, ok := errors.AsType[*lattice.ConflictingLifecycleActionError](err)
	require.True(t, ok)
	require.Equal(t, conflicting, conflict.Deploys)
	require.Empty(t, conflict.Teardown)
}

// Tokens grow, also if a system was idle in between.
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
