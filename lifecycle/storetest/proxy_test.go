package storetest

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo is an engine that answers every line with itself, and keeps what it got.
type echo struct {
	listener net.Listener
	mu       sync.Mutex
	got      string
}

func startEcho(t *testing.T) *echo {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := &echo{listener: listener}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				in := bufio.NewReader(c)
				for {
					line, err := in.ReadString('\n')
					e.mu.Lock()
					e.got += line
					e.mu.Unlock()
					if err != nil {
						_ = c.Close()
						return
					}
					_, _ = io.WriteString(c, line)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return e
}

func (e *echo) heard() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got
}

func dial(t *testing.T, p *Proxy) (net.Conn, *bufio.Reader) {
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

// ask sends a line and returns what comes back.
func ask(c net.Conn, in *bufio.Reader, line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return in.ReadString('\n')
}

// What the engine gets and what the store gets, at each place.
func TestProxyCutsAtItsPlace(t *testing.T) {
	for place, want := range map[Place]struct{ heard, answered string }{
		BeforeRequest: {"one\n", ""},
		InRequest:     {"one\ntwo", ""},
		AfterRequest:  {"one\ntwo\n", ""},
		InAnswer:      {"one\ntwo\n", "tw"},
	} {
		t.Run(place.String(), func(t *testing.T) {
			e := startEcho(t)
			p := NewProxy(t)
			p.To("tcp", e.listener.Addr().String())
			c, in := dial(t, p)
			p.Cut(place, 2)
			said, err := ask(c, in, "one")
			require.NoError(t, err)
			require.Equal(t, "one\n", said)
			require.False(t, p.Struck())
			said, err = ask(c, in, "two")
			require.Error(t, err)
			require.Equal(t, want.answered, said)
			require.True(t, p.Struck())
			require.Eventually(t, func() bool { return e.heard() == want.heard }, time.Minute, time.Millisecond, "the engine has %q", e.heard())

			// Another connection is not concerned, nor is one after that.
			c, in = dial(t, p)
			said, err = ask(c, in, "three")
			require.NoError(t, err)
			require.Equal(t, "three\n", said)
		})
	}
}

// What is held goes on when it is released, also if the store has hung up.
func TestProxyHolds(t *testing.T) {
	e := startEcho(t)
	p := NewProxy(t)
	p.To("tcp", e.listener.Addr().String())
	c, _ := dial(t, p)
	held := p.Hold(BeforeRequest, 1)
	_, err := io.WriteString(c, "late\n")
	require.NoError(t, err)
	<-held.Reached()
	require.NoError(t, c.Close())
	require.Empty(t, e.heard())
	held.Release()
	<-held.Settled()
	require.Equal(t, "late\n", e.heard())

	c, in := dial(t, p)
	held = p.Hold(AfterRequest, 1)
	_, err = io.WriteString(c, "kept\n")
	require.NoError(t, err)
	<-held.Reached()
	<-held.Settled()
	require.Equal(t, "late\nkept\n", e.heard())
	held.Release()
	said, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "kept\n", said)
}

func TestProxyDownAndUp(t *testing.T) {
	e := startEcho(t)
	p := NewProxy(t)
	p.To("tcp", e.listener.Addr().String())
	c, in := dial(t, p)
	_, err := ask(c, in, "one")
	require.NoError(t, err)
	p.Down()
	_, err = ask(c, in, "two")
	require.Error(t, err)
	c, in = dial(t, p) // the proxy takes it and lets it go
	_, err = ask(c, in, "three")
	require.Error(t, err)
	p.Up()
	c, in = dial(t, p)
	said, err := ask(c, in, "four")
	require.NoError(t, err)
	require.Equal(t, "four\n", said)
	require.Equal(t, "one\nfour\n", e.heard())
}

// An engine that is not there is a connection that ends at once.
func TestProxyWithoutEngine(t *testing.T) {
	p := NewProxy(t)
	p.To("tcp", "127.0.0.1:1")
	c, in := dial(t, p)
	_, err := ask(c, in, "one")
	require.Error(t, err)
}
