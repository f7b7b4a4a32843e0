package sqltest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a store and its server, and loses what it is told to.
type proxy struct {
	listener net.Listener
	server   string
	cut      atomic.Uint64          // one in so many chunks ends its connection; 0: none
	stall    atomic.Pointer[[]byte] // a request with this in it is never answered, nor is anything after it
	cuts     atomic.Int64
	stalls   atomic.Int64

	mu    sync.Mutex
	open  map[net.Conn]bool
	group sync.WaitGroup
}

// newProxy listens until the test ends.
func newProxy(t testing.TB, server string) *proxy {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, server: server, open: map[net.Conn]bool{}}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.endAll()
		p.group.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// endAll ends all connections that are open.
func (p *proxy) endAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = true, true
		p.mu.Unlock()
		stalled := new(atomic.Bool)
		end := func() {
			_ = client.Close()
			_ = server.Close()
		}
		p.group.Go(func() { p.carry(server, client, stalled, true); end() })
		p.group.Go(func() { p.carry(client, server, stalled, false); end() })
	}
}

// carry copies one way, until it is to cut or one end is closed.
func (p *proxy) carry(to io.Writer, from io.Reader, stalled *atomic.Bool, requests bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if trap := p.stall.Load(); requests && trap != nil && bytes.Contains(bytes.ToUpper(buffer[:n]), *trap) {
			stalled.Store(true)
			p.stalls.Add(1)
		}
		if one := p.cut.Load(); one > 0 && rand.Uint64N(one) == 0 {
			p.cuts.Add(1)
			return
		}
		if !requests && stalled.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
