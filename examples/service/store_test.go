package main

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReleaseLocks: the URL has the setting, unless the user has set it.
func TestReleaseLocks(t *testing.T) {
	for given, want := range map[string]string{
		"postgres://u:p%40@h:5433/fleet":            "30000",
		"postgres://h/fleet?sslmode=disable":        "30000",
		"postgres://h/fleet?" + idleTimeout + "=60": "60",
	} {
		u, err := releaseLocks(given)
		require.NoError(t, err)
		before, err := url.Parse(given)
		require.NoError(t, err)
		after, err := url.Parse(u)
		require.NoError(t, err)
		require.Equal(t, want, after.Query().Get(idleTimeout))
		require.Equal(t, before.Query().Get("sslmode"), after.Query().Get("sslmode"))
		before.RawQuery, after.RawQuery = "", ""
		require.Equal(t, before, after)
	}
	_, err := releaseLocks("postgres://h:port/")
	require.Error(t, err)
}
