package proxy_test

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is an engine that answers every line with the line.
type echo struct {
	listener net.Listener
	mu       sync.Mutex
	received string
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
			serving.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return e
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		e.mu.Lock()
		e.received += line
		e.mu.Unlock()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, line)
	}
}

func (e *echo) content() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.received
}

func start(t *testing.T) (*echo, *proxy.Proxy) {
	e := startEcho(t)
	return e, proxy.New(t, "tcp", e.listener.Addr().String())
}

// client is a connection of a store.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, p *proxy.Proxy) client {
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return client{c, bufio.NewReader(c)}
}

// ask sends a line and returns the answer.
func (c client) ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return c.in.ReadString('\n')
}

func TestCut(t *testing.T) {
	for at, want := range map[storetest.Place]struct{ received, answered string }{
		storetest.BeforeRequest: {"one\n", ""},
		storetest.InRequest:     {"one\ntwo", ""},
		storetest.AfterRequest:  {"one\ntwo\n", ""},
		storetest.InAnswer:      {"one\ntwo\n", "tw"},
	} {
		t.Run(at.String(), func(t *testing.T) {
			e, p := start(t)
			c := dial(t, p)
			struck := p.Cut(at, 2)
			answer, err := c.ask("one")
			require.NoError(t, err)
			require.Equal(t, "one\n", answer)
			require.False(t, struck())
			answer, err = c.ask("two")
			require.Error(t, err)
			require.Equal(t, want.answered, answer)
			require.True(t, struck())
			require.Eventually(t, func() bool { return e.content() == want.received }, time.Minute, time.Millisecond)

			answer, err = dial(t, p).ask("three")
			require.NoError(t, err, "another connection")
			require.Equal(t, "three\n", answer)
		})
	}
}

// A held request reaches the engine after held has returned, also if the store has
// hung up. A held answer is settled before it reaches the store.
func TestHold(t *testing.T) {
	e, p := start(t)
	c := dial(t, p)
	settled := p.Hold(storetest.BeforeRequest, 1, func() {
		_ = c.Close()
		require.Empty(t, e.content())
	})
	_, err := io.WriteString(c, "late\n")
	require.NoError(t, err)
	require.Eventually(t, settled, time.Minute, time.Millisecond)
	require.Equal(t, "late\n", e.content())

	c = dial(t, p)
	held := false
	settled = p.Hold(storetest.AfterRequest, 1, func() { held = e.content() == "late\nkept\n" })
	answer, err := c.ask("kept")
	require.NoError(t, err)
	require.Equal(t, "kept\n", answer)
	require.True(t, settled())
	require.True(t, held)
	require.False(t, p.Hold(storetest.AfterRequest, 1, nil)(), "nothing was held")
}

// A request that the engine does not answer, like some frames of HTTP/2, is settled all the
// same. This takes ten seconds.
func TestHoldWithoutAnswer(t *testing.T) {
	t.Parallel()
	e, p := start(t)
	c := dial(t, p)
	settled := p.Hold(storetest.BeforeRequest, 1, func() {})
	_, err := io.WriteString(c, "not a line")
	require.NoError(t, err)
	require.Eventually(t, settled, time.Minute, time.Millisecond)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return e.content() == "not a line" }, time.Minute, time.Millisecond)
}

func TestSetDown(t *testing.T) {
	e, p := start(t)
	c := dial(t, p)
	_, err := c.ask("one")
	require.NoError(t, err)
	p.SetDown(true)
	_, err = c.ask("two")
	require.Error(t, err)
	_, err = dial(t, p).ask("three")
	require.Error(t, err)
	p.SetDown(false)
	answer, err := dial(t, p).ask("four")
	require.NoError(t, err)
	require.Equal(t, "four\n", answer)
	require.Equal(t, "one\nfour\n", e.content())
}

func TestCutAtRandom(t *testing.T) {
	_, p := start(t)
	p.CutAtRandom(2)
	failed := 0
	for range 40 {
		if _, err := dial(t, p).ask("line"); err != nil {
			failed++
		}
	}
	require.Positive(t, failed)
	require.Equal(t, failed, p.Cuts())
	p.CutAtRandom(0)
	_, err := dial(t, p).ask("line")
	require.NoError(t, err)
}

func TestStorm(t *testing.T) {
	_, p := start(t)
	_, other := start(t)
	calm := proxy.Storm([]*proxy.Proxy{p, other}, 1, 20*time.Millisecond)
	_, err := dial(t, other).ask("one")
	require.Error(t, err)
	calm()
	for _, p := range []*proxy.Proxy{p, other} {
		_, err := dial(t, p).ask("two")
		require.NoError(t, err)
	}
}

func TestEngineIsMissing(t *testing.T) {
	_, err := dial(t, proxy.New(t, "tcp", "127.0.0.1:1")).ask("one")
	require.Error(t, err)
}
