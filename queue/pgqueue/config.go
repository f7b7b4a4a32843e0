package pgqueue

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// Handler does the work of the actions of one name.
type Handler struct {
	// Run does the work. Its context ends after the action's Timeout, when the context
	// of [Worker.Run] ends, and when the lease is lost ([ErrLost]). It may run again after
	// any of its steps, in any process. Pass Token to what it changes, so that a late run
	// can be refused. Its panic, one of a method of its error, and runtime.Goexit end the
	// action as [queue.Panicked].
	Run func(ctx context.Context, t *Task) error
	// RetryIf reports whether an error is worth another attempt. nil: every error is. Its
	// panic ends the action as [queue.Panicked].
	RetryIf func(error) bool
	// Settle, if it is not nil, updates the object's state in the transaction that ends the
	// action. Its effect is committed exactly once, and before later actions of the keys
	// start. Its context ends after the time of a lease, and a lease after the end of Run's context: it
	// must then return, because Run waits for it. The server rolls the transaction back if it
	// gets no statement for the time of a lease, so that a worker that is cut off holds up
	// no other. If the transaction fails, Settle is called again, or by another worker; while
	// it returns errors, panics or calls runtime.Goexit, the action keeps its keys. Settle must
	// not commit the transaction: its effect would stay, and the action would not end. The text
	// of err may have bytes that a column of type text refuses.
	Settle func(ctx context.Context, tx *sql.Tx, t *Task, outcome queue.Outcome, err error) error
}

// Task is a started action. It must not be changed.
type Task struct {
	Action        // with sorted Keys, and without Delay
	ID      int64 // of Enqueue
	Attempt int   // from 1 on
	Token   int64 // fencing token: each start of an action of a key has a higher one
}

// Config configures a [Worker]. A nil *Config and the zero value mean the defaults.
type Config struct {
	// Owner is the name of the worker in the view interlock_queue. Default: host name and process id.
	Owner string
	// MaxRunning limits the actions that this worker runs at once. 0: 16.
	MaxRunning int
	// Classes are the limits of the actions that run at once in all workers together, by
	// path, such as "aws" and below it "aws/seoul". A limit counts everything below its
	// path. The path "" is the root. The last part of a path may be "*", as in "aws/*":
	// this limit applies to each class directly below "aws" that has no entry. All
	// workers should have the same classes: each keeps its own limits.
	Classes map[string]int
	// Lease is the time for which an action belongs to this worker without a renewal. The
	// worker renews three times as often. The context of a handler ends after nine tenths
	// of it without a renewal. After a crash the actions run elsewhere when this time is
	// over. A claim has this time, and a renewal a third of it, also if it has to open a
	// connection first: a worker that needs longer for that does nothing. 0: 10 seconds. At
	// least 10 milliseconds.
	Lease time.Duration
	// Poll is the longest time between two looks for actions. The end of a delay, of a
	// pause and of a lease is not notified, so it is noticed up to this time later. 0:
	// half a second.
	Poll time.Duration
	// Observer receives events.
	Observer Observer
}

// Worker runs actions. [New] makes one. It is safe for concurrent use and must not be
// copied.
type Worker struct {
	db       *sql.DB
	handlers map[string]Handler
	config   Config
	ready    chan struct{} // an action may be claimable
	ends     chan end      // actions that are to be removed

	mu   sync.Mutex       // not held during I/O
	held map[int64]*lease // by token
}

// New returns a worker. The pool, of driver pgx, needs one connection for notifications, three
// for claims, delays and renewals, and up to one for each action that ends: call
// [sql.DB.SetMaxIdleConns] with MaxRunning and some more, because connections that come and go
// cost more than the actions. A limit of the pool must be at least four. The error is an
// [*queue.InvalidError].
func New(db *sql.DB, handlers map[string]Handler, config *Config) (*Worker, error) {
	c := *cmp.Or(config, &Config{})
	if err := c.check(); err != nil {
		return nil, err
	}
	for name, h := range handlers {
		if h.Run == nil {
			return nil, &queue.InvalidError{Field: "handlers", Problem: "no Run of " + name}
		}
	}
	if n := db.Stats().MaxOpenConnections; n > 0 && n < 4 {
		return nil, &queue.InvalidError{Field: "db", Problem: fmt.Sprintf("a pool of %d connections, less than 4", n)}
	}
	if c.Owner == "" {
		host, _ := os.Hostname() // the process id alone is a name too
		c.Owner = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	c.MaxRunning = cmp.Or(c.MaxRunning, 16)
	c.Classes = maps.Clone(c.Classes)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Poll = cmp.Or(c.Poll, 500*time.Millisecond)
	return &Worker{
		db: db, handlers: maps.Clone(handlers), config: c,
		ready: make(chan struct{}, 1), ends: make(chan end), held: map[int64]*lease{},
	}, nil
}

func (c *Config) check() error {
	if !isText(c.Owner) {
		return &queue.InvalidError{Field: "Owner", Problem: notText}
	}
	switch {
	case c.MaxRunning < 0:
		return &queue.InvalidError{Field: "MaxRunning", Problem: "negative"}
	case c.Poll < 0:
		return &queue.InvalidError{Field: "Poll", Problem: "negative"}
	case c.Lease != 0 && c.Lease < 10*time.Millisecond:
		return &queue.InvalidError{Field: "Lease", Problem: "less than 10 milliseconds"}
	}
	for path, most := range c.Classes {
		above := "/" + path[:max(strings.LastIndexByte(path, '/'), 0)] + "/"
		switch {
		case most <= 0:
			return &queue.InvalidError{Field: "Classes", Problem: "no positive limit of " + path}
		case !isText(path):
			return &queue.InvalidError{Field: "Classes", Problem: fmt.Sprintf("path %q is %s", path, notText)}
		case path != "" && strings.Contains("/"+path+"/", "//") || strings.Contains(above, "/*/"):
			return &queue.InvalidError{Field: "Classes", Problem: "an empty part, or one below *, in path " + path}
		}
	}
	return nil
}
