package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// A change with Expect applies to the record with that revision only.
func TestExpect(t *testing.T) {
	m, _ := vms(t)
	seen := ready(t, m, "a")
	now := fire(t, m, "a", "touch", user, &lifecycle.Change[size]{Expect: seen.Revision})
	_, err := m.Fire(t.Context(), "a", "touch", user, &lifecycle.Change[size]{Expect: seen.Revision})
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.ErrorIs(t, err, lifecycle.ErrRevision)
	require.Equal(t, 412, lifecycle.HTTPStatus(err))
	require.Equal(t, now, winnerOf(t, m, err))
	require.ErrorContains(t, err, `vm "a" is expected at revision "2" and is Ready at "3"`)
	_, err = m.Override(t.Context(), "a", "Failed", user, "broken", &lifecycle.Change[size]{Expect: seen.Revision})
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	err = commitAll(t.Context(), firing(m, "a", "touch", user, &lifecycle.Change[size]{Expect: seen.Revision}))
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.Equal(t, now, get(t, m, "a"))

	// What is gone is not made anew.
	w := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	_, err = w.Fire(t.Context(), "b", "start", user, &lifecycle.Change[size]{Expect: "2"})
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.ErrorContains(t, err, `work-vm "b" is expected at revision "2" and is absent`)
	_, err = w.Do(t.Context(), "b", "create", user, nothing, &lifecycle.Change[size]{Expect: "2"})
	require.ErrorIs(t, err, lifecycle.ErrConflict)
}

// Texts that some store could not keep are refused by every one.
func TestTexts(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	commits := store.commits
	for name, change := range map[string]lifecycle.Change[size]{
		"reason with NUL":       {Reason: "a\x00b"},
		"reason not UTF-8":      {Reason: "a\xffb"},
		"required id is empty":  {Require: []lifecycle.Precondition{{Key: lifecycle.Key{Machine: "vm"}}}},
		"required id too long":  {Require: []lifecycle.Precondition{m.Require(strings.Repeat("x", lifecycle.MaxID+1))}},
		"required in no state":  {Require: []lifecycle.Precondition{{Key: lifecycle.Key{Machine: "vm", ID: "a"}}}},
		"topic with NUL":        {Messages: []lifecycle.Message{{Topic: "\x00"}}},
		"message key not UTF-8": {Messages: []lifecycle.Message{{Topic: "t", Key: "\xff"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.Fire(t.Context(), "a", "touch", user, &change)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			_, err = m.Override(t.Context(), "a", "Failed", user, change.Reason+"\x00", &change)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		})
	}
	_, err := m.Report(t.Context(), "a", 1, "done", agent, &lifecycle.Change[size]{Reason: "\xff"})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Equal(t, commits, store.commits)
	// Bytes are bytes.
	fire(t, m, "a", "touch", user, &lifecycle.Change[size]{
		Messages: []lifecycle.Message{{Topic: "t", Payload: []byte("\x00\xff")}},
	})
}

// What an object is made with is edited, and nothing is kept from before: there
// was nothing.
func TestCreationSavesNothing(t *testing.T) {
	m, store := vms(t)
	made := creating(m, "a", "create", user, size{N: 1}, resize(5))
	require.NoError(t, commitAll(t.Context(), made))
	require.Equal(t, 5, made.Record().Payload.N)
	require.Nil(t, storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "a"}).Saved)
}
