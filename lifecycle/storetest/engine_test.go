package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// engine is what [remote] connects to: memory stores, by name, behind a line of
// JSON for each request. It can be killed and started again, and keeps what it
// has.
type engine struct {
	forgets  bool // everything, when it is killed
	tokens   bool // the tokens only
	loses    int  // so many of the last commits, as if they were not on disk yet
	log      map[string][]*lifecycle.Commit
	lives    uint8 // that it knows no tokens of
	serving  sync.WaitGroup
	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	stores   map[string]*lifecycle.MemoryStore
	names    int
}

// startEngine starts an engine that ends with the test.
func startEngine(t testing.TB) *engine {
	e := &engine{stores: map[string]*lifecycle.MemoryStore{}, log: map[string][]*lifecycle.Commit{}}
	e.start(t, "127.0.0.1:0")
	t.Cleanup(e.kill)
	return e
}

func (e *engine) start(t testing.TB, address string) {
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	e.mu.Lock()
	e.listener, e.conns = listener, map[net.Conn]bool{}
	e.mu.Unlock()
	e.serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			if e.conns == nil {
				_ = c.Close()
			} else {
				e.conns[c] = true
				e.serving.Go(func() { e.serve(c) })
			}
			e.mu.Unlock()
		}
	})
}

func (e *engine) address() string { return e.listener.Addr().String() }

// kill ends every connection at once.
func (e *engine) kill() {
	e.mu.Lock()
	_ = e.listener.Close()
	for c := range e.conns {
		_ = c.Close()
	}
	e.conns = nil
	if e.forgets {
		clear(e.stores)
	}
	e.mu.Unlock()
	e.serving.Wait()
	if e.tokens {
		e.lives++
	}
	for name, log := range e.log {
		delete(e.stores, name)
		e.log[name] = log[:max(0, len(log)-e.loses)]
		for _, c := range e.log[name] {
			_ = e.store(name).Commit(context.Background(), again(c))
		}
	}
}

func (e *engine) restart(t testing.TB) {
	address := e.address()
	e.kill()
	e.start(t, address)
}

// database returns the name of a new database.
func (e *engine) database() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names++
	return fmt.Sprint("database ", e.names)
}

func (e *engine) store(name string) *lifecycle.MemoryStore {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stores[name] == nil {
		e.stores[name] = &lifecycle.MemoryStore{KeepHistory: -1}
	}
	return e.stores[name]
}

func (e *engine) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in, out := json.NewDecoder(bufio.NewReader(c)), bufio.NewWriter(c)
	for {
		var q request
		if err := in.Decode(&q); err != nil {
			return
		}
		encoder := json.NewEncoder(out)
		if err := e.perform(e.store(q.Database), q, func(a answer) { _ = encoder.Encode(a) }); err != nil {
			_ = encoder.Encode(answer{Fail: failureOf(err)})
		} else {
			_ = encoder.Encode(answer{Last: true})
		}
		if out.Flush() != nil {
			return
		}
	}
}

func (e *engine) perform(s *lifecycle.MemoryStore, q request, tell func(answer)) error {
	ctx := context.Background()
	record := func(r lifecycle.StoredRecord) { tell(answer{Record: &r}) }
	switch q.Verb {
	case "get":
		r, err := s.Get(ctx, q.Key)
		record(r)
		return err
	case "list":
		found, err := s.List(ctx, q.Query)
		for _, r := range found {
			record(r)
		}
		return err
	case "history":
		rows, err := s.History(ctx, q.Key, q.After, q.Limit)
		for i := range rows {
			tell(answer{Row: &rows[i]})
		}
		return err
	case "messages":
		list, err := s.Messages(ctx, q.Limit)
		for i := range list {
			tell(answer{Message: &list[i]})
		}
		return err
	case "discard":
		return s.Discard(ctx, q.Numbers...)
	case "commit":
		c := q.Commit
		c.Token[0] += e.lives
		sent := again(c)
		err := s.Commit(ctx, c)
		if err == nil && e.loses > 0 {
			e.mu.Lock()
			e.log[q.Database] = append(e.log[q.Database], sent)
			e.mu.Unlock()
		}
		for i := range c.Changes {
			if err == nil {
				record(c.Changes[i].To)
			}
		}
		return err
	}
	return fmt.Errorf("%w: %q", io.ErrUnexpectedEOF, q.Verb)
}
