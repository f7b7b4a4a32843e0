package lock_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// rights is what a mode allows at its node: to announce reading (a) or writing (b)
// below, to read all (r), to write all (w). Everything else about modes follows.
var rights = map[lock.Mode]string{lock.IS: "a", lock.IX: "ab", lock.S: "ar", lock.SIX: "abr", lock.X: "abrw"}

func subset(a, b string) bool {
	has := map[rune]bool{}
	for _, r := range b {
		has[r] = true
	}
	for _, r := range a {
		if !has[r] {
			return false
		}
	}
	return true
}

func TestCoversAndJoin(t *testing.T) {
	for _, a := range lock.Modes {
		for _, b := range lock.Modes {
			require.Equal(t, subset(rights[b], rights[a]), a.Covers(b), "%v covers %v", a, b)
			var least lock.Mode
			for _, m := range lock.Modes {
				if m.Covers(a) && m.Covers(b) && (least == 0 || least.Covers(m)) {
					least = m
				}
			}
			require.Equal(t, least, lock.Join(a, b), "%v and %v", a, b)
			if a.Covers(b) { // a stronger mode is compatible with fewer modes
				for _, m := range lock.Modes {
					require.False(t, lock.Compatible(a, m) && !lock.Compatible(b, m), "%v %v %v", a, b, m)
				}
			}
		}
		require.True(t, a.Covers(a.Intent()))
		require.Equal(t, a.Intent(), a.Intent().Intent())
		for _, b := range lock.Modes {
			require.Equal(t, lock.Compatible(a, b), lock.Compatible(b, a))
			require.True(t, lock.Compatible(a.Intent(), b.Intent()), "intentions never conflict")
		}
	}
}

// An invalid mode has no intention and is compatible with none.
func TestInvalidModes(t *testing.T) {
	for _, bad := range badModes {
		t.Run(bad.String(), func(t *testing.T) {
			require.Zero(t, bad.Intent())
			require.False(t, bad.Covers(bad))
			for _, m := range append(lock.Modes[:], badModes...) {
				require.False(t, lock.Compatible(bad, m), "%v", m)
				require.False(t, lock.Compatible(m, bad), "%v", m)
				require.False(t, bad.Covers(m), "%v", m)
				require.False(t, m.Covers(bad), "%v", m)
				require.Zero(t, lock.Join(bad, m), "%v", m)
				require.Zero(t, lock.Join(m, bad), "%v", m)
			}
		})
	}
}

func TestModeAsText(t *testing.T) {
	for _, m := range lock.Modes {
		parsed, err := lock.ParseMode(m.String())
		require.NoError(t, err)
		require.Equal(t, m, parsed)
		text, err := json.Marshal(map[lock.Mode]lock.Mode{m: m})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(`{"%v":"%v"}`, m, m), string(text))
		back := map[lock.Mode]lock.Mode{}
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, map[lock.Mode]lock.Mode{m: m}, back)
	}
	for _, name := range []string{"", "x", "XX", "SX", "IXS", " X", "0"} {
		_, err := lock.ParseMode(name)
		require.ErrorIs(t, err, lock.ErrInvalid, name)
		require.EqualError(t, err, fmt.Sprintf("lock: mode %q is none of IS, IX, S, SIX and X", name))
		m := lock.S
		require.ErrorIs(t, m.UnmarshalText([]byte(name)), lock.ErrInvalid)
		require.Equal(t, lock.S, m)
	}
	for _, m := range badModes {
		require.Equal(t, fmt.Sprintf("Mode(%d)", m), m.String())
		_, err := m.MarshalText()
		require.ErrorIs(t, err, lock.ErrInvalid)
	}
}

// badModes include numbers whose lower bits are a valid mode.
var badModes = []lock.Mode{0, lock.X + 1, 7, 8, 8 + lock.X, 16 + lock.IS, 255}

func TestNormalize(t *testing.T) {
	for name, c := range map[string]struct{ in, want []lock.Request }{
		"one request":              {reqs("X at /a"), reqs("X at /a")},
		"siblings are sorted":      {reqs("X at /b", "S at /a"), reqs("S at /a", "X at /b")},
		"a request repeats":        {reqs("X at /a", "X at /a"), reqs("X at /a")},
		"modes of a node join":     {reqs("IX at /a", "S at /a"), reqs("SIX at /a")},
		"parents come first":       {reqs("S at /a", "IS at /", "IX at /a", "X at /a/b"), reqs("IS at /", "SIX at /a", "X at /a/b")},
		"a prefix is not a parent": {reqs("X at /a-b", "X at /a/b", "X at /a"), reqs("X at /a", "X at /a/b", "X at /a-b")},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.in)
			got, err := lock.Normalize(c.in)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, before, c.in, "the list itself is not changed")
			again, err := lock.Normalize(got)
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
	require.Equal(t, "SIX at /a/b", reqs("SIX at /a/b")[0].String())
}
