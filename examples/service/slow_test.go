package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestSlowClient: a client that does not send the rest of its request, or does not read its
// answer, leaves time for the work at a shutdown.
func TestSlowClient(t *testing.T) {
	for name, request := range map[string]string{
		"body":   "POST /vms HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"answer": "GET /vms HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, server, client := served(t)
				_, err := io.WriteString(client, request)
				require.NoError(t, err)
				synctest.Wait()
				within, cancel := context.WithTimeout(t.Context(), grace-1)
				defer cancel()
				require.NoError(t, server.Shutdown(within))
			})
		})
	}
}

// TestHeadOfStream: a request for the header of the stream ends, and the next request of the
// connection is answered.
func TestHeadOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server, client := served(t)
		require.NoError(t, client.SetDeadline(time.Now().Add(time.Minute)))
		answers := bufio.NewReader(client)
		for _, request := range []string{"HEAD /events", "GET /vms/vm-1"} {
			_, err := io.WriteString(client, request+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			require.NoError(t, err)
			method, _, _ := strings.Cut(request, " ")
			answer, err := http.ReadResponse(answers, &http.Request{Method: method})
			require.NoError(t, err, request)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err, request)
		}
		require.NoError(t, server.Shutdown(t.Context()))
	})
}

// served returns the VMs of a server of the API, whose streams end with it, and a connection
// to it.
func served(t *testing.T) (*manager, *http.Server, net.Conn) {
	vms := lifecycle.Must(vmTable, lifecycle.NewMemoryStore(), &lifecycle.Config[Event]{})
	ending, end := context.WithCancel(t.Context())
	server := newServer((&api{vms}).routes(ending))
	server.RegisterOnShutdown(end)
	client, conn := net.Pipe()
	t.Cleanup(func() { client.Close() })
	listener := once{accept: make(chan net.Conn, 1)}
	listener.accept <- conn
	go server.Serve(listener)
	return vms, server, client
}

// once is a listener with one connection.
type once struct {
	net.Listener
	accept chan net.Conn
}

func (o once) Accept() (net.Conn, error) {
	conn, ok := <-o.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (o once) Close() error { close(o.accept); return nil }
