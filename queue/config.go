package queue

import (
	"context"
	"strings"
)

// DefaultMaxRunning is how many actions run at once where nothing is said.
const DefaultMaxRunning = 1024

// Config is what a queue is made with. nil and the zero value mean the defaults.
// It is read by [New] and not kept.
type Config[K comparable] struct {
	// Base is what the contexts of actions come from: their values, and their
	// end if it ends. nil: context.Background(). Nothing comes from the context
	// of the submitter: a request that is over must not end what it asked for,
	// and an action that submits the next one would keep all its ancestors.
	Base context.Context
	// MaxRunning bounds the actions that run at once. 0: [DefaultMaxRunning].
	MaxRunning int
	// MaxPerKey bounds what waits and runs for one key. 0: no bound.
	MaxPerKey int
	// MaxWaiting bounds what waits for all keys together: as long as so many
	// wait, every submit that does not pre-empt is refused. 0: no bound.
	MaxWaiting int
	// Classes are the limits by path: "aws" and below it "aws/seoul". A parent
	// that is not named has no limits. The path "" is the root. The last part may
	// be "*", as in "aws/*": that is the limit of each class directly below "aws"
	// that is not named, made when an action first names it, and kept.
	Classes map[string]Limit
	// Handlers are the functions that actions may name.
	Handlers map[string]Handler
	// OnFailure is for actions that say nothing. 0: [Continue].
	OnFailure Policy
	// Observer is told what happens.
	Observer Observer[K]
}

// Limit bounds a class and everything below it. 0: no bound.
type Limit struct {
	// MaxRunning bounds the actions that run at once.
	MaxRunning int
	// MaxChildren bounds the classes directly below that have one running.
	MaxChildren int
}

// New makes a queue. The error is an [*InvalidError]: a negative number, or a
// path of a class with an empty part.
func New[K comparable](config *Config[K]) (*Queuer[K], error) {
	q := new(Queuer[K])
	if config == nil {
		config = new(Config[K])
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	q.base = config.Base
	q.maxPerKey, q.maxWaiting = config.MaxPerKey, config.MaxWaiting
	q.handlers = make(map[string]Handler, len(config.Handlers))
	for name, h := range config.Handlers {
		q.handlers[name] = h
	}
	q.onFailure = config.OnFailure
	q.observer = config.Observer
	for path, limit := range config.Classes {
		if parent, last := cut(path); last == "*" {
			if q.unnamed == nil {
				q.unnamed = make(map[string]Limit)
			}
			q.class(parent)
			q.unnamed[parent] = limit
			continue
		}
		q.class(path).limit = limit
	}
	if config.MaxRunning != 0 {
		q.root.limit.MaxRunning = config.MaxRunning
	}
	q.prepare()
	return q, nil
}

// Must is [New] for a configuration that is written in the program: it panics
// where New has an error.
func Must[K comparable](config *Config[K]) *Queuer[K] {
	q, err := New(config)
	if err != nil {
		panic(err)
	}
	return q
}

func (c *Config[K]) check() error {
	numbers := []struct {
		name  string
		value int
	}{{"MaxRunning", c.MaxRunning}, {"MaxPerKey", c.MaxPerKey}, {"MaxWaiting", c.MaxWaiting}}
	for _, n := range numbers {
		if n.value < 0 {
			return &InvalidError{n.name, "negative"}
		}
	}
	for path, limit := range c.Classes {
		if limit.MaxRunning < 0 || limit.MaxChildren < 0 {
			return &InvalidError{"Classes", "negative limit of " + path}
		}
		if path != "" && strings.Contains("/"+path+"/", "//") {
			return &InvalidError{"Classes", "empty part in path " + path}
		}
		if above, _ := cut(path); strings.Contains("/"+above+"/", "/*/") {
			return &InvalidError{"Classes", "a part below * in path " + path}
		}
	}
	for name, h := range c.Handlers {
		if name == "" || h == nil {
			return &InvalidError{"Handlers", "empty name or nil function"}
		}
	}
	if c.OnFailure > Halt {
		return &InvalidError{"OnFailure", "unknown"}
	}
	return nil
}

// class returns the class of the path, and makes it and its parents if need be.
// Only for New.
func (q *Queuer[K]) class(path string) *class[K] {
	if path == "" {
		return &q.root
	}
	if c, ok := q.classes[path]; ok {
		return c
	}
	above, _ := cut(path)
	parent := q.class(above)
	if q.classes == nil {
		q.classes = make(map[string]*class[K])
	}
	c := &class[K]{path: path, parent: parent, best: never}
	q.classes[path] = c
	return c
}

// find returns the class that an action names, nil if there is none and none is
// to be made.
func (q *Queuer[K]) find(path string) *class[K] {
	if path == "" {
		return &q.root
	}
	if c := q.classes[path]; c != nil || q.unnamed == nil {
		return c
	}
	above, last := cut(path)
	limit, ok := q.unnamed[above]
	if !ok || last == "" || last == "*" {
		return nil
	}
	parent := &q.root
	if above != "" {
		parent = q.classes[above]
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.grown[path]
	if c == nil {
		if q.grown == nil {
			q.grown = make(map[string]*class[K])
		}
		// Nothing waits in it, so the best turns above it stay what they are.
		c = &class[K]{path: path, parent: parent, limit: limit, best: never}
		q.grown[path] = c
	}
	return c
}

// cut returns the path of the class above, and the last part.
func cut(path string) (above, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}
