package storetest

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a store and its engine and breaks the connection at an
// exact place. It knows no protocol: a request begins with the first byte from
// the store after one from the engine, and an answer the other way round. Requests
// are counted over all connections. [NewProxy] makes one; it is safe for concurrent
// use and must not be copied.
type Proxy struct {
	listener net.Listener
	end      chan struct{}  // closed with the test
	running  sync.WaitGroup // goroutines, all of which end with the test

	mu       sync.Mutex // guards what follows; not held while anything is read or written
	network  string
	address  string
	links    map[*link]struct{}
	requests int // that have begun since the breach was set
	breach   breach
	struck   bool       // it has happened
	random   *rand.Rand // nil: only the breach
	often    int        // one request in how many
	cuts     int        // at random
	down     bool
}

// Place is where a [Proxy] breaks a connection, about one request.
type Place uint8

// The places, in the order in which a request comes by them.
const (
	BeforeRequest Place = iota // the engine gets nothing of it
	InRequest                  // the engine gets it but for the last byte at hand
	AfterRequest               // the engine has answered, and nothing of that arrives
	InAnswer                   // half of the first bytes of the answer arrive
	places
)

var placeNames = [places]string{"before the request", "in the request", "after the request", "in the answer"}

// String names the place for people.
func (p Place) String() string { return placeNames[p] }

// breach is what is to happen to one request.
type breach struct {
	place   Place
	request int   // from 1; 0: none is set
	held    *Held // nil: the connection is cut
}

// Held is a request, or its answer, that [Proxy.Hold] stops. It is safe for
// concurrent use.
type Held struct {
	reached, release, settled chan struct{}
	once                      sync.Once // for settled
}

// Reached is closed when the request has come to its place and waits there.
func (h *Held) Reached() <-chan struct{} { return h.reached }

// Release lets it go on, also if the store has hung up meanwhile. It may be
// called once.
func (h *Held) Release() { close(h.release) }

// Settled is closed when the engine has answered the request or hung up: nothing
// of it is under way any more.
func (h *Held) Settled() <-chan struct{} { return h.settled }

func (h *Held) settle() { h.once.Do(func() { close(h.settled) }) }

// link is one connection of the store, and its own to the engine.
type link struct {
	store, engine net.Conn

	mu     sync.Mutex
	asking bool   // a request has begun, and the answer not
	breach breach // what is to happen to it; request 0: nothing
}

// NewProxy returns a proxy that listens on an address of this machine until the
// test ends.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("storetest: a proxy cannot listen: %v", err)
	}
	p := &Proxy{listener: listener, end: make(chan struct{}), links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		close(p.end)
		_ = p.listener.Close()
		p.Down()
		p.running.Wait()
	})
	return p
}

// Addr returns where the store is to connect to, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// To says where the engine is: connections that come from now on go there.
func (p *Proxy) To(network, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.network, p.address = network, address
}

// Cut cuts the connection at a place of the n-th request from now; n = 0 is
// none. It takes the place of what was set before.
func (p *Proxy) Cut(at Place, n int) { p.set(breach{place: at, request: n}) }

// Hold stops the n-th request from now before the engine has any of it, or, if
// the place is behind the request, its answer before the store has any of it.
// It takes the place of what was set before.
func (p *Proxy) Hold(at Place, n int) *Held {
	h := &Held{reached: make(chan struct{}), release: make(chan struct{}), settled: make(chan struct{})}
	p.set(breach{place: at, request: n, held: h})
	return h
}

func (p *Proxy) set(b breach) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breach, p.requests, p.struck = b, 0, false
}

// Struck reports whether what was set last has happened.
func (p *Proxy) Struck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

// CutAtRandom cuts one in so many requests at any place, drawn from a seed, until
// it is called with 0.
func (p *Proxy) CutAtRandom(oneIn int, seed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.often, p.random = oneIn, nil
	if oneIn > 0 {
		p.cuts = 0
		p.random = rand.New(rand.NewPCG(seed, 0))
	}
}

// Cuts returns how many requests were cut at random since CutAtRandom.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Down cuts every connection and lets no new one come about until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	p.down = true
	var all []*link
	for l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		l.cut()
	}
}

// Up ends Down.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// accept runs until the listener is closed, by the end of the test.
func (p *Proxy) accept() {
	for {
		store, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		network, address, down := p.network, p.address, p.down
		p.mu.Unlock()
		if down {
			_ = store.Close()
			continue
		}
		// Engines are on this machine: one that does not answer refuses at once.
		engine, err := net.Dial(network, address)
		if err != nil {
			_ = store.Close()
			continue
		}
		l := &link{store: store, engine: engine}
		p.mu.Lock()
		p.links[l] = struct{}{}
		down = p.down // Down may have come between, and not seen this link
		p.mu.Unlock()
		if down {
			l.cut()
		}
		var pumps sync.WaitGroup
		pumps.Go(func() { p.pump(l, l.engine, l.store, l.asks) })
		pumps.Go(func() { p.pump(l, l.store, l.engine, l.answers) })
		p.running.Go(func() {
			pumps.Wait()
			l.cut()
			if held := l.breach.held; held != nil { // both pumps have ended: it is nobody else's
				held.settle()
			}
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
		})
	}
}

func (l *link) cut() {
	_ = l.store.Close()
	_ = l.engine.Close()
}

// pump passes on what comes from one side, until that hangs up or the
// connection is cut.
func (p *Proxy) pump(l *link, to, from net.Conn, pass func(*Proxy, []byte) (n int, cut bool)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			keep, cut := pass(p, buffer[:n])
			_, broken := to.Write(buffer[:keep])
			if cut {
				l.cut()
				return
			}
			if broken != nil {
				// Nobody is there to read it, but what is asked meanwhile counts.
				_, _ = io.Copy(io.Discard, from)
				return
			}
		}
		if err != nil {
			// The other side has what is under way, and then the end.
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			} else {
				_ = to.Close()
			}
			return
		}
	}
}

// asks is called with what comes from the store, and says how much of it is to
// go on, and whether the connection is cut then.
func (l *link) asks(p *Proxy, data []byte) (n int, cut bool) {
	l.mu.Lock()
	first := !l.asking
	if first {
		l.asking, l.breach = true, p.begin()
	}
	b := l.breach
	l.mu.Unlock()
	switch {
	case !first || b.request == 0 || b.place > InRequest:
		return len(data), false
	case b.held != nil:
		p.hold(b.held)
		return len(data), false
	case b.place == InRequest:
		return len(data) - 1, true
	}
	return 0, true
}

// answers is the same for what comes from the engine.
func (l *link) answers(p *Proxy, data []byte) (n int, cut bool) {
	l.mu.Lock()
	first, b := l.asking, l.breach
	l.asking = false
	l.mu.Unlock()
	if first && b.held != nil {
		b.held.settle()
	}
	switch {
	case !first || b.request == 0 || b.place <= InRequest:
		return len(data), false
	case b.held != nil:
		p.hold(b.held)
		return len(data), false
	case b.place == InAnswer:
		return len(data) / 2, true
	}
	return 0, true
}

// begin counts a request and says what is to happen to it.
func (p *Proxy) begin() breach {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.requests == p.breach.request {
		p.struck = true
		return p.breach
	}
	if p.random != nil && p.random.IntN(p.often) == 0 {
		p.cuts++
		return breach{request: 1, place: Place(p.random.IntN(int(places)))}
	}
	return breach{}
}

// hold waits until what is held is released, or the test ends.
func (p *Proxy) hold(h *Held) {
	close(h.reached)
	select {
	case <-h.release:
	case <-p.end:
	}
}
