package queue

import (
	"cmp"
	"context"
	"strings"
)

// defaultMaxRunning is the limit of running actions if Config.MaxRunning is 0.
const defaultMaxRunning = 1024

// Config configures a [Queuer]. A nil *Config and the zero value mean the
// defaults. [New] copies what it needs.
type Config[K comparable] struct {
	// Base is the parent of the contexts of actions. It supplies their values and ends them
	// when it ends. From then on no action starts. Each waiting action ends as [Canceled],
	// with the cause of Base, when its turn comes, and is settled. The queue still accepts
	// actions; [Queuer.Terminate] closes it. Default: context.Background(). The context of
	// the submitter is not used: the end of a request must not end an accepted action.
	Base context.Context
	// MaxRunning limits the actions that run at once. It comes before the MaxRunning of the
	// root in Classes. 0: that one, or 1,024 if it is 0 too.
	MaxRunning int
	// MaxPerKey limits the actions of one key, running and waiting. 0: no limit.
	MaxPerKey int
	// MaxWaiting limits the waiting actions of all keys. 0: no limit.
	MaxWaiting int
	// Classes are the limits by path, such as "aws" and below it "aws/seoul". The path
	// "" is the root. The last part of a path may be "*", as in "aws/*": this limit
	// applies to each class directly below "aws" that has no entry. The first action that
	// names such a class creates it; the end of its last action frees it. A parent
	// without an entry has its own copy of such a limit, or none.
	Classes map[string]Limit
	// HaltOnFailure halts the lanes of an action that fails, until [Queuer.Resume], or until
	// they are empty in a [Queuer.Stop] or a [Queuer.Terminate]. [Failed], [Panicked] and
	// [TimedOut] are failures. An action halts no lane if it ends after it was cancelled,
	// pre-empted or aborted, or after the end of Base. A halted lane accepts actions. The
	// attempts count: a panic of Settle, or of the observer after it, halts no lane.
	HaltOnFailure bool
	// Observer receives events.
	Observer Observer[K]
}

// Limit limits a class and everything below it. 0: no limit.
type Limit struct {
	// MaxRunning limits the actions that run at once.
	MaxRunning int `json:"maxRunning"`
	// MaxChildren limits the classes directly below that have a running action.
	MaxChildren int `json:"maxChildren"`
	// Fair shares the class between the classes directly below. The actions of the class
	// itself count as one more such class. The next action is of the class with the fewest
	// running actions. If several classes have equally few, it is of the class that has
	// waited longest since its last start. A class that an action has created has waited
	// since its creation. Without Fair the oldest action is next, so that a class with many
	// actions delays the others.
	Fair bool `json:"fair,omitempty"`
}

// New returns a queue. It returns an [*InvalidError] if a number is negative or
// the path of a class has an empty part.
func New[K comparable](config *Config[K]) (*Queuer[K], error) {
	config = cmp.Or(config, new(Config[K]))
	if err := config.check(); err != nil {
		return nil, err
	}
	q := &Queuer[K]{config: *config, root: class[K]{rule: new(rule)}}
	q.config.Classes = nil
	for path, limit := range config.Classes {
		q.makeClass(path).rule.limit = limit
	}
	for path, c := range q.classes {
		if _, entry := config.Classes[path]; !entry { // a parent
			if p := q.pattern(path); p != nil {
				c.rule.limit = p.rule.limit
			}
		}
	}
	q.root.rule.limit.MaxRunning = cmp.Or(config.MaxRunning, q.root.rule.limit.MaxRunning)
	return q, nil
}

// Must is [New] for a configuration that is part of the program. It panics if New
// returns an error.
func Must[K comparable](config *Config[K]) *Queuer[K] {
	q, err := New(config)
	if err != nil {
		panic(err)
	}
	return q
}

func (c *Config[K]) check() error {
	switch {
	case c.MaxRunning < 0:
		return &InvalidError{"MaxRunning", "negative"}
	case c.MaxPerKey < 0:
		return &InvalidError{"MaxPerKey", "negative"}
	case c.MaxWaiting < 0:
		return &InvalidError{"MaxWaiting", "negative"}
	}
	for path, limit := range c.Classes {
		if err := limit.check("Classes", path); err != nil {
			return err
		}
	}
	return nil
}

// check returns what is wrong with the limit of a class.
func (l *Limit) check(field, path string) error {
	switch above, _ := cut(path); {
	case l.MaxRunning < 0 || l.MaxChildren < 0:
		return &InvalidError{field, "negative limit of " + path}
	case path != "" && strings.Contains("/"+path+"/", "//"):
		return &InvalidError{field, "empty part in path " + path}
	case strings.Contains("/"+above+"/", "/*/"):
		return &InvalidError{field, "a part below * in path " + path}
	}
	return nil
}
