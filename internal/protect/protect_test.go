package protect_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/protect"
	"github.com/interlock-go/interlock/queue"
)

func TestCall(t *testing.T) {
	errBoom := errors.New("boom")
	require.NoError(t, protect.Call(func() error { return nil }))
	require.Equal(t, errBoom, protect.Call(func() error { return errBoom }))

	panicked, ok := errors.AsType[*queue.PanicError](protect.Call(func() error { panic(errBoom) }))
	require.True(t, ok)
	require.Equal(t, errBoom, panicked.Value)
	require.Contains(t, string(panicked.Stack), "TestCall")

	exited, ok := errors.AsType[*queue.PanicError](protect.Call(func() error { runtime.Goexit(); return nil }))
	require.True(t, ok)
	require.True(t, exited.Goexit)
}
