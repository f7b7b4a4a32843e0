package queues

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// runner runs functions, one at a time for each key and in their order.
type runner interface {
	submit(key string, f func())
	// close ends the goroutines. All submitted functions have run.
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
