// Package proxy has a TCP proxy that breaks the connections between a store and its
// engine at exact places. Proxy is the [storetest.Network] of the stores of this
// repository. It depends on no protocol: a request begins with the first byte from the store
// after a byte from the engine.
package proxy

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// Proxy listens on an address of this machine and connects to an engine. It is safe for
// concurrent use and must not be copied.
type Proxy struct {
	listener net.Listener
	network  string // of the engine
	address  string
	running  sync.WaitGroup

	mu       sync.Mutex // guards what follows; not held while bytes are read or written
	links    map[*link]struct{}
	requests int    // since fault was set
	fault    *fault // what happens to one request; nil: nothing
	oneIn    int    // how many requests are cut at random; 0: none
	random   *rand.Rand
	cuts     int // at random
	down     bool
}

// fault is what happens to one request.
type fault struct {
	at      storetest.Place
	request int
	held    func() // nil: the connection is cut
	struck  bool   // guarded by Proxy.mu
	once    sync.Once
	settled chan struct{} // closed when the engine has answered or hung up
}

func (f *fault) settle() { f.once.Do(func() { close(f.settled) }) }

// New starts a proxy for the engine at an address until the test ends.
func New(t testing.TB, network, address string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	p := &Proxy{
		listener: listener, network: network, address: address,
		links: map[*link]struct{}{}, random: rand.New(rand.NewPCG(1, 0)),
	}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.SetDown(true)
		p.running.Wait()
	})
	return p
}

// Addr returns the address that the store connects to, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut implements [storetest.Network].
func (p *Proxy) Cut(at storetest.Place, n int) (struck func() bool) {
	return p.set(&fault{at: at, request: n, settled: make(chan struct{})})
}

// silence is how long the answer to a request that was held is awaited. Some frames of
// HTTP/2 count as a request, and have no answer.
const silence = 10 * time.Second

// Hold implements [storetest.Network].
func (p *Proxy) Hold(at storetest.Place, n int, held func()) (settled func() bool) {
	f := &fault{at: at, request: n, held: held, settled: make(chan struct{})}
	struck := p.set(f)
	return func() bool {
		if !struck() {
			return false
		}
		select {
		case <-f.settled:
		case <-time.After(silence):
		}
		return true
	}
}

func (p *Proxy) set(f *fault) (struck func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.requests = f, 0
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return f.struck
	}
}

// SetDown implements [storetest.Network].
func (p *Proxy) SetDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for l := range p.links {
		if down {
			l.cut()
		}
	}
}

// CutAtRandom cuts one in so many requests at a random place. 0: none.
func (p *Proxy) CutAtRandom(oneIn int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.oneIn = oneIn
}

// Cuts returns the number of requests that were cut at random.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Storm cuts one in so many requests of all proxies at random. The first proxy is down for
// a while, which is long or a tenth of that. Calm waits for the end of that, and ends the
// cuts.
func Storm(proxies []*Proxy, oneIn int, long time.Duration) (calm func()) {
	var outage sync.WaitGroup
	outage.Go(func() {
		time.Sleep(rand.N(long / 20)) // until there is traffic
		proxies[0].SetDown(true)
		if rand.IntN(2) == 0 {
			long /= 10
		}
		time.Sleep(long)
		proxies[0].SetDown(false)
	})
	for _, p := range proxies {
		p.CutAtRandom(oneIn)
	}
	return func() {
		outage.Wait()
		for _, p := range proxies {
			p.CutAtRandom(0)
		}
	}
}

// accept runs until the listener is closed.
func (p *Proxy) accept() {
	for {
		store, err := p.listener.Accept()
		if err != nil {
			return
		}
		engine, err := net.Dial(p.network, p.address)
		if err != nil {
			_ = store.Close()
			continue
		}
		l := &link{store: store, engine: engine}
		p.mu.Lock()
		p.links[l] = struct{}{}
		down := p.down
		p.mu.Unlock()
		if down {
			l.cut()
		}
		p.running.Go(func() { p.serve(l) })
	}
}

// serve forwards in both directions until the connection ends.
func (p *Proxy) serve(l *link) {
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(l.engine, l.store, func(data []byte) (int, bool) { return l.request(p, data) }) })
	pumps.Go(func() { l.pump(l.store, l.engine, l.answer) })
	pumps.Wait()
	l.cut()
	if l.fault != nil {
		l.fault.settle()
	}
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// begin counts a request and returns what happens to it.
func (p *Proxy) begin() *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.fault != nil && p.requests == p.fault.request {
		p.fault.struck = true
		return p.fault
	}
	if p.oneIn > 0 && p.random.IntN(p.oneIn) == 0 {
		p.cuts++
		return &fault{at: storetest.Place(p.random.IntN(4)), settled: make(chan struct{})}
	}
	return nil
}

// link is a connection of the store and its connection to the engine.
type link struct {
	store, engine net.Conn

	mu      sync.Mutex
	pending bool   // a request has begun, and its answer has not
	fault   *fault // of the request
}

func (l *link) cut() {
	_ = l.store.Close()
	_ = l.engine.Close()
}

// pump forwards as many bytes as pass permits until from ends or pass cuts.
func (l *link) pump(to, from net.Conn, pass func(data []byte) (n int, cut bool)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			keep, cut := pass(buffer[:n])
			_, broken := to.Write(buffer[:keep])
			if cut {
				l.cut()
				return
			}
			if broken != nil {
				_, _ = io.Copy(io.Discard, from) // the requests under way still count
				return
			}
		}
		if err != nil {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite() // after what is under way
			} else {
				_ = to.Close()
			}
			return
		}
	}
}

// request returns how much of the bytes from the store is forwarded, and whether the
// connection is cut then.
func (l *link) request(p *Proxy, data []byte) (n int, cut bool) {
	l.mu.Lock()
	first := !l.pending
	if first {
		l.pending, l.fault = true, p.begin()
	}
	f := l.fault
	l.mu.Unlock()
	if !first || f == nil || f.at > storetest.InRequest {
		return len(data), false
	}
	return f.strike(data, f.at == storetest.InRequest, len(data)-1)
}

// answer does the same for the bytes from the engine.
func (l *link) answer(data []byte) (n int, cut bool) {
	l.mu.Lock()
	first, f := l.pending, l.fault
	l.pending = false
	l.mu.Unlock()
	if !first || f == nil {
		return len(data), false
	}
	if f.held != nil {
		f.settle()
	}
	if f.at <= storetest.InRequest {
		return len(data), false
	}
	return f.strike(data, f.at == storetest.InAnswer, len(data)/2)
}

// strike holds the bytes, or forwards a part of them before the cut.
func (f *fault) strike(data []byte, partly bool, part int) (n int, cut bool) {
	switch {
	case f.held != nil:
		f.held()
		return len(data), false
	case partly:
		return part, true
	}
	return 0, true
}
