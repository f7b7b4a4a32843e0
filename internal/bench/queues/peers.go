// Package queues measures the per-object queue against what people build it
// from: a work queue with a list for each key, pools with a serial layer, and a
// goroutine with a channel for each key.
package queues

import (
	"sync"

	"github.com/alitto/pond/v2"
	"github.com/gammazero/workerpool"
	"k8s.io/client-go/util/workqueue"
)

// runner runs functions, one at a time for each key and in their order.
type runner interface {
	submit(key string, f func())
	// close ends the goroutines. Nothing is submitted any more, and all that was
	// has run.
	close()
}

const workers = 2

// listed is a work queue of keys, and a list of functions for each: a worker
// that gets a key runs the first of its list, and adds the key again if there are
// more.
type listed struct {
	queue workqueue.TypedInterface[string]
	ended sync.WaitGroup

	mu    sync.Mutex
	lists map[string][]func()
}

func newListed() *listed {
	l := &listed{queue: workqueue.NewTyped[string](), lists: map[string][]func(){}}
	for range workers {
		l.ended.Go(l.work)
	}
	return l
}

func (l *listed) submit(key string, f func()) {
	l.mu.Lock()
	l.lists[key] = append(l.lists[key], f)
	l.mu.Unlock()
	l.queue.Add(key)
}

func (l *listed) work() {
	for {
		key, down := l.queue.Get()
		if down {
			return
		}
		l.mu.Lock()
		list := l.lists[key]
		var f func()
		if len(list) > 0 {
			f = list[0]
			list[0] = nil
			if list = list[1:]; len(list) == 0 {
				delete(l.lists, key)
			} else {
				l.lists[key] = list
			}
		}
		l.mu.Unlock()
		if f != nil {
			f()
		}
		l.queue.Done(key)
		if len(list) > 0 {
			l.queue.Add(key)
		}
	}
}

func (l *listed) close() {
	l.queue.ShutDown()
	l.ended.Wait()
}

// serial makes a pool run the functions of a key one after another: a list for
// each key, and one task in the pool for each list that is not empty.
type serial struct {
	pool func(func())
	stop func()

	mu    sync.Mutex
	lists map[string][]func()
}

func newPond() *serial {
	p := pond.NewPool(workers)
	return &serial{pool: func(f func()) { p.Submit(f) }, stop: p.StopAndWait, lists: map[string][]func(){}}
}

func newWorkerPool() *serial {
	p := workerpool.New(workers)
	return &serial{pool: p.Submit, stop: p.StopWait, lists: map[string][]func(){}}
}

func (s *serial) submit(key string, f func()) {
	s.mu.Lock()
	list, active := s.lists[key]
	s.lists[key] = append(list, f)
	s.mu.Unlock()
	if !active {
		s.pool(func() { s.drain(key) })
	}
}

func (s *serial) drain(key string) {
	s.mu.Lock()
	for {
		list := s.lists[key]
		if len(list) == 0 {
			delete(s.lists, key)
			s.mu.Unlock()
			return
		}
		s.lists[key] = nil
		s.mu.Unlock()
		for _, f := range list {
			f()
		}
		s.mu.Lock()
	}
}

func (s *serial) close() { s.stop() }

// channels has a goroutine and a channel for each key, which it never takes
// back, and runs workers of them at a time.
type channels struct {
	running chan struct{}
	ended   sync.WaitGroup

	mu    sync.Mutex
	lanes map[string]chan func()
}

func newChannels() *channels {
	return &channels{running: make(chan struct{}, workers), lanes: map[string]chan func(){}}
}

func (c *channels) submit(key string, f func()) {
	c.mu.Lock()
	lane, ok := c.lanes[key]
	if !ok {
		lane = make(chan func(), 16)
		c.lanes[key] = lane
		c.ended.Go(func() {
			for f := range lane {
				c.running <- struct{}{}
				f()
				<-c.running
			}
		})
	}
	c.mu.Unlock()
	lane <- f
}

func (c *channels) close() {
	for _, lane := range c.lanes {
		close(lane)
	}
	c.ended.Wait()
}
