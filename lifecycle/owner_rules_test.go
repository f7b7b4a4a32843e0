package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestLeaveFails: the store fails, and the ownership goes on. Leave may be called again.
func TestLeaveFails(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	o := join(t, store, "p", 0)
	store.onCommit = func(int, *lifecycle.Commit, func() error) error { return errBoom }
	require.ErrorIs(t, o.Leave(t.Context()), errBoom)
	store.reset()
	require.NoError(t, o.Heartbeat(t.Context()))
	require.NoError(t, o.Leave(t.Context()))
	<-o.Lost()
}

// TestLeaveOfAReplacedOwner: another process has joined under the name, and this one has not
// noticed it. Leave does not end the other one.
func TestLeaveOfAReplacedOwner(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	o := join(t, store, "p", 0)
	rival := join(t, store, "p", 0)
	require.ErrorIs(t, o.Leave(t.Context()), lifecycle.ErrStale)
	<-o.Lost()
	require.NoError(t, rival.Heartbeat(t.Context()))
}

// TestJoinFails: the error names the call, the event and the owner.
func TestJoinFails(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	store.onCommit = func(int, *lifecycle.Commit, func() error) error { return errBoom }
	_, err := lifecycle.Join(t.Context(), store, "p", 0)
	failed, ok := errors.AsType[*lifecycle.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []any{"join", "join", "p", errBoom}, []any{failed.Verb, failed.Event, failed.ID, failed.Err})
}
