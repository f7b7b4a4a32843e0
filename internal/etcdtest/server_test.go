package etcdtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestServerKeepsItsDataAndItsPort(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client := server.Client(t)
	_, err := client.Put(t.Context(), "key", "value")
	require.NoError(t, err)
	for _, end := range []func(testing.TB){server.Stop, server.Kill} {
		before := server.Endpoint()
		end(t)
		server.Restart(t)
		require.Equal(t, before, server.Endpoint())
		got, err := client.Get(t.Context(), "key")
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1)
	}
}

func TestPausedServerAnswersLater(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client := server.Client(t)
	_, err := client.Put(t.Context(), "key", "value")
	require.NoError(t, err)
	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = client.Get(ctx, "key")
	require.Error(t, err)
	server.Continue(t)
	_, err = client.Get(t.Context(), "key")
	require.NoError(t, err)
}
