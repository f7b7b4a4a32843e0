package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPostgresSetting: a connection has the setting, unless the URL has it.
func TestPostgresSetting(t *testing.T) {
	for given, want := range map[string]string{
		"postgres://u:p%40@h:5433/fleet":            "30000",
		"postgres://h/fleet?sslmode=disable":        "30000",
		"postgres://h/fleet?" + idleTimeout + "=60": "60",
	} {
		t.Run(given, func(t *testing.T) {
			config, err := postgres(given)
			require.NoError(t, err)
			require.Equal(t, map[string]string{idleTimeout: want}, config.RuntimeParams)
			require.Equal(t, "fleet", config.Database)
		})
	}
	db, _, err := connect("postgres://h/fleet") // it connects when it is used
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, _, err = connect("postgres://u:hunter2@h:port/")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

// TestNameOfFile: the name of a SQLite file may have any characters. Without a name SQLite
// would keep the VMs in a file that ends with the process.
func TestNameOfFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "50%25 of #1.db")
	db, _, err := connect(name)
	require.NoError(t, err)
	require.NoError(t, db.PingContext(t.Context()))
	require.NoError(t, db.Close())
	require.FileExists(t, name)
	_, _, err = connect("")
	require.EqualError(t, err, "-db names no file and no database")
}
