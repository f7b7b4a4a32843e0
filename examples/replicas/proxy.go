package main

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy is the network between a replica and the database.
type proxy struct {
	listener net.Listener
	database string       // address
	delay    atomic.Int64 // of answers, in nanoseconds
	swallow  atomic.Bool  // answers; requests arrive
	running  sync.WaitGroup

	mu    sync.Mutex
	links context.Context // ends the present connections
	end   context.CancelFunc
}

// newProxy starts a proxy. The caller calls stop.
func newProxy(database string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, database: database}
	p.links, p.end = context.WithCancel(context.Background())
	p.running.Go(func() {
		for {
			replica, err := listener.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			link := p.links // it has ended if stop was faster
			p.mu.Unlock()
			p.running.Go(func() { p.serve(link, replica) })
		}
	})
	return p, nil
}

// heal ends all connections, so that answers that were swallowed never come, and lets new
// ones be.
func (p *proxy) heal() {
	p.delay.Store(0)
	p.swallow.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.links, p.end = context.WithCancel(context.Background())
}

// stop ends everything, and returns when all goroutines have ended.
func (p *proxy) stop() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.end()
	p.mu.Unlock()
	p.running.Wait()
	return err
}

// serve forwards in both directions until the replica or the database ends the connection,
// or link ends.
func (p *proxy) serve(link context.Context, replica net.Conn) {
	link, end := context.WithCancel(link)
	defer end()
	defer replica.Close()
	database, err := net.Dial("tcp", p.database)
	if err != nil {
		return
	}
	defer database.Close()
	defer context.AfterFunc(link, func() { _, _ = replica.Close(), database.Close() })()
	p.running.Go(func() {
		defer end()
		_, _ = io.Copy(database, replica)
	})
	_, _ = io.Copy(&answers{proxy: p, link: link, replica: replica}, database)
}

// answers forwards the answers of one connection.
type answers struct {
	*proxy
	link    context.Context
	replica net.Conn
	lost    bool // one was swallowed; the rest of it is never forwarded, also after heal
}

func (a *answers) Write(data []byte) (int, error) {
	if delay := a.delay.Load(); delay > 0 {
		select {
		case <-time.After(time.Duration(delay)):
		case <-a.link.Done():
		}
	}
	a.lost = a.lost || a.swallow.Load()
	if a.lost {
		return len(data), nil
	}
	return a.replica.Write(data)
}
