package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// inStream runs a test, in virtual time, with a client that has asked for the stream and
// has read nothing. shutdown is the begin of a shutdown.
func inStream(t *testing.T, test func(t *testing.T, vms *manager, client io.Reader, shutdown func() error)) {
	synctest.Test(t, func(t *testing.T) {
		vms, server, client := served(t)
		_, err := io.WriteString(client, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		test(t, vms, client, func() error {
			within, cancel := context.WithTimeout(t.Context(), grace/2)
			defer cancel()
			return server.Shutdown(within)
		})
	})
}

// TestStalledReader: a client that does not read its stream does not use up the time that a
// shutdown has for the work.
func TestStalledReader(t *testing.T) {
	inStream(t, func(t *testing.T, _ *manager, _ io.Reader, shutdown func() error) {
		synctest.Wait() // the answer has begun
		require.NoError(t, shutdown())
	})
}

// TestQuietStream: a stream without changes lives on.
func TestQuietStream(t *testing.T) {
	inStream(t, func(t *testing.T, vms *manager, client io.Reader, shutdown func() error) {
		text := make(chan string)
		go func() {
			read, _ := io.ReadAll(client)
			text <- string(read)
		}()
		time.Sleep(time.Hour)
		_, err := vms.Create(t.Context(), "vm-1", Create, User, VM{}, nil)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, shutdown())
		require.Contains(t, <-text, `"name":"vm-1"`)
	})
}
