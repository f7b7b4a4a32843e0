package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy is the network between a replica and the database.
type proxy struct {
	listener net.Listener
	database string // address
	running  sync.WaitGroup
	cable    atomic.Pointer[cable] // of new connections
}

// cable carries connections until it is cut.
type cable struct {
	delay   atomic.Int64  // of answers, in nanoseconds
	swallow atomic.Bool   // answers; requests arrive
	cut     chan struct{} // closed: all connections end
}

// newProxy starts a proxy. The caller calls stop.
func newProxy(database string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, database: database}
	p.cable.Store(&cable{cut: make(chan struct{})})
	p.running.Go(func() {
		for {
			replica, err := listener.Accept()
			if err != nil {
				return
			}
			c := p.cable.Load()
			p.running.Go(func() { p.serve(c, replica) })
		}
	})
	return p, nil
}

// heal ends all connections, so that answers that were swallowed never come, and lets new
// ones be.
func (p *proxy) heal() { close(p.cable.Swap(&cable{cut: make(chan struct{})}).cut) }

// stop ends everything, and returns when all goroutines have ended.
func (p *proxy) stop() error {
	err := p.listener.Close()
	close(p.cable.Load().cut)
	p.running.Wait()
	return err
}

// serve forwards in both directions until the replica or the database ends the connection,
// or the cable is cut.
func (p *proxy) serve(c *cable, replica net.Conn) {
	defer replica.Close()
	database, err := net.Dial("tcp", p.database)
	if err != nil {
		return
	}
	defer database.Close()
	ended := make(chan struct{}, 2)
	forward := func(to io.Writer, from net.Conn) {
		p.running.Go(func() {
			_, _ = io.Copy(to, from)
			ended <- struct{}{}
		})
	}
	forward(database, replica)
	forward(answers{c, replica}, database)
	select {
	case <-ended:
	case <-c.cut:
	}
}

// answers forwards the answers of one connection.
type answers struct {
	*cable
	replica net.Conn
}

func (a answers) Write(data []byte) (int, error) {
	time.Sleep(time.Duration(a.delay.Load()))
	if a.swallow.Load() {
		return len(data), nil
	}
	return a.replica.Write(data)
}
