package instruments

import (
	"context"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// QueueObserver returns an observer that measures how long actions wait.
func QueueObserver[K comparable](b Backend, name string) queue.Observer[K] {
	wait := b.Histogram(queueWait, label(name))
	return queue.Observer[K]{Started: func(ctx context.Context, e queue.Started[K]) {
		if e.Attempt > 1 {
			return
		}
		began := e.Accepted
		if e.Due.After(began) {
			began = e.Due
		}
		wait(ctx, e.Info.Started.Sub(began))
	}}
}

// LockObserver returns an observer that measures how long requests wait.
func LockObserver(b Backend, name string) lock.Observer {
	wait := b.Histogram(lockWait, label(name))
	return lock.Observer{Granted: func(ctx context.Context, e lock.Acquisition) {
		if e.Replaces == 0 {
			wait(ctx, e.Waited)
		}
	}}
}
