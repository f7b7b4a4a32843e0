package lifecycle_test

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
)

// calls are handlers that note their arguments.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, line)
}

func (c *calls) handler(name string) lifecycle.Handler {
	return func(_ context.Context, args []byte) error {
		c.note(name + " " + string(args))
		return nil
	}
}

// nothing is work that does nothing.
var nothing = lifecycle.Func(func(context.Context) error { return nil })
